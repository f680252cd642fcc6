"""Reads the settings of the installation that administrators change while it runs."""

from jobs.contracts.sandbox import Level
from jobs.models import InstallationSettings

KEY = 1
"""The primary key of the only row."""


def current() -> InstallationSettings:
    """Return the settings. Without a row they have their defaults."""
    return InstallationSettings.objects.filter(pk=KEY).first() or InstallationSettings(pk=KEY)


def sandbox_minimum() -> Level:
    """Return the weakest level of sandbox at which code of users may run."""
    return Level(current().sandbox_minimum)
