"""Many texts that are numbers are read at once as they are read one by one."""

import random
from collections.abc import Callable

import numpy as np
import pytest

from jobs.spec.data.columns import ColumnRequest
from workers.engine.data.reading import number_columns, number_texts
from workers.engine.data.reading.column_texts import ColumnTexts
from workers.engine.data.reading.column_types import TypedColumn
from workers.engine.data.reading.number_columns import NumberTexts
from workers.engine.data.texts import text_array

WRITINGS: dict[str, Callable[[float], str]] = {
    "dollars": lambda number: f"${number:,.2f}" if number > 0 else f"-${-number:,.2f}",
    "euros": lambda number: f"{number:,.2f} €".translate(str.maketrans(",.", ".,")),
    "accounts": lambda number: f"{number:,.2f}" if number > 0 else f"({-number:,.2f})",
    "units": lambda number: f"{number:.3f} kg",
    "units with a digit": lambda number: f"{number:.1f} m2",
    "shares": lambda number: f"{number:.1f}%",
    "thin spaces": lambda number: f"{number:,.1f}".replace(",", "\u2009"),
    "signs": lambda number: f"{number:+,.3f}",
    "exponents": lambda number: f"{number:.3e} kg",
    "points": lambda number: f"{abs(int(number))}." if number > 1 else f".{abs(int(number))}",
    "codes": lambda number: f"0{abs(int(number))}",
}
AWKWARD = ["$1,5", "len", "NA", "", "$-5", "-$-5", "+$ 5", "$1,23,456", "$ 1 234", "5 $", "$", "1e5", "$007"]


def read(texts: list[str]) -> TypedColumn:
    return NumberTexts("a", ColumnTexts(text_array(texts)), ColumnRequest(name="a"), ".").proposed()


@pytest.mark.parametrize("writing", [*WRITINGS, "awkward"])
def test_many_texts_are_the_same_numbers_as_few(writing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    random.seed(0)
    numbers = [random.uniform(-1, 1) * 10 ** random.randint(0, 7) for _ in range(400)]
    texts = [WRITINGS.get(writing, lambda number: f"${number:,.2f}")(number) for number in numbers]
    texts += AWKWARD if writing == "awkward" else []
    one_by_one = read(texts)
    monkeypatch.setattr(number_texts, "MANY", 1)
    monkeypatch.setattr(number_columns, "MANY", 1)
    at_once = read(texts)
    assert at_once._replace(values=None) == one_by_one._replace(values=None)
    if one_by_one.values is None:
        assert at_once.values is None
    else:
        np.testing.assert_array_equal(at_once.values, one_by_one.values)
