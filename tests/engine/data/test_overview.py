"""The overview of a dataset version: gaps, relations of columns, and parts of the split."""

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
from tests.engine.helpers import RecordingReport, csv_file, profiled
from workers.engine.data import profile_size
from workers.engine.data.mapped_columns import MappedColumns
from workers.engine.data.overview import correlation, overview, repeats
from workers.engine.data.overview.information import binned, mutual_information
from workers.engine.data.texts import text_array
from workers.engine.errors import BadData
from workers.engine.tasks.profile import run as run_profile
from workers.engine.tasks.split_overview import run as run_split_overview


def overview_of(folder: Path, text: str, **task: object) -> Overview:
    profiled(folder, source="csv", path=csv_file(folder, text), **task)
    return Overview.model_validate_json((folder / "overview.json").read_text())


def orders(rows: int = 400) -> str:
    """Return a CSV file: `price` follows `size`, `noise` follows nothing, and `gap` has gaps at the end."""
    rng = np.random.default_rng(0)
    lines = ["size,twice,noise,colour,gap,day,note,price"]
    for i in range(rows):
        size = float(rng.normal())
        gap = "" if i >= rows * 3 // 4 else f"{rng.normal():.3f}"
        note = "A Fine  Thing of wood" if i % 2 else f"number {i} of the things we sell"
        lines.append(
            f"{size:.4f},{-2 * size:.4f},{rng.normal():.4f},{'red' if size > 0 else 'blue'},{gap},"
            f"2026-{1 + i % 12:02}-03,{note},{3 * size + 0.01 * rng.normal():.4f}"
        )
    return "\n".join(lines) + "\n"


def test_gaps_are_located_by_blocks_of_rows(tmp_path: Path) -> None:
    found = overview_of(tmp_path, orders())
    assert found.gaps is not None and found.gaps.block_rows == 10
    (gap,) = found.gaps.columns
    assert (gap.column, gap.missing) == ("gap", 100)
    assert gap.percent == (0,) * 30 + (100,) * 10


def test_columns_that_determine_the_target_have_most_information(tmp_path: Path) -> None:
    found = overview_of(tmp_path, orders())
    bits = {each.column: each.bits for each in found.information}
    assert [each.column for each in found.information[:2]] == ["size", "twice"]
    assert bits["colour"] == pytest.approx(1, abs=0.2), "two colours are one bit"
    assert bits["noise"] < 0.1
    assert "note" not in bits and "price" not in bits
    assert found.sample_rows == 400


def test_correlations_are_of_pairs_that_have_both_values(tmp_path: Path) -> None:
    found = overview_of(tmp_path, orders()).correlations
    assert found is not None and found.numeric == 5
    at = {name: place for place, name in enumerate(found.columns)}
    assert found.values[at["size"]][at["twice"]] == pytest.approx(-1, abs=0.001)
    assert found.values[at["size"]][at["price"]] == pytest.approx(1, abs=0.001)


def test_correlations_equal_those_of_numpy_also_with_gaps_and_huge_numbers() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=300), rng.normal(size=300)
    c = np.where(rng.random(300) < 0.3, np.nan, a * 1e200 + b * 1e199)
    constant = np.full(300, 0.1)
    found = correlation.correlate([a, b, c, constant])
    known = ~np.isnan(c)
    assert found[0, 1] == pytest.approx(np.corrcoef(a, b)[0, 1])
    assert found[0, 2] == pytest.approx(np.corrcoef(a[known], c[known] / 1e200)[0, 1])
    assert np.isnan(found[3]).all()


def test_independent_columns_have_next_to_no_information() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 15, 5_000), rng.integers(0, 15, 5_000)
    assert mutual_information(x, y) < 0.01
    assert mutual_information(x, x) == pytest.approx(np.log2(15), abs=0.05)


def test_codes_have_one_for_missing_values_and_one_for_rare_words() -> None:
    words = text_array(["a", "a", "", "b"] + [f"w{i}" for i in range(40)])
    codes = binned(words, "category")
    assert codes is not None
    assert codes[:4].tolist() == [1, 1, 0, 2] and codes.max() == 16
    dates = np.asarray(["2026-01-01", "NaT", "2026-02-01"], "datetime64[us]")
    assert binned(dates, "date").tolist() == [1, 0, 2]  # type: ignore[union-attr]
    assert binned(words, "text") is None


def test_the_target_is_described_in_each_part(tmp_path: Path) -> None:
    text = "a,b,y\n" + "".join(f"{i},{i % 7},{'yes' if i % 4 == 0 else 'no'}\n" for i in range(200))
    found = overview_of(tmp_path, text)
    assert found.classes == ("no", "yes")
    assert [(part.part, part.rows, part.counts) for part in found.parts] == [
        ("train", 120, (90, 30)),
        ("validation", 40, (30, 10)),
        ("test", 40, (30, 10)),
    ]
    numbers = overview_of(tmp_path, orders())
    assert [part.rows for part in numbers.parts] == [240, 80, 80]
    assert numbers.parts[0].mean is not None and numbers.parts[0].counts == ()


def test_rows_that_are_in_several_parts_are_counted(tmp_path: Path) -> None:
    # Each pair of rows has equal features; every third pair has two targets.
    lines = [
        f"{i // 2}.5,word {i // 2} {'x' * (i // 2 % 5)},{i // 2 % 2 if i // 2 % 3 else i % 2}"
        for i in range(400)
    ]
    found = overview_of(tmp_path, "a,b,y\n" + "\n".join(lines) + "\n")
    validation, test = found.repeats
    assert validation.exact > 20 and test.exact > 20
    assert 0 < test.exact_same_target < test.exact
    grouped = overview_of(
        tmp_path,
        "pair,a,b,y\n" + "\n".join(f"g{i // 2},{line}" for i, line in enumerate(lines)) + "\n",
        columns=[ColumnRequest(name="pair", role="group")],
    )
    assert [each.exact for each in grouped.repeats] == [0, 0]
    assert grouped.split.group == "pair"


