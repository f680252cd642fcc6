"""Splits: deterministic, disjoint, and according to the spec."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.spec.sections.data import Split
from workers.engine.data.split import split
from workers.engine.errors import BadSpec

Y = np.repeat([0, 1, 2], [60, 30, 10])


@settings(deadline=None)
@given(rows=st.integers(3, 300), seed=st.integers(0, 99), stratify=st.booleans())
def test_the_parts_are_disjoint_and_complete(rows: int, seed: int, stratify: bool) -> None:
    y = np.zeros(rows, dtype=int)
    parts = split(y, {}, "multiclass", Split(seed=seed, stratify=stratify))
    everything = np.sort(np.concatenate(parts))
    np.testing.assert_array_equal(everything, np.arange(rows))


def test_the_same_seed_gives_the_same_parts_and_another_one_others() -> None:
    first, again, other = (split(Y, {}, "multiclass", Split(seed=s)) for s in (1, 1, 2))
    np.testing.assert_array_equal(first.test, again.test)
    assert not np.array_equal(first.test, other.test)


def test_stratified_parts_have_the_proportions_of_the_whole() -> None:
    parts = split(Y, {}, "multiclass", Split())
    for part in (parts.validation, parts.test):
        np.testing.assert_array_equal(np.bincount(Y[part]), [12, 6, 2])


@pytest.mark.parametrize("spec", [Split(validation=0.9, test=0.05), Split(validation=0.05, test=0.9)])
def test_each_part_has_rows_of_a_class_of_three(spec: Any) -> None:
    y = np.repeat([0, 1], 3)
    for part in split(y, {}, "multiclass", spec):
        np.testing.assert_array_equal(np.bincount(y[part]), [1, 1])


def test_a_group_is_never_in_two_parts() -> None:
    groups = np.arange(100) // 7
    parts = split(Y, {"patient": groups}, "multiclass", Split(group="patient"))
    groups_of_parts = [set(groups[part]) for part in parts]
    assert not (
        groups_of_parts[0] & groups_of_parts[1]
        or groups_of_parts[0] & groups_of_parts[2]
        or groups_of_parts[1] & groups_of_parts[2]
    )
    assert 14 <= len(parts.test) <= 28


@settings(deadline=None)
@given(
    sizes=st.lists(st.integers(1, 60), min_size=3, max_size=8),
    seed=st.integers(0, 99),
    shares=st.sampled_from([(0.2, 0.2), (0.05, 0.05), (0.9, 0.05), (0.05, 0.9)]),
)
def test_each_part_has_a_group_of_three_or_more_of_any_size(
    sizes: list[int], seed: int, shares: tuple[float, float]
) -> None:
    groups = np.repeat(np.arange(len(sizes)), sizes)
    spec = Split(group="patient", seed=seed, validation=shares[0], test=shares[1])
    parts = split(np.zeros(len(groups), int), {"patient": groups}, "multiclass", spec)
    groups_by_part = [{*groups[part].tolist()} for part in parts]
    assert all(groups_by_part) and sum(map(len, groups_by_part)) == len(sizes)
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(len(groups)))


def test_the_newest_rows_test_and_the_oldest_train() -> None:
    moments = np.arange(100)[::-1].astype("datetime64[D]")
    parts = split(Y, {"day": moments}, "multiclass", Split(time="day"))
    assert moments[parts.train].max() < moments[parts.validation].min()
    assert moments[parts.validation].max() < moments[parts.test].min()


def test_a_column_may_name_the_parts() -> None:
    names = np.array(["train", "Val", "TEST", "train"])
    parts = split(Y[:4], {"part": names}, "multiclass", Split(column="part"))
    assert [list(part) for part in parts] == [[0, 3], [1], [2]]


@pytest.mark.parametrize(
    ("columns", "spec", "words"),
    [
        ({}, Split(group="patient"), "names column 'patient'"),
        (
            {"patient": np.repeat(["a", "b"], 50)},
            Split(group="patient"),
            "column 'patient' has 2 different values; a split by group needs at least 3, one each",
        ),
        ({"patient": np.repeat(["a"], 100)}, Split(group="patient"), "column 'patient' has 1 value; a split"),
        ({"part": np.array(["train", "x"] * 50)}, Split(column="part"), "has the value x in row 2"),
        ({"part": np.array(["train", "test"] * 50)}, Split(column="part"), "validation part empty"),
    ],
)
def test_an_impossible_split_is_rejected_with_the_reason(
    columns: dict[str, Any], spec: Any, words: str
) -> None:
    with pytest.raises(BadSpec, match=words):
        split(Y, columns, "multiclass", spec)
