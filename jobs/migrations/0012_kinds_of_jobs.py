from django.db import migrations, models


def name_kinds(apps, schema_editor):
    jobs = apps.get_model("jobs", "Job").objects.using(schema_editor.connection.alias)
    # Each condition on a foreign key is indexed, so that only searches and roots are read.
    jobs.filter(kind="search", revision=None, payload_json__has_key="outside").update(kind="external_search")
    jobs.filter(kind="ensemble", parent=None, payload_json__has_key="chosen").update(kind="chosen_ensemble")


def unname_kinds(apps, schema_editor):
    jobs = apps.get_model("jobs", "Job").objects.using(schema_editor.connection.alias)
    jobs.filter(kind="external_search").update(kind="search")
    jobs.filter(kind="chosen_ensemble").update(kind="ensemble")


class Migration(migrations.Migration):
    """Adds kinds for external searches and chosen ensembles, which a payload key distinguished before."""

    dependencies = [("jobs", "0011_warnings_of_jobs")]

    operations = [
        # The columns keep their names, and the database does not check the kind against the table.
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.RenameField("job", "payload", "payload_json"),
                migrations.RenameField("job", "results", "results_json"),
                migrations.AlterField(
                    "job",
                    "payload_json",
                    models.JSONField(
                        db_column="payload", default=dict, help_text="input of the job in addition to the revision's spec"
                    ),
                ),
                migrations.AlterField(
                    "job", "results_json", models.JSONField(db_column="results", default=dict)
                ),
                migrations.AlterField(
                    "job", "kind", models.CharField(max_length=20, help_text="a name in jobs.kinds.KINDS")
                ),
            ]
        ),
        migrations.RunPython(name_kinds, unname_kinds),
    ]
