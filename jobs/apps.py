from importlib import import_module

from django.apps import AppConfig


class JobsConfig(AppConfig):
    """The domain application: models, queries and actions. It knows neither HTML nor HTTP."""

    name = "jobs"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Import the actions of every kind of job, which register themselves."""
        from jobs.kinds import KINDS

        for kind in KINDS:
            import_module(f"jobs.kinds.{kind}.actions")
