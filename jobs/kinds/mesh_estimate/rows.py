"""Finds estimates for meshes."""

from django.db.models import Q

from jobs.kinds.mesh_estimate.facts import MESH_ESTIMATE
from jobs.kinds.rows import of_kind


def estimates_of(key: str) -> Q:
    """Find the estimates with this key."""
    return of_kind(MESH_ESTIMATE, key=key)


def estimates_of_model(model_key: str) -> Q:
    """Find the estimates of the model with this key, for any mesh."""
    return of_kind(MESH_ESTIMATE, model_key=model_key)


def any_estimate() -> Q:
    """Find all estimates."""
    return of_kind(MESH_ESTIMATE)
