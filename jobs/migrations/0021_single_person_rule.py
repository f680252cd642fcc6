"""Stores the single-person rule with each promotion request, and who switched it on in each project."""

from typing import Any

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.models import F, Q


def fill(apps: Any, schema_editor: Any) -> None:
    """Take over from the audit log who switched the rule on, and mark requests that one person decided.

    Open requests do not get the rule: it is unknown whether they were opened before it was switched on.
    """
    project_model, event_model = apps.get_model("jobs", "Project"), apps.get_model("jobs", "AuditEvent")
    request_model, decision_model = apps.get_model("jobs", "PromotionRequest"), apps.get_model("jobs", "Decision")
    for project in project_model.objects.all():
        events = event_model.objects.filter(project=project, action__in=("project.create", "project.change"))
        # Filtered here: a filter inside of JSON is not the same in every database.
        switched = [row for row in events.order_by("pk") if row.detail.get("single_person") is True]
        if switched:
            project.single_person_by_id = switched[-1].actor_id
            project.single_person_at = switched[-1].time
        elif project.single_person:
            project.single_person_at = project.created
        project.save(update_fields=["single_person_by", "single_person_at"])
    alone = Q(user=F("promotion__requested_by")) | Q(user=F("promotion__version__created_by"))
    approvals = decision_model.objects.filter(alone, verdict="approve")
    request_model.objects.filter(pk__in=approvals.values("promotion")).update(single_person=True)


class Migration(migrations.Migration):
    dependencies = [("jobs", "0019_tokens")]

    operations = [
        migrations.AlterField(
            model_name="project",
            name="single_person",
            field=models.BooleanField(
                default=False, help_text="requesters may approve the requests that they open from now on"
            ),
        ),
        migrations.AddField(
            model_name="project",
            name="single_person_by",
            field=models.ForeignKey(
                help_text="who switched `single_person` on last; null: the operator at the terminal",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="project",
            name="single_person_at",
            field=models.DateTimeField(
                help_text="when `single_person` was switched on last; kept after it is switched off", null=True
            ),
        ),
        migrations.AddField(
            model_name="promotionrequest",
            name="single_person",
            field=models.BooleanField(
                default=False, help_text="its requester may decide it; as the project was set when it was opened"
            ),
        ),
        migrations.RunPython(fill, migrations.RunPython.noop),
    ]
