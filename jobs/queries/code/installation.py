"""Reads the installation's settings that administrators change while it runs."""

from django.db.models import QuerySet

from jobs.messages.sandbox import FORMER_LEVEL, Level, present_level
from jobs.models import InstallationSettings, Project

KEY = 1
"""The only row's primary key."""


def current_settings() -> InstallationSettings:
    """Return the settings. Without a row they have their defaults."""
    return InstallationSettings.objects.filter(pk=KEY).first() or InstallationSettings(pk=KEY)


def sandbox_minimum() -> Level:
    """Return the weakest sandbox level at which user code may run."""
    return present_level(current_settings().sandbox_minimum)


def has_former_minimum() -> bool:
    """Return whether only earlier releases had the minimum's level. It counts as another one."""
    return current_settings().sandbox_minimum == FORMER_LEVEL


def projects_with_network() -> QuerySet[Project]:
    """Return the projects in which user code may connect to other hosts."""
    return Project.objects.filter(network=True).order_by("slug")
