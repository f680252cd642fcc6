from django.db import models


class PoolSettings(models.Model):
    """Settings of a pool that administrators change. A pool without a row has the defaults."""

    pool = models.CharField(max_length=63, primary_key=True)
    preemption = models.BooleanField(
        default=False, help_text="waiting jobs of higher priority let running ones of lower priority wait"
    )

    def __str__(self) -> str:
        return f"settings of pool {self.pool}"
