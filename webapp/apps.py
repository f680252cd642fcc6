from django.apps import AppConfig


class WebappConfig(AppConfig):
    """Pages, REST, sockets and the management commands."""

    name = "webapp"
