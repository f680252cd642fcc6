from importlib import import_module

from django.apps import AppConfig


class JobsConfig(AppConfig):
    """The domain: no HTML, no HTTP."""

    name = "jobs"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Let every kind of job register its actions."""
        from jobs.kinds import KINDS

        for kind in KINDS:
            import_module(f"jobs.kinds.{kind}.actions")
