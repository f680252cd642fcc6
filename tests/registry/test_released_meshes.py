"""Releases name the mesh of a version that layout rules divided, and nothing else about its devices."""

from typing import Any

import pytest

from jobs import signing
from jobs.actions.registry import promotions
from jobs.actions.registry.releases import _released_mesh
from jobs.messages.release import ReleasedMesh, ReleasedVersion, SignedRelease
from jobs.models import Job, ModelVersion, ReleaseRecord
from tests.factories import SEARCH, make_experiment, make_job
from tests.registry.conftest import Yard
from workers.serving.releases.verification import ReleaseVerifier

MESH: dict[str, Any] = {
    "devices": ["gpu:2", "gpu:3", "gpu:4", "gpu:5"],
    "shape": [2, 2],
    "axis_names": ["data", "model"],
    "memory_fraction": 0.9,
    "layout": [{"match": ".*kernel", "axes": [None, "model"]}],
}
RELEASED = {
    "shape": [2, 2],
    "axis_names": ["data", "model"],
    "batch_axis": "data",
    "layout": [{"match": ".*kernel", "axes": [None, "model"]}],
}


def trained(yard: Yard, mesh: dict[str, Any] | None) -> Job:
    """Make a training with a mesh that has ended."""
    spec = SEARCH if mesh is None else {**SEARCH, "mesh": mesh}
    experiment = make_experiment(project=yard.project, by=yard.owner, spec=spec)
    return make_job(by=yard.owner, experiment=experiment, state="completed")


def released(yard: Yard, mesh: dict[str, Any] | None) -> ReleasedVersion:
    """Return a version as it is released after a training on a mesh, read from the signed release."""
    version = yard.version()
    version.source_job = trained(yard, mesh)
    version.save()
    promotions.approve(yard.pending(version), by=yard.approver)
    signed = SignedRelease.model_validate(ReleaseRecord.objects.get().body)
    verifier = ReleaseVerifier.from_text(signing.public_key_file().read_bytes())
    return verifier.verify(signed).versions[0]


def test_a_release_names_axes_and_rules(yard: Yard) -> None:
    assert released(yard, MESH).mesh == ReleasedMesh.model_validate(RELEASED)


@pytest.mark.parametrize("mesh", [None, {**MESH, "layout": []}], ids=["no mesh", "no rules"])
def test_a_version_that_no_rules_divide_has_none(yard: Yard, mesh: dict[str, Any] | None) -> None:
    version = released(yard, mesh)
    assert version.mesh is None
    # Servers of earlier releases know no such field.
    assert "mesh" not in version.model_dump(mode="json")


def test_a_version_that_needs_its_code_has_none(yard: Yard) -> None:
    assert _released_mesh(ModelVersion(source_job=trained(yard, MESH), needs_code=False)) is not None
    assert _released_mesh(ModelVersion(source_job=trained(yard, MESH), needs_code=True)) is None


def test_an_upload_has_none() -> None:
    assert _released_mesh(ModelVersion(source_job=None)) is None
