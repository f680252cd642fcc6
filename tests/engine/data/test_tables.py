"""Tables with gaps, categories, dates and texts: column roles and types, and models that take them."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jobs.messages.task import DatasetFile
from jobs.spec.data.columns import ColumnOptions
from jobs.spec.data.profile import Profile
from jobs.spec.experiment import ExperimentSpec
from tests.engine.helpers import csv_file, profiled, spec_of
from tests.present import present
from workers.engine.data.dataset import load_dataset
from workers.engine.data.store import read_arrays
from workers.engine.errors import BadData, BadSpec

WORDS = ("good", "bad", "nice", "slow", "quick", "broken", "fine", "great", "poor", "clean")


def customers(rows: int = 300, cities: int = 60) -> str:
    """Return a CSV file: an id, numbers with gaps, categories, dates, a text, and a target."""
    rng = random.Random(0)
    lines = ["customer_id,age,city,plan,bought,income,active,review,churn"]
    for i in range(rows):
        age = "" if i % 10 == 3 else f"{rng.gauss(45, 12):.1f}"
        city = "" if i % 17 == 5 else f"City{i % cities}"
        review = " ".join(rng.choice(WORDS) for _ in range(5))
        day = "" if i % 29 == 7 else f"2026-{1 + i % 12:02}-{1 + i % 28:02}"
        churn = "yes" if "bad" in review else "no"
        plan, active = rng.choice(["free", "pro"]), rng.choice(["true", "false"])
        lines.append(f'C{i:04},{age},{city},{plan},{day},"{20_000 + 37 * i:,}",{active},{review},{churn}')
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> DatasetFile:
    folder = tmp_path_factory.mktemp("table")
    return profiled(folder, source="csv", path=csv_file(folder, customers()))


def columns_of(file: DatasetFile) -> dict[str, tuple[str | None, str | None]]:
    return {
        column.name: (column.role, column.type) for column in Profile.model_validate(file.profile).columns
    }


def of_text(folder: Path, text: str, **task: object) -> DatasetFile:
    return profiled(folder, source="csv", path=csv_file(folder, text), **task)


def test_role_and_type_of_each_column_are_proposed(table: DatasetFile) -> None:
    assert columns_of(table) == {
        "customer_id": ("id", "category"),
        "age": ("feature", "number"),
        "city": ("feature", "category"),
        "plan": ("feature", "category"),
        "bought": ("feature", "date"),
        "income": ("feature", "number"),
        "active": ("feature", "boolean"),
        "review": ("feature", "text"),
        "churn": ("target", "category"),
    }


@pytest.mark.parametrize("role", [None, "time", "ignore"])
def test_rows_in_the_order_of_a_date_are_found(tmp_path: Path, role: str | None) -> None:
    rows = [f"2026-01-{day:02},{day % 3},{day % 2}\n" for day in range(1, 31)]
    columns = [] if role is None else [{"name": "day", "role": role}]
    findings = of_text(tmp_path, "day,load,y\n" + "".join(rows), columns=columns).profile["findings"]
    hint = "Rows follow each other in the order of column 'day'."
    assert any(finding.startswith(hint) for finding in findings) == (role is None)


def test_rows_against_the_order_of_a_date_are_no_series(tmp_path: Path) -> None:
    rows = [f"2026-01-{day:02},{day % 3},{day % 2}\n" for day in range(30, 0, -1)]
    findings = of_text(tmp_path, "day,load,y\n" + "".join(rows)).profile["findings"]
    assert not any("order of column" in finding for finding in findings)


def test_a_column_that_is_left_out_has_a_reason(table: DatasetFile) -> None:
    reasons = {column["name"]: column["reason"] for column in table.profile["columns"] if column["reason"]}
    assert reasons == {"customer_id": "it has another value in every row, so it identifies rows"}
    (offer,) = (offer for offer in table.profile["offers"] if offer["change"]["role"] == "feature")
    assert "Column 'customer_id' was taken for an identifier: it has another value" in offer["finding"]
    # One sentence is enough.
    assert not any("customer_id" in finding for finding in table.profile["findings"])


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1,234.5", "12", "", "-3"], "number"),
        (["12 %", "7.5%", "", "100 %"], "number"),
        (["True", "false", "", "TRUE"], "boolean"),
        (["2026-11-01", "2026-11-02 10:00:00", "", "2026-01-01"], "date"),
        (["01.11.2026", "24.12.2026", "", "02.03.2026"], "date"),
        (["11/30/2026", "12/24/2026", "", "01/13/2026"], "date"),
        (["2026-11-01", "soon", "", "2026-01-01"], "category"),
        (["12", "twelve", "", "1"], "category"),
        (["red", "green", "", "blue"], "category"),
    ],
)
def test_types_are_recognized_in_texts(tmp_path: Path, values: list[str], kind: str) -> None:
    rows = "".join(f'"{value}",{i},{i % 2}\n' for i, value in enumerate(values * 3))
    file = of_text(tmp_path, f"a,b,y\n{rows}")
    assert columns_of(file)["a"][1] == kind


def test_numbers_and_dates_of_texts_have_their_values(tmp_path: Path) -> None:
    file = of_text(tmp_path, 'a,p,d,y\n"1,234.5",12 %,24.12.2026,0\n"-2",3 %,01.02.2026,1\n5,1 %,,0\n')
    stored = read_arrays(Path(file.path))
    np.testing.assert_array_equal(stored["column_0"], [1234.5, -2, 5])
    np.testing.assert_array_equal(stored["column_1"], [12, 3, 1])
    np.testing.assert_array_equal(
        stored["column_2"], np.array(["2026-12-24", "2026-02-01", "NaT"], "datetime64[us]")
    )


def test_a_person_corrects_role_and_type(tmp_path: Path) -> None:
    requests = [
        {"name": "zip", "type": "category"},
        {"name": "note", "role": "ignore"},
        {"name": "id", "role": "feature"},
    ]
    rows = "".join(f"{i},{10_000 + i % 3},n{i % 4},{i % 2}\n" for i in range(30))
    file = of_text(tmp_path, f"id,zip,note,y\n{rows}", columns=requests)
    assert columns_of(file) == {
        "id": ("feature", "integer"),
        "zip": ("feature", "category"),
        "note": ("ignore", "category"),
        "y": ("target", "integer"),
    }
    assert file.profile["columns"][1]["values"] == ["10000", "10001", "10002"]


@pytest.mark.parametrize(
    ("requests", "message"),
    [
        ([{"name": "b", "type": "number"}], "column 'b' is not of type number: .* row 1 has one"),
        ([{"name": "b", "type": "date"}], "column 'b' is not of type date"),
        ([{"name": "a", "type": "image"}], "cannot be of type image"),
        ([{"name": "c", "role": "ignore"}], "no column 'c'; there are a, b, y"),
        (
            [{"name": "a", "role": "ignore"}, {"name": "b", "role": "id"}],
            "no column can be used as a feature",
        ),
    ],
)
def test_a_correction_that_does_not_fit_the_values_is_refused(
    tmp_path: Path, requests: list[dict[str, Any]], message: str
) -> None:
    with pytest.raises(BadData, match=message):
        of_text(tmp_path, "a,b,y\n1,one,0\n2,two,1\n3,three,0\n", columns=requests)


def test_a_requested_target_is_the_target(tmp_path: Path) -> None:
    file = of_text(tmp_path, "a,b,y\n1,5,0\n2,6,1\n3,5,0\n", columns=[{"name": "b", "role": "target"}])
    assert file.profile["target"] == "b"
    assert columns_of(file)["y"] == ("feature", "integer")


def test_an_experiment_may_choose_other_features_and_another_target(table: DatasetFile) -> None:
    data = present(spec_of("t").data).model_copy(update={"target": "plan", "features": ("age", "churn")})
    loaded = load_dataset(table, data)
    assert (loaded.profile.target, loaded.profile.features) == ("plan", ("age", "churn"))
    assert loaded.x.shape == (300, 2 + 4)
    assert loaded.profile.class_labels == ("free", "pro")


def test_preprocessing_is_chosen_by_column(table: DatasetFile) -> None:
    options = {"city": {"encode": "hash", "buckets": 8}, "age": {"impute": "constant", "constant": 0.0}}
    data = present(
        ExperimentSpec.model_validate(
            {
                "data": {"dataset": "t", "preprocessing": options},
                "model": {"kind": "template", "template": "mlp"},
            }
        ).data
    )
    loaded = load_dataset(table, data)
    assert loaded.profile.embedded[0].size == 10
    assert loaded.x[3, 0] == 0.0
    wrong = data.model_copy(update={"preprocessing": {"plan": ColumnOptions(encode="words")}})
    with pytest.raises(BadSpec, match="column 'plan' of type category cannot be encoded as words"):
        load_dataset(table, wrong)


@pytest.mark.parametrize(
    ("column", "kind"),
    [("1.5,2,3", "integer"), ("1,2,3", "boolean"), ('"12.5 %",1 %,2 %', "integer")],
)
def test_numbers_that_a_request_of_the_type_could_not_send_are_refused(
    tmp_path: Path, column: str, kind: str
) -> None:
    rows = "".join(f"{value},{i},{i % 2}\n" for i, value in enumerate(column.split(",")))
    with pytest.raises(BadData, match=f"column 'a' is not of type {kind}: row"):
        of_text(tmp_path, f"a,b,y\n{rows}", columns=[{"name": "a", "type": kind}])


def test_gaps_and_whole_numbers_are_accepted_as_integers_and_booleans(tmp_path: Path) -> None:
    requests = [{"name": "a", "type": "integer"}, {"name": "b", "type": "boolean"}]
    file = of_text(tmp_path, "a,b,y\n1,0,0\n,1,1\n3,,0\n", columns=requests)
    assert [columns_of(file)[name][1] for name in "ab"] == ["integer", "boolean"]


def test_a_column_without_a_date_cannot_have_the_type_date(tmp_path: Path) -> None:
    with pytest.raises(
        BadData, match=r"not of type date, .*: row 2 has soon, .* such as|for example %d/%m/%Y"
    ):
        of_text(tmp_path, "a,b,y\nn/a,1,0\nsoon,2,1\nx,3,0\n", columns=[{"name": "a", "type": "date"}])


def test_mixed_formats_of_dates_are_each_read_with_a_finding(tmp_path: Path) -> None:
    text = "a,b,y\n2026-01-01,1,0\n24.12.2026,2,1\n2026-01-03,3,0\n"
    for request in ([], [{"name": "a", "type": "date"}]):
        file = of_text(tmp_path, text, columns=request)
        assert columns_of(file)["a"][1] == "date"
        assert file.profile["columns"][0]["date_format"] == "%Y-%m-%d or %d.%m.%Y"
        assert "Column 'a' has dates in 2 formats" in " ".join(file.profile["findings"])


def test_a_list_of_features_leaves_one_target(tmp_path: Path) -> None:
    file = of_text(
        tmp_path,
        "a,b,y\n1,5,0\n2,6,1\n3,5,0\n",
        target="y",
        features=("a",),
        columns=[{"name": "b", "role": "target"}],
    )
    assert columns_of(file)["b"] == ("ignore", "integer")
