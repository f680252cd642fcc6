"""Stores what lists show of the findings about versions of code."""

from typing import Any

from django.db import migrations, models


def fill(apps: Any, _: Any) -> None:
    """Summarize the findings of all versions."""
    for version in apps.get_model("jobs", "CodeVersion").objects.only("found_json").iterator():
        found = version.found_json
        version.summary_json = {
            "entries": [entry["name"] for entry in found.get("entries", [])],
            "problems": len(found.get("problems", [])),
            "packages": found.get("packages") is not None,
        }
        version.save(update_fields=["summary_json"])


class Migration(migrations.Migration):
    dependencies = [("jobs", "0044_packages_of_versions")]

    operations = [
        migrations.AddField(
            model_name="codeversion",
            name="summary_json",
            field=models.JSONField(
                db_column="summary",
                default=dict,
                help_text="what lists show of the findings, which may be large",
            ),
        ),
        migrations.RunPython(fill, migrations.RunPython.noop),
    ]
