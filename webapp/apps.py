from importlib import import_module

from django.apps import AppConfig


class WebappConfig(AppConfig):
    name = "webapp"

    def ready(self) -> None:
        """Connect the receivers of allauth's signals, which need the models."""
        import_module("webapp.accounts.changes")
