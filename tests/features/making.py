"""A small table with every column type, as stored columns and as JSON rows with the same values."""

import numpy as np

from jobs.spec.data.column_plans import ColumnPlan, plan_column
from jobs.spec.data.columns import ColumnOptions
from jobs.spec.data.profile import Column
from workers.features.values import TEXT, Array

TITLES = ["Good room, good view", "bad bed", "", "a Good  BED and a view", "bed", "a room"]

COLUMNS: dict[str, Array] = {
    "age": np.array([31.5, np.nan, 47.25, 8.0, 31.5, 60.0]),
    "rooms": np.array([3, 4, 2, 2, 5, 1], np.int64),
    "member": np.array([True, False, True, True, False, True]),
    "plan": np.array(["free", "pro", "", "free", "basic", "pro"], TEXT),
    "city": np.array(["Paris", "Rome", "Paris", "", "Oslo", "Paris"], TEXT),
    "street": np.array(["a", "b", "c", "d", "", "f"], TEXT),
    "bought": np.array(
        ["2026-11-01", "2024-02-29T13:30:00", "NaT", "2025-12-31", "2026-01-01", "2026-07-05"],
        "datetime64[us]",
    ),
    "review": np.array(
        ["very good room", "bad", "", "good room, good bed", "the bed was bad", "very bad bed"], TEXT
    ),
    "title": np.array(TITLES, TEXT),
    "note": np.array(TITLES[::-1], TEXT),
}
ROWS: list[dict[str, object]] = [
    {"age": 31.5, "rooms": 3, "member": True, "plan": "free", "city": "Paris", "street": "a",
     "bought": "2026-11-01", "review": "very good room"},
    {"rooms": 4, "member": False, "plan": "pro", "city": "Rome", "street": "b",
     "bought": "2024-02-29T14:30:00+01:00", "review": "bad"},
    {"age": 47.25, "rooms": 2.0, "member": 1, "plan": None, "city": "Paris", "street": "c", "bought": None,
     "review": ""},
    {"age": 8, "rooms": 2, "member": True, "plan": "free", "city": "", "street": "d",
     "bought": "2025-12-31T00:00Z", "review": "good room, good bed"},
    {"age": 31.5, "rooms": 5, "member": False, "plan": "basic", "city": "Oslo", "bought": "2026-01-01",
     "review": "the bed was bad"},
    {"age": 60.0, "rooms": 1, "member": True, "plan": "pro", "city": "Paris", "street": "f",
     "bought": "2026-07-05", "review": "very bad bed"},
]  # fmt: skip
for row, title, note in zip(ROWS, TITLES, TITLES[::-1], strict=True):
    row |= {"title": title or None, "note": note}
ALL = np.arange(len(ROWS))
DESCRIBED = {
    "age": Column(name="age", dtype="float64", type="number", missing=1),
    "rooms": Column(name="rooms", dtype="int64", type="integer"),
    "member": Column(name="member", dtype="bool", type="boolean"),
    "plan": Column(name="plan", dtype="text", type="category", distinct=3),
    "city": Column(name="city", dtype="text", type="category", distinct=3, frequent=3),
    "street": Column(name="street", dtype="text", type="category", distinct=5),
    "bought": Column(name="bought", dtype="datetime64[us]", type="date", missing=1),
    "review": Column(name="review", dtype="text", type="text", ngrams=6),
    "title": Column(name="title", dtype="text", type="text", ngrams=8, vocabulary=5, length=5),
    "note": Column(name="note", dtype="text", type="text", ngrams=8),
}
OPTIONS = {
    "city": ColumnOptions(encode="embedding"),
    "street": ColumnOptions(encode="hash", buckets=4),
    "title": ColumnOptions(encode="tokens"),
    "note": ColumnOptions(encode="words_and_characters"),
}


def plans(**options: ColumnOptions) -> tuple[ColumnPlan, ...]:
    """Return every column's plan; `options` replace single columns' options."""
    chosen = OPTIONS | options
    return tuple(plan_column(column, chosen.get(name, ColumnOptions())) for name, column in DESCRIBED.items())
