"""Reads the settings of pools."""

from jobs.models import PoolSettings


def preempting_pools() -> frozenset[str]:
    """Return the pools in which waiting jobs of higher priority let running ones of lower priority wait."""
    return frozenset(PoolSettings.objects.filter(preemption=True).values_list("pool", flat=True))
