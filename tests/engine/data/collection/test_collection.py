"""Every file of the collection is understood as expected."""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jobs.errors import BadInput
from jobs.spec.data.profile import Profile
from jobs.upload_formats import format_of_upload
from tests.engine.data.collection import (
    compressed_files,
    dates,
    documents,
    encodings,
    exports,
    files,
    gaps,
    headers,
    identifiers,
    labels,
    magnitudes,
    numbers,
    quotes,
    sentinels,
    times,
    unusual_dates,
    wide,
)
from tests.engine.data.collection.case import TableCase
from tests.engine.helpers import profiled
from workers.engine.data.store import read_arrays
from workers.engine.errors import BadData

MODULES = (
    compressed_files,
    dates,
    documents,
    encodings,
    exports,
    files,
    gaps,
    headers,
    identifiers,
    labels,
    magnitudes,
    numbers,
    quotes,
    sentinels,
    times,
    wide,
    unusual_dates,
)
CASES: tuple[TableCase, ...] = tuple(case for module in MODULES for case in module.CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_file_of_the_collection_is_understood(tmp_path: Path, case: TableCase) -> None:
    path = tmp_path / case.name
    path.write_bytes(case.content)
    if case.refusal is not None:
        with pytest.raises((BadData, BadInput)) as refusal:
            _profile(path, case)
        assert case.refusal in str(refusal.value)
        return
    profile, stored = _profile(path, case)
    columns = {column.name: column for column in profile.columns}
    for name, expected in case.columns.items():
        column = columns[name]
        assert column.type == expected.type, name
        assert expected.role in (None, column.role), (name, column.role, column.reason)
        assert expected.missing in (None, column.missing), (name, column.missing)
        if expected.values is not None:
            assert _plain(stored[name]) == list(expected.values), name
    assert {name: columns[name].gap_words for name in case.gap_words} == case.gap_words
    assert {name: columns[name].gap_counts for name in case.gap_counts} == case.gap_counts
    described = profile.file.model_dump() if profile.file is not None else {}
    assert {name: described[name] for name in case.file} == case.file
    dialect = {name: getattr(profile.dialect, name, None) for name in case.dialect}
    assert dialect == case.dialect
    sentences = [*profile.findings, *(offer.finding for offer in profile.offers)]
    for text in case.findings:
        assert any(text in sentence for sentence in sentences), (text, sentences)
    for text in case.absent:
        assert not any(text in sentence for sentence in sentences), (text, sentences)
    changes = [offer.change.model_dump(mode="json", exclude_none=True) for offer in profile.offers]
    for name, change in case.offers:
        assert {"name": name, **change} in changes, changes


def _profile(path: Path, case: TableCase) -> tuple[Profile, dict[str, Any]]:
    source = case.source or format_of_upload(path, case.name)
    file = profiled(
        path.parent / "version", source=source, path=str(path), columns=case.requests, target=case.target
    )
    arrays = read_arrays(Path(file.path))
    stored = {str(name): arrays[f"column_{place}"] for place, name in enumerate(arrays["columns"])}
    return Profile.model_validate(file.profile), stored


def _plain(column: Any) -> list[Any]:
    """Return stored values as Python values, dates as ISO texts, and None for missing ones."""
    array = np.asarray(column)
    values: Iterable[Any] = (np.datetime_as_string(array) if array.dtype.kind == "M" else array).tolist()
    return [None if _is_missing(value) else value for value in values]


def _is_missing(value: Any) -> bool:
    return value in ("", "NaT") or (isinstance(value, float) and math.isnan(value))
