"""From each kind of data to a served model's answers, in one process: profile, train, export, answer.

Whole installations with the same steps are in `tests/flow` and `tests/browser`, for some kinds of data.
"""

import datetime
import io
import json
import math
import random
from pathlib import Path
from typing import Any

import pytest

from tests.engine.sequences import sensor_csv, sensor_rows
from tests.engine.short_yard import ShortYard
from tests.engine.texts import json_lines
from tests.flow.specs import spec
from tests.imported_model import save_imported_model
from webapp.demo import table

UNKNOWN = "another value, which no row has"
TREES = {"kind": "template", "template": "trees", "args": {}}


@pytest.fixture
def yard(db: None, tmp_path: Path) -> ShortYard:
    return ShortYard(tmp_path / "work")


def registered(model: str) -> dict[str, Any]:
    return {"register": {"model": model, "what": ["best"]}}


def roles_of(version: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {column["name"]: (column["role"], column["type"]) for column in version["columns"]}


def test_a_table_with_gaps_categories_dates_and_texts(yard: ShortYard) -> None:
    version = yard.upload("orders", "orders.csv", orders())
    roles = roles_of(version)
    assert roles.pop("order_id")[0] == "id"
    assert roles.pop("returned")[0] == "target"
    assert roles == {
        "age": ("feature", "number"), "city": ("feature", "category"), "ordered": ("feature", "date"),
        "gift": ("feature", "boolean"), "comment": ("feature", "text"),
    }  # fmt: skip
    job = yard.train(spec("orders", model=TREES, fit={"epochs": 15}, after=registered("orders")))
    assert job["results"]["metrics"]["test"]["accuracy"] > 0.8, job["results"]
    row = {"age": None, "city": UNKNOWN, "ordered": "2026-05-01", "gift": True}
    asked = [
        {**row, "comment": text}
        for text in ("the box was damaged, poor colour", "a good shirt, it fits well")
    ]
    (back,), (kept_probability,), _ = yard.answers("orders", [*asked, yard.example("orders")])
    assert kept_probability < 0.5 < back


def orders() -> bytes:
    """Return a shop's orders: an id, ages with gaps, cities, dates, and texts that decide the target."""
    rng = random.Random(1)
    lines = ["order_id,age,city,ordered,gift,comment,returned"]
    for row in range(400):
        is_back = row % 2
        words = rng.sample(["the", "shirt", "was", "box", "colour", "it", "my", "size"], 4)
        words += rng.sample(["damaged", "poor", "late"] if is_back else ["good", "fits", "well"], 2)
        rng.shuffle(words)
        age = "" if row % 9 == 4 else str(rng.randrange(18, 80))
        day = datetime.date(2026, 1, 1) + datetime.timedelta(rng.randrange(300))
        gift, answer = rng.choice(["true", "false"]), "yes" if is_back else "no"
        lines.append(f"A{row:04},{age},City{rng.randrange(60)},{day},{gift},{' '.join(words)},{answer}")
    return "\n".join(lines).encode()


def test_the_table_of_the_demo_is_read_as_the_demo_uses_it(yard: ShortYard) -> None:
    version = yard.upload("returns", "returns.csv", table.orders(), target=table.TARGET)
    assert (version["rows"], version["schema"]["task"]) == (table.ROWS, "binary")
    assert {"age", "city", "size", "comment"} <= set(version["schema"]["features"])
    assert table.TARGET not in version["schema"]["features"]


def test_a_regression_in_latin_1_with_semicolons_and_decimal_commas(yard: ShortYard) -> None:
    version = yard.upload("mieten", "mieten.csv", rents())
    assert {name: kind for name, (_, kind) in roles_of(version).items()} == {
        "Stadtteil": "category", "Wohnfläche": "number", "Einzug": "date", "Miete": "number",
    }  # fmt: skip
    yard.train(spec("mieten", model=TREES, fit={"epochs": 15}, after=registered("mieten")))
    flats = [{"Wohnfläche": 30, "Stadtteil": "Mitte"}, {"Wohnfläche": 99.5, "Stadtteil": UNKNOWN}]
    asked = [{**flat, "Einzug": "2025-03-01"} for flat in flats]
    (small,), (large,), _ = yard.answers("mieten", [*asked, yard.example("mieten")])
    assert 300 < small < large < 2_000


def rents() -> bytes:
    """Return flat rents, the first one small, with points between thousands and gaps."""
    rng = random.Random(2)
    lines = ["Stadtteil;Wohnfläche;Einzug;Miete"]
    for row in range(300):
        part, area = rng.choice(["Köpenick", "Neukölln", "Mitte"]), 30 + 80 * rng.random() * (row > 0)
        rent = area * (16 if part == "Mitte" else 11) + rng.gauss(0, 20)
        day = datetime.date(2025, 1, 1) + datetime.timedelta(rng.randrange(400))
        size = "" if row % 20 == 7 else f"{area:.1f}".replace(".", ",")
        price = f"{rent:,.2f}".translate({ord(","): ".", ord("."): ","})
        lines.append(f"{part};{size};{day:%d.%m.%Y};{price}")
    return "\n".join(lines).encode("cp1252")


def test_dates_of_america_are_read_by_one_rule_from_the_file_to_the_answer(yard: ShortYard) -> None:
    version = yard.upload("sales", "sales.csv", sales())
    assert roles_of(version)["sold"] == ("feature", "date")
    (sold,) = [column for column in version["schema"]["columns"] if column["name"] == "sold"]
    assert sold["date_format"] == "%m/%d/%Y"
    yard.train(spec("sales", model=TREES, fit={"epochs": 15}, after=registered("sales")))
    asked = [{"sold": day} for day in ("03/04/2025 4:30 PM", "2025-03-04T16:30:00", "09/04/2025 8:00 AM")]
    (march,), (same,), (september,), _ = yard.answers("sales", [*asked, yard.example("sales")])
    assert march == same
    assert march < 0.5 < september


def sales() -> bytes:
    """Return sales, which are returned in the second half of the year."""
    start, lines = datetime.datetime(2025, 1, 1, 8), ["sold,returned"]
    for row in range(360):
        moment = start + datetime.timedelta(days=row, minutes=97 * (row % 7))
        lines.append(f"{moment:%m/%d/%Y %I:%M %p},{'yes' if moment.month > 6 else 'no'}")
    return "\n".join(lines).encode()


def test_a_classification_of_texts_in_json_lines(yard: ShortYard) -> None:
    columns = json.dumps([{"name": "title", "role": "ignore"}])
    content = json_lines(240).encode()
    version = yard.upload("reviews", "reviews.jsonl", content, target="opinion", columns=columns)
    assert roles_of(version)["review"] == ("feature", "text")
    model = {"kind": "template", "template": "text_bow", "args": {}}
    fit = {"epochs": 40, "batch_size": 32, "learning_rate": 0.01, "seed": 3}
    yard.train(spec("reviews", model=model, fit=fit, after=registered("opinions")))
    asked = [{"review": text} for text in ("The room was GREAT!", "the view was awful, very", "", None)]
    answers = yard.answers("opinions", [*asked, yard.example("opinions")])
    (good,), (bad,), (empty,), (missing,), _ = answers
    assert bad < 0.5 < good
    assert empty == missing


def test_a_time_series(yard: ShortYard) -> None:
    version = yard.upload("load", "load.csv", loads())
    assert roles_of(version)["time"] == ("feature", "date")
    columns = [{"name": "time", "role": "time"}]
    yard.ada.post("/datasets/load/versions/1/read?project=flow", {"columns": columns})
    version = yard.until_ready("load", 2, project="flow")
    assert roles_of(version)["time"] == ("time", "date")
    data = {"dataset": "load", "features": ["time", "temperature", "load_yesterday"]}
    yard.train(spec(data=data, model=TREES, fit={"epochs": 30}, after=registered("load")))
    row = {"temperature": None}
    hours = [{**row, "time": f"2026-03-01T{hour:02}:00", "load_yesterday": load_at(hour)} for hour in (3, 15)]
    (night,), (day,), _ = yard.answers("load", [*hours, yard.example("load")])
    assert night < 400 < day


def load_at(hour: int) -> float:
    return 400 + 90 * math.sin((hour - 9) / 24 * math.tau)


def loads() -> bytes:
    """Return an hourly load over 25 days, with the temperature, the load a day before, and gaps."""
    rng = random.Random(5)
    start, text = datetime.datetime(2026, 1, 1), io.StringIO()
    text.write("time,temperature,load_yesterday,load\n")
    for hour in range(24 * 25):
        before = f"{load_at(hour % 24) + rng.gauss(0, 5):.1f}" if hour >= 24 else ""
        temperature = "" if hour % 50 == 3 else f"{rng.gauss(8, 4):.1f}"
        now = load_at(hour % 24) + rng.gauss(0, 5)
        text.write(f"{start + datetime.timedelta(hours=hour)},{temperature},{before},{now:.1f}\n")
    return text.getvalue().encode()


def test_windows_of_a_table_pass_the_gate_of_a_slice_and_answer(yard: ShortYard) -> None:
    columns = [
        {"name": "hour", "role": "time"},
        {"name": "sensor", "role": "group"},
        {"name": "load", "role": "ignore"},
    ]
    yard.upload("sensors", "sensors.csv", sensor_csv().encode(), target="warm", columns=json.dumps(columns))
    body = spec(
        data={"dataset": "sensors", "window": {"rows": 3}},
        model={"kind": "template", "template": "sequence", "args": {"units": 8, "kind": "conv"}},
        fit={"epochs": 40, "batch_size": 16, "learning_rate": 0.03, "seed": 3},
        after=registered("warmth"),
    )
    yard.train(body)
    rules = {"slices": [{"column": "sensor", "value": "a", "min_rows": 2}]}
    yard.grace.put("/models/warmth/gates", {"rules": rules, "comment": "A test."})
    yard.promote("warmth", 1)
    hours = [row for row in sensor_rows(shuffled=False) if row["sensor"] == "b"]
    rows = [{"power": row["power"], "mode": row["mode"]} for row in hours]
    windows = [rows[start : start + 3] for start in range(20)]
    asked = [{"rows": window} for window in (*windows, rows[:12], rows[9:12])]
    served, (*answers, whole, last) = yard.predict("warmth", asked)
    assert served == 1
    right = [(answer[0] > 0.5) == (hours[start + 2]["warm"] == "yes") for start, answer in enumerate(answers)]
    assert sum(right) >= 15
    assert whole == last


def test_a_version_of_an_imported_model_is_fine_tuned_and_its_alias_followed(
    yard: ShortYard, tmp_path: Path
) -> None:
    yard.bundle("iris")
    file = tmp_path / "imported.keras"
    save_imported_model(file)
    yard.ada.post("/models", {"project": "flow", "name": "imported"})
    yard.ada.upload("/models/imported/versions", {}, "imported.keras", file.read_bytes())
    base = yard.until_validated("imported", 1)
    yard.ada.put("/models/imported/aliases/champion", {"version": 1})
    args = {"head": "new", "freeze_to": "body/low"}
    alias = {"kind": "version", "model": "imported", "alias": "champion", "args": args}
    yard.train(spec(model=alias, after=registered("tuned")))
    tuned = yard.ada.get("/models/tuned/versions/1")
    source = tuned["lineage"]["fine_tuned_from"]
    assert (source["model"], source["number"], source["digest"]) == ("imported", 1, base["digest"])
    yard.promote("tuned", 1)
    served, answers = yard.predict("tuned", [[5.1, 3.5, 1.4, 0.2], [6.7, 3.0, 5.2, 2.3]])
    assert served == 1
    assert [len(row) for row in answers] == [3, 3]
