"""Five kinds of one's own data, each from its file to a served model that answers raw rows, without code.

The first one is released on the pages, as in the whole flow, the others by REST.
"""

import datetime
import io
import math
import random
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.walk.cast import Cast
from tests.browser.walk.own_data import (
    ask,
    asked_by_the_command,
    give_role,
    open_try_it,
    release,
    shown_roles,
    train,
    upload,
)
from tests.engine.texts import json_lines
from tests.flow.yard import RunningYard
from tests.images import folders, zipped

pytestmark = [pytest.mark.flow, pytest.mark.timeout(1800)]


UNKNOWN = "another value, which no row has"


def test_a_table_with_gaps_categories_dates_and_texts(cast: Cast) -> None:
    upload(cast.ada, "orders.csv", orders())
    roles = shown_roles(cast.ada)
    assert roles["order_id"].role == "id"
    assert roles["returned"].role == "target"
    assert {name: each.type for name, each in roles.items() if each.role == "feature"} == {
        "age": "number", "city": "category", "ordered": "date", "gift": "boolean", "comment": "text",
    }  # fmt: skip
    expect(cast.ada.page.get_by_text("left out: it has another value in every row")).to_be_visible()
    model = train(cast.ada, "Trees", epochs=40)
    release(cast.ada, cast.grace, model)
    open_try_it(cast.ada, model)
    page = cast.ada.page
    page.get_by_label("city", exact=True).select_option(label=UNKNOWN)
    page.get_by_label("age", exact=True).fill("")
    page.get_by_label("comment", exact=True).fill("the box was damaged, poor colour")
    assert ask(cast.ada).inner_text() == "yes"
    page.get_by_label("comment", exact=True).fill("a good shirt, it fits well")
    expect(ask(cast.ada)).to_have_text("no")
    cast.ada.see("own-table-try")
    assert len(asked_by_the_command(cast.ada)) == 1


def orders() -> bytes:
    """Return orders of a shop: an id, ages with gaps, cities, dates, and texts that decide the target."""
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


def test_a_regression_in_latin_1_with_semicolons_and_decimal_commas(yard: RunningYard, cast: Cast) -> None:
    upload(cast.ada, "mieten.csv", rents())
    expect(cast.ada.page.get_by_label("Delimiter")).to_contain_text("detected: semicolon")
    expect(cast.ada.page.get_by_label("Encoding")).to_contain_text("detected: Latin-1")
    expect(cast.ada.page.get_by_label("Decimal sign")).to_contain_text("detected: comma")
    assert {name: each.type for name, each in shown_roles(cast.ada).items()} == {
        "Stadtteil": "category", "Wohnfläche": "number", "Einzug": "date", "Miete": "number",
    }  # fmt: skip
    model = train(cast.ada, "Trees", epochs=40)
    yard.promote(model, 1)
    open_try_it(cast.ada, model)
    small = float(ask(cast.ada).inner_text())
    cast.ada.page.get_by_label("Wohnfläche").fill("99.5")
    cast.ada.page.get_by_label("Stadtteil").select_option(label=UNKNOWN)
    large = float(ask(cast.ada).inner_text())
    assert 300 < small < large < 2_000
    expect(cast.ada.card("Answer")).to_contain_text("Miete")
    assert len(asked_by_the_command(cast.ada)[0]) == 1


def rents() -> bytes:
    """Return rents of flats, the first one small, with points between thousands and gaps."""
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


def test_a_zip_of_images_in_folders(yard: RunningYard, cast: Cast, tmp_path: Path) -> None:
    files = folders(count=40)
    upload(cast.ada, "colours.zip", zipped(tmp_path / "colours.zip", files).read_bytes())
    expect(cast.ada.page.get_by_role("img", name="images of green")).to_be_visible()
    model = train(cast.ada, "Convolutional network", epochs=40, learning_rate=0.01)
    yard.promote(model, 1)
    open_try_it(cast.ada, model)
    new = folders(count=1, seed=9)
    for colour in ("red", "blue"):
        picture = {"name": "new.png", "mimeType": "image/png", "buffer": new[f"{colour}/{colour}_0.png"]}
        cast.ada.page.get_by_label("image", exact=True).set_input_files(picture)  # type: ignore[arg-type]
        expect(ask(cast.ada)).to_have_text(colour)
    cast.ada.see("own-images-try")


def test_a_classification_of_texts_in_json_lines(yard: RunningYard, cast: Cast) -> None:
    upload(cast.ada, "reviews.jsonl", json_lines(rows=300).encode())
    roles = shown_roles(cast.ada)
    assert (roles["review"], roles["opinion"].role) == (("feature", "text"), "target")
    model = train(cast.ada, "Bag of n-grams", epochs=40, learning_rate=0.01)
    yard.promote(model, 1)
    open_try_it(cast.ada, model)
    for text, opinion in (("the view was AWFUL, very slow", "bad"), ("a lovely room, great", "good")):
        cast.ada.page.get_by_label("review", exact=True).fill(text)
        expect(ask(cast.ada)).to_have_text(opinion)
    assert len(asked_by_the_command(cast.ada)) == 1


def test_a_time_series(yard: RunningYard, cast: Cast) -> None:
    upload(cast.ada, "load.csv", loads())
    assert shown_roles(cast.ada)["time"] == ("feature", "date")
    give_role(cast.ada, "time", "time")
    expect(cast.ada.page.get_by_text("time has the role time: the oldest rows train")).to_be_visible()
    model = train(cast.ada, "Trees", epochs=60, features="time, temperature, load_yesterday")
    yard.promote(model, 1)
    open_try_it(cast.ada, model)
    page = cast.ada.page
    page.get_by_label("temperature").fill("")
    answers = []
    for hour in ("03", "15"):
        page.get_by_label("time", exact=True).fill(f"2026-03-01T{hour}:00")
        page.get_by_label("load_yesterday").fill(str(load_at(int(hour))))
        answers.append(float(ask(cast.ada).inner_text()))
    night, day = answers
    assert night < 400 < day
    assert len(asked_by_the_command(cast.ada)[0]) == 1


def load_at(hour: int) -> float:
    return 400 + 90 * math.sin((hour - 9) / 24 * math.tau)


def loads() -> bytes:
    """Return an hourly load of 25 days, with the temperature and the load of the day before, and gaps."""
    rng = random.Random(5)
    start, text = datetime.datetime(2026, 1, 1), io.StringIO()
    text.write("time,temperature,load_yesterday,load\n")
    for hour in range(24 * 25):
        before = f"{load_at(hour % 24) + rng.gauss(0, 5):.1f}" if hour >= 24 else ""
        temperature = "" if hour % 50 == 3 else f"{rng.gauss(8, 4):.1f}"
        now = load_at(hour % 24) + rng.gauss(0, 5)
        text.write(f"{start + datetime.timedelta(hours=hour)},{temperature},{before},{now:.1f}\n")
    return text.getvalue().encode()
