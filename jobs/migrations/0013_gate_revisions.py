import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    """Adds the revisions of a model's gates. Requests made before them were judged by the defaults."""

    dependencies = [("jobs", "0012_kinds_of_jobs")]

    operations = [
        migrations.CreateModel(
            name="GateRevision",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveIntegerField()),
                ("rules_json", models.JSONField(db_column="rules", help_text="a jobs.spec.gates.GateRules")),
                ("comment", models.TextField(blank=True)),
                ("created", models.DateTimeField(auto_now_add=True)),
                (
                    "created_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "model",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="gate_revisions",
                        to="jobs.registeredmodel",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("model", "number"), name="gate_revision_number")
                ],
            },
        ),
        migrations.AddField(
            model_name="promotionrequest",
            name="gate_revision",
            field=models.ForeignKey(
                help_text="the rules that applied when the request was made; null: the defaults",
                null=True,
                on_delete=django.db.models.deletion.RESTRICT,
                related_name="+",
                to="jobs.gaterevision",
            ),
        ),
    ]
