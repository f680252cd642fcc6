"""The models for sharing workers among people: use, reservations, settings of pools."""

from jobs.models.sharing.pool import PoolSettings
from jobs.models.sharing.reservation import Reservation
from jobs.models.sharing.share import Share

__all__ = ["PoolSettings", "Reservation", "Share"]
