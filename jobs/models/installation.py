from django.db import models

from jobs.messages.sandbox import DEFAULT_MINIMUM, Level
from jobs.models.choices import choices


class InstallationSettings(models.Model):
    """The settings that administrators change while the installation runs. There is one row, or none yet."""

    sandbox_minimum = models.CharField(
        max_length=11,
        choices=choices(Level),
        default=DEFAULT_MINIMUM.value,
        help_text="the weakest level of sandbox at which code of users may run",
    )

    def __str__(self) -> str:
        return "settings of the installation"
