"""Finds jobs that install packages ahead of runs."""

from django.db.models import Q

from jobs.kinds.install.facts import INSTALL
from jobs.kinds.rows import of_kind


def all_installations() -> Q:
    """Find all installations."""
    return of_kind(INSTALL)


def installations_of(requirements: str, **fields: bool) -> Q:
    """Find the installations for requirements with this digest."""
    return of_kind(INSTALL, requirements=requirements, **fields)
