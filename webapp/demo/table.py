"""The table demo: a shop's orders in a CSV file with an id, gaps, categories, dates and a text."""

import csv
import io
import random
from typing import Any

from jobs.spec.exports import DEFAULT_QUANTIZATION
from webapp.demo.client import Body
from webapp.demo.scenario import Row, Scenario

DATASET = MODEL = "returns"
TARGET = "returned"
CLASSES = ("no", "yes")
ROWS, CITIES = 2_000, 300
LEFT_OUT = (TARGET, "order_id")
GOOD = ("fits well", "nice colour", "good quality", "fast delivery", "as described")
BAD = ("too small", "wrong colour", "poor quality", "late delivery", "damaged box")
PEOPLE = ("my sister", "my father", "a friend", "the office", "our children", "myself")

SPEC: dict[str, Any] = {
    "version": 1,
    "data": {"dataset": DATASET, "split": {"validation": 0.2, "test": 0.2, "seed": 0, "stratify": True}},
    "model": {"kind": "template", "template": "mlp", "args": {"layers": 1}},
    "fit": {"epochs": 60, "batch_size": 64, "early_stopping": {"monitor": "val_loss", "patience": 5}},
    "search": {
        "algorithm": "random",
        "objective": {"metric": "val_accuracy", "direction": "max"},
        "max_trials": 8,
        "seed": 7,
        "space": [
            {"name": "units", "kind": "int", "min": 16, "max": 64, "step": 16},
            {"name": "dropout", "kind": "float", "min": 0.0, "max": 0.4, "step": 0.2},
            {"name": "learning_rate", "kind": "float", "min": 1e-3, "max": 1e-2, "sampling": "log"},
        ],
    },
    "after": {
        "retrain": {"top": 3, "epochs_factor": 1.2, "patience": 10, "epochs_cap": 100},
        "ensemble": {"method": "weighted", "weights": "nelder-mead"},
        "quantize": {"mode": DEFAULT_QUANTIZATION.name},
        "register": {"model": MODEL, "what": ["best", "ensemble", "quantized"]},
    },
}
WATCHED_SPEC = SPEC | {"fit": SPEC["fit"] | {"batch_size": 16}}


def orders() -> bytes:
    """Return the CSV file; the same bytes at each call."""
    rng = random.Random(0)  # noqa: S311  made-up data, no secret
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["order_id", "age", "city", "size", "ordered", "price", "gift", "comment", TARGET])
    for number in range(ROWS):
        writer.writerow(_order(rng, number))
    return text.getvalue().encode()


def _order(rng: random.Random, number: int) -> list[object]:
    age, city = rng.gauss(42, 12), rng.randrange(CITIES)
    size, gift = rng.choice(["S", "M", "L", "XL"]), rng.random() < 0.2
    bad = rng.random() < 0.45
    # Nearly every comment is different, as those of people are; only the first words decide.
    said = ", ".join(rng.sample(BAD if bad else GOOD, 3))
    comment = f"{said}, for {rng.choice(PEOPLE)}"
    chance = 2.2 * bad + 0.8 * (size == "XL") + 0.6 * (city % 5 == 0) - 0.5 * gift - (age - 42) / 40
    returned = chance + rng.gauss(0, 0.5) > 1.1
    return [
        f"R{number:05}",
        "" if rng.random() < 0.08 else f"{age:.0f}",
        "" if rng.random() < 0.03 else f"City {city}",
        size,
        f"2026-{rng.randrange(1, 11):02}-{rng.randrange(1, 29):02}",
        f"{rng.uniform(9, 1_900):,.2f}",
        str(gift).lower(),
        comment,
        CLASSES[returned],
    ]


def examples(preview: Body) -> tuple[list[Row], list[int]]:
    """Return the first rows by their column names, and their classes."""
    rows = preview["rows"]
    inputs = [{name: _sent(name, row[name]) for name in row if name not in LEFT_OUT} for row in rows]
    return list(inputs), [CLASSES.index(row[TARGET]) for row in rows]


def _sent(name: str, value: object) -> object:
    if value == "":
        return None
    return bool(value) if name == "gift" and value is not None else value


TABLE = Scenario(
    title="Returns search",
    dataset=DATASET,
    model=MODEL,
    spec=SPEC,
    watched_spec=WATCHED_SPEC,
    min_accuracy=0.8,
    examples=examples,
    things="orders",
    csv=orders,
)
