"""A dataset version's overview: gaps, relations between columns, and the split's parts."""

from pathlib import Path

import numpy as np
import pytest

from jobs.messages.overview import Overview
from jobs.spec.data.columns import ColumnRequest
from jobs.spec.data.profile import Profile
from tests.engine.helpers import csv_file, profiled
from workers.engine.data.overview import correlation, overview, repeats
from workers.engine.data.overview.information import binned, mutual_information
from workers.engine.data.texts import text_array


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
    content = overview_of(tmp_path, orders())
    assert content.gaps is not None and content.gaps.block_rows == 10
    (gap,) = content.gaps.columns
    assert (gap.column, gap.missing) == ("gap", 100)
    assert gap.percent == (0,) * 30 + (100,) * 10


def test_columns_that_determine_the_target_have_most_information(tmp_path: Path) -> None:
    content = overview_of(tmp_path, orders())
    bits = {entry.column: entry.bits for entry in content.information}
    assert [entry.column for entry in content.information[:2]] == ["size", "twice"]
    assert bits["colour"] == pytest.approx(1, abs=0.2), "two colours are one bit"
    assert bits["noise"] < 0.1
    assert "note" not in bits and "price" not in bits
    assert content.sample_rows == 400


def test_correlations_are_of_pairs_that_have_both_values(tmp_path: Path) -> None:
    correlations = overview_of(tmp_path, orders()).correlations
    assert correlations is not None and correlations.numeric == 5
    at = {name: place for place, name in enumerate(correlations.columns)}
    assert correlations.values[at["size"]][at["twice"]] == pytest.approx(-1, abs=0.001)
    assert correlations.values[at["size"]][at["price"]] == pytest.approx(1, abs=0.001)


def test_correlations_equal_those_of_numpy_also_with_gaps_and_huge_numbers() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=300), rng.normal(size=300)
    c = np.where(rng.random(300) < 0.3, np.nan, a * 1e200 + b * 1e199)
    constant = np.full(300, 0.1)
    coefficients = correlation.correlate([a, b, c, constant])
    present_rows = ~np.isnan(c)
    assert coefficients[0, 1] == pytest.approx(np.corrcoef(a, b)[0, 1])
    assert coefficients[0, 2] == pytest.approx(np.corrcoef(a[present_rows], c[present_rows] / 1e200)[0, 1])
    assert np.isnan(coefficients[3]).all()


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
    content = overview_of(tmp_path, text)
    assert content.classes == ("no", "yes")
    assert [(part.part, part.rows, part.counts) for part in content.parts] == [
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
    content = overview_of(tmp_path, "a,b,y\n" + "\n".join(lines) + "\n")
    validation, test = content.repeats
    assert validation.exact > 20 and test.exact > 20
    assert 0 < test.exact_same_target < test.exact
    grouped = overview_of(
        tmp_path,
        "pair,a,b,y\n" + "\n".join(f"g{i // 2},{line}" for i, line in enumerate(lines)) + "\n",
        columns=[ColumnRequest(name="pair", role="group")],
    )
    assert [repeat.exact for repeat in grouped.repeats] == [0, 0]
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
    content = overview_of(tmp_path, text, columns=[ColumnRequest(name="g", role="group")])
    assert content.split_problem is not None and "needs at least 3" in content.split_problem
    assert content.parts == () and content.information


def test_images_have_parts_and_exact_repeats(tmp_path: Path) -> None:
    x = np.random.default_rng(0).integers(0, 2, (60, 2, 2)).astype(np.uint8)
    np.savez(tmp_path / "d.npz", image=x, y=np.arange(60) % 3)
    profiled(tmp_path, source="npz", path=str(tmp_path / "d.npz"))
    content = Overview.model_validate_json((tmp_path / "overview.json").read_text())
    assert [part.rows for part in content.parts] == [36, 12, 12]
    assert content.repeats[1].exact == 12, "of 16 pictures, each is in training"
    assert content.repeats[1].near is None and content.correlations is None


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
