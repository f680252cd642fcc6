import gc
from importlib import import_module

from django.apps import AppConfig
from django.contrib.admin import apps as admin_apps


class AdminConfig(admin_apps.AdminConfig):
    """Django's admin with a site that shows read-only pages alone."""

    default = False  # of this module: that is WebappConfig
    default_site = "webapp.admin_read_only.ReadOnlySite"


class WebappConfig(AppConfig):
    name = "webapp"

    def ready(self) -> None:
        """Connect the receivers for allauth's signals, which need the models; collect garbage again."""
        import_module("webapp.accounts.changes")
        # The last app of all. Imported objects remain until the end: collections examine them in vain, a
        # tenth of the time of a start, so the processes start without collections.
        gc.freeze()
        gc.enable()
