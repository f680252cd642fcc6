"""From some kinds of data to a served model's answers, in one process: profile, train, export, answer.

Whole installations with the same steps are in `tests/flow` and `tests/browser`, for some kinds of data.
"""

import datetime
import random
from pathlib import Path
from typing import Any

import pytest

from tests.engine.short_yard import ShortYard
from tests.flow.specs import spec
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
