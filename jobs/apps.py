from importlib import import_module

from django.apps import AppConfig

from jobs.kinds import KINDS
from jobs.store.permission import set_permission


class JobsConfig(AppConfig):
    """The domain application: models, queries and actions. It knows neither HTML nor HTTP."""

    name = "jobs"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Import the actions of every kind of job, which register themselves, and connect the store."""
        # Not at the top of the module: actions import models, which Django loads before it calls `ready`.
        for kind in KINDS:
            import_module(f"jobs.kinds.{kind}.actions")
        set_permission(import_module("jobs.queries.storage.ownership").require_own)
