"""Finds the jobs that load data by own code."""

from django.db.models import Q

from jobs.kinds.code_data.facts import CODE_DATA
from jobs.kinds.rows import of_kind


def data_loads() -> Q:
    """Find all jobs that load data by own code."""
    return of_kind(CODE_DATA)


def data_loads_by(code: str) -> Q:
    """Find the jobs that load data by the code version with this digest."""
    return of_kind(CODE_DATA, code=code)
