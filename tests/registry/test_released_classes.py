"""Releases have a field for versions of which several classes may apply to one row."""

import pytest

from jobs.actions.registry.releases import _released_version
from jobs.queries.registry import versions
from tests.registry.conftest import Yard


@pytest.mark.parametrize(
    ("task", "labels", "is_multilabel"),
    [
        ("multilabel", ["big", "red"], True),
        ("multilabel", [], False),
        ("multiclass", ["big", "red"], False),
        (None, ["a"], False),
    ],
)
def test_only_labels_that_apply_together_are_released_as_such(
    yard: Yard, monkeypatch: pytest.MonkeyPatch, task: str | None, labels: list[str], is_multilabel: bool
) -> None:
    monkeypatch.setattr("jobs.actions.registry.releases.task_of", lambda version: task)
    version = yard.version()
    version.class_labels = labels
    released = _released_version(version)
    assert released.multilabel is is_multilabel
    # Servers of earlier releases know no such field.
    assert ("multilabel" in released.model_dump(mode="json")) is is_multilabel


def test_a_spec_that_no_longer_parses_does_not_stop_a_release(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(version: object) -> None:
        raise ValueError("an earlier spec")

    monkeypatch.setattr("jobs.actions.registry.releases.task_of", fail)
    version = yard.version()
    version.class_labels = ["a", "b"]
    assert not _released_version(version).multilabel
    assert versions.task_of(version) is None