def test_rows_are_nearly_equal_without_case_spaces_and_last_digits() -> None:
    columns = {
        "number": np.asarray([1.0, 1.0001, 5.0, 9.0]),
        "text": text_array(["A  b", "a b", "c", "d"]),
        "date": np.asarray(["2026-01-01T05", "2026-01-01T09", "2026-01-02", "NaT"], "datetime64[us]"),
        "y": np.asarray([0, 0, 1, 1]),
    }
    keys = repeats.keys_of_table(columns.__getitem__, ("number", "text", "date"), "y")
    assert keys.near is not None
    assert keys.exact[0] != keys.exact[1] and keys.near[0] == keys.near[1]
    assert len({*keys.near.tolist()}) == 3


def test_a_split_that_is_not_possible_is_said_and_the_rest_remains(tmp_path: Path) -> None:
    text = "g,a,y\n" + "".join(f"same,{i}.5,{i % 2}\n" for i in range(60))
    found = overview_of(tmp_path, text, columns=[ColumnRequest(name="g", role="group")])
    assert found.split_problem is not None and "needs at least 3" in found.split_problem
    assert found.parts == () and found.information


def test_images_have_parts_and_exact_repeats(tmp_path: Path) -> None:
    x = np.random.default_rng(0).integers(0, 2, (60, 2, 2)).astype(np.uint8)
    np.savez(tmp_path / "d.npz", image=x, y=np.arange(60) % 3)
    profiled(tmp_path, source="npz", path=str(tmp_path / "d.npz"))
    found = Overview.model_validate_json((tmp_path / "overview.json").read_text())
    assert [part.rows for part in found.parts] == [36, 12, 12]
    assert found.repeats[1].exact == 12, "of 16 pictures, each is in training"
    assert found.repeats[1].near is None and found.correlations is None


def test_a_sample_has_a_bounded_number_of_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overview, "CELLS", 1_000)
    assert len(overview.sample(500, 10, 20_000)) == 100
    assert len(overview.sample(500, 10_000)) == 1
    assert overview.sample(50, 10).tolist() == list(range(50))


def test_dates_and_texts_have_histograms(tmp_path: Path) -> None:
    file = profiled(tmp_path, source="csv", path=csv_file(tmp_path, orders()))
    columns = {column.name: column for column in Profile.model_validate(file.profile).columns}
    day, note = columns["day"], columns["note"]
    assert (day.earliest or "")[:10] == "2026-01-03" and (day.latest or "")[:10] == "2026-12-03"
    assert len(day.histogram) == 20 and sum(day.histogram) == 400
    assert sum(note.histogram) == 400 and note.min == 21
    assert note.values[0] == "of", "the word of most texts"


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
    found = Overview.model_validate_json((tmp_path / "overview.json").read_text())
    assert found.parts or found.split_problem


def reported(report: RecordingReport, role: str) -> list[str]:
    return [args[1] for args, _ in report.of("artifact") if args[0] == role]


def test_each_section_is_reported_as_soon_as_it_is_computed(tmp_path: Path) -> None:
    report = RecordingReport(tmp_path)
    task = ProfileTask(folder=str(tmp_path), source="csv", path=csv_file(tmp_path, orders(40)))
    run_profile(task, report)
    order = [args[0] for args, _ in report.of("artifact")]
    assert order == ["sample", "profile", *["overview"] * 5, "dataset"]
    files = reported(report, "overview")
    found = [Overview.model_validate_json((tmp_path / file).read_text()) for file in files]
    assert len(set(files)) == 5, "a reported file does not change"
    assert [each.pending for each in found] == [get_args(Section)[i + 1 :] for i in range(5)]
    assert found[0].gaps is not None and not found[0].information and found[1].information
    assert found[3].parts and not found[3].repeats and found[4].repeats
    sample = Sample.model_validate_json((tmp_path / "sample.json").read_text())
    assert sample.rows == 40 and sample.columns[:2] == ("size", "twice") and len(sample.preview) >= 10


@pytest.mark.parametrize("source", ["table", "digits"])
def test_the_parts_of_any_split_are_compared_as_those_of_the_profile(tmp_path: Path, source: str) -> None:
    if source == "digits":
        file = profiled(tmp_path / "profile", bundled="digits")
    else:
        file = profiled(tmp_path / "profile", source="csv", path=csv_file(tmp_path, orders(60)))
    own = Overview.model_validate_json((tmp_path / "profile" / "overview.json").read_text())
    report = RecordingReport(tmp_path)
    run_split_overview(SplitOverviewTask(folder=str(tmp_path), dataset=file, split=Split()), report)
    files = reported(report, "overview")
    first, last = (SplitOverview.model_validate_json((tmp_path / each).read_text()) for each in files)
    assert first.pending == ("repeats",) and first.parts == own.parts
    assert last == SplitOverview(**{name: getattr(own, name) for name in SplitOverview.model_fields})
    run_split_overview(SplitOverviewTask(folder=str(tmp_path), dataset=file, split=Split(test=0.3)), report)
    other = SplitOverview.model_validate_json((tmp_path / "overview.json").read_text())
    assert other.split.test == 0.3 and other.parts != own.parts


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
