"""Finds validations of versions of models."""

from django.db.models import Q

from jobs.kinds.register.facts import REGISTER
from jobs.kinds.rows import of_kind


def all_validations() -> Q:
    """Find all validations."""
    return of_kind(REGISTER)


def validations_of(version: int) -> Q:
    """Find the validations of this version of a model."""
    return of_kind(REGISTER, version=version)
