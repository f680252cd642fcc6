from django.apps import AppConfig


class JobsConfig(AppConfig):
    """The domain: no HTML, no HTTP."""

    name = "jobs"
    default_auto_field = "django.db.models.BigAutoField"
