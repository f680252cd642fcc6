"""Overviews for large and extreme tables, and for splits."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from jobs.kinds.profile.payload import ProfileTask
from jobs.kinds.split_overview.payload import SplitOverviewTask
from jobs.messages.overview import Overview, Sample, Section, SplitOverview
from jobs.spec.data.columns import ColumnRequest
from jobs.spec.data.profile import Profile
from jobs.spec.sections.data import Split
from tests.engine.data.test_overview import orders, overview_of
from tests.engine.helpers import RecordingReport, csv_file, profiled
from workers.engine.data import profile_size
from workers.engine.data.mapped_columns import MappedColumns
from workers.engine.errors import BadData
from workers.engine.tasks.profile import run as run_profile
from workers.engine.tasks.split_overview import run as run_split_overview


def test_a_table_with_thousands_of_columns_is_described(tmp_path: Path) -> None:
    names = [f"measure_{i:04}" for i in range(8_000)]
    rng = np.random.default_rng(0)
    columns: dict[str, Any] = {
        **{name: rng.normal(size=60) for name in names},
        "y": np.arange(60) % 2,
        **{f"empty_{i}": np.full(60, np.nan) for i in range(100)},
    }
    np.savez(tmp_path / "wide.npz", **columns)
    file = profiled(tmp_path, source="npz", path=str(tmp_path / "wide.npz"))
    profile = Profile.model_validate(file.profile)
    assert len(profile.columns) == 8_101 and len(profile.features) == 8_000
    assert len(json.dumps(file.profile)) <= profile_size.MAX_PROFILE_BYTES
    assert profile.columns[0].histogram and not profile.columns[7_999].histogram
    assert "70 more columns are left out of the features" in " ".join(profile.findings)
    text = (tmp_path / "overview.json").read_text()
    assert len(text) < 100_000
    assert len(Overview.model_validate_json(text).information) == 30


def test_a_description_that_stays_too_large_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(profile_size, "MAX_PROFILE_BYTES", 500)
    with pytest.raises(BadData, match="the description of its 8 columns has"):
        overview_of(tmp_path, orders())


RNG = np.random.default_rng(3)


EXTREMES: tuple[Callable[[int], Any], ...] = (
    lambda n: np.full(n, np.inf),
    lambda n: RNG.choice([1e308, -1e308, 5e-324, 0, np.inf, np.nan], n),
    lambda n: RNG.integers(-(2**63), 2**63 - 1, n),
    lambda n: RNG.integers(0, 2, n).astype(bool),
    lambda n: np.datetime64("0001-01-01", "us") + RNG.integers(0, 2**50, n).astype("timedelta64[us]"),
    lambda n: np.asarray(["", "é" * 30, "[1]", '["a"]', "a;b", "  A  b"])[RNG.integers(0, 6, n)],
    lambda n: np.full(n, 0.1),
    lambda n: np.full(n, ""),
    lambda n: np.asarray([f"{i} word three more {i}" for i in range(n)]),
    lambda n: RNG.integers(0, 255, n).astype(np.uint8),
    lambda n: RNG.normal(size=n).astype(np.float16),
    lambda n: np.asarray([f"[{i % 3}]" for i in range(n)]),
)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("rows", [3, 30, 200])
@pytest.mark.parametrize("target", range(len(EXTREMES)))
def test_extreme_values_are_described_or_refused(tmp_path: Path, rows: int, target: int) -> None:
    columns = {f"c{i}": make(rows) for i, make in enumerate(EXTREMES)}
    np.savez(tmp_path / "d.npz", **columns, y=EXTREMES[target](rows))
    try:
        profiled(
            tmp_path, source="npz", path=str(tmp_path / "d.npz"), target="y", rows_without_target="leave_out"
        )
    except BadData:
        return
    overview = Overview.model_validate_json((tmp_path / "overview.json").read_text())
    assert overview.parts or overview.split_problem


def reported(report: RecordingReport, role: str) -> list[str]:
    return [args[1] for args, _ in report.of("artifact") if args[0] == role]


def test_each_section_is_reported_as_soon_as_it_is_computed(tmp_path: Path) -> None:
    report = RecordingReport(tmp_path)
    task = ProfileTask(folder=str(tmp_path), source="csv", path=csv_file(tmp_path, orders(40)))
    run_profile(task, report)
    order = [args[0] for args, _ in report.of("artifact")]
    assert order == ["sample", "profile", *["overview"] * 5, "dataset"]
    files = reported(report, "overview")
    overviews = [Overview.model_validate_json((tmp_path / file).read_text()) for file in files]
    assert len(set(files)) == 5, "a reported file does not change"
    assert [overview.pending for overview in overviews] == [get_args(Section)[i + 1 :] for i in range(5)]
    assert overviews[0].gaps is not None and not overviews[0].information and overviews[1].information
    assert overviews[3].parts and not overviews[3].repeats and overviews[4].repeats
    sample = Sample.model_validate_json((tmp_path / "sample.json").read_text())
    assert sample.rows == 40 and sample.columns[:2] == ("size", "twice") and len(sample.preview) >= 10


@pytest.mark.parametrize("source", ["table", "digits"])
def test_the_parts_of_any_split_are_compared_as_those_of_the_profile(tmp_path: Path, source: str) -> None:
    if source == "digits":
        file = profiled(tmp_path / "profile", bundled="digits")
    else:
        file = profiled(tmp_path / "profile", source="csv", path=csv_file(tmp_path, orders(60)))
    overview = Overview.model_validate_json((tmp_path / "profile" / "overview.json").read_text())
    report = RecordingReport(tmp_path)
    run_split_overview(SplitOverviewTask(folder=str(tmp_path), dataset=file, split=Split()), report)
    files = reported(report, "overview")
    first, last = (SplitOverview.model_validate_json((tmp_path / name).read_text()) for name in files)
    assert first.pending == ("repeats",) and first.parts == overview.parts
    assert last == SplitOverview(**{name: getattr(overview, name) for name in SplitOverview.model_fields})
    run_split_overview(SplitOverviewTask(folder=str(tmp_path), dataset=file, split=Split(test=0.3)), report)
    other = SplitOverview.model_validate_json((tmp_path / "overview.json").read_text())
    assert other.split.test == 0.3 and other.parts != overview.parts


def test_the_overview_of_a_split_reads_only_the_columns_that_it_compares(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    lines = [f"{i},{i % 7},{rng.normal():.6f},note {i},{i % 2}" for i in range(60)]
    file = profiled(
        tmp_path / "profile",
        source="csv",
        path=csv_file(tmp_path, "\n".join(["day,shop,size,note,y", *lines]) + "\n"),
        target="y",
        columns=(ColumnRequest(name="note", role="ignore"),),
    )
    read: list[str] = []
    column = MappedColumns.column

    def recorded(self: MappedColumns, name: str) -> np.ndarray:
        read.append(name)
        return column(self, name)

    monkeypatch.setattr(MappedColumns, "column", recorded)
    monkeypatch.setattr("workers.engine.data.store.read_columns", None)
    split = Split(group="shop")
    run_split_overview(
        SplitOverviewTask(folder=str(tmp_path), dataset=file, split=split), RecordingReport(tmp_path)
    )
    assert SplitOverview.model_validate_json((tmp_path / "overview.json").read_text()).repeats
    assert {"shop", "y"} <= {*read} and "note" not in read
