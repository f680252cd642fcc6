"""Many texts are read as numbers at once, as each one is read in a request."""

import numpy as np
import pytest

from jobs.spec.data.gap_words import is_gap
from jobs.spec.data.number_format import NumberFormat, read_number
from workers.engine.data.reading.number_arrays import MANY
from workers.engine.data.reading.number_texts import format_of, look_at, read_numbers
from workers.engine.data.texts import text_array

ENDINGS = ["", "k", " M", "bn", ""]


@pytest.mark.parametrize(
    ("form", "texts"),
    [
        (NumberFormat(magnitudes=True), [f"{row}.5{ENDINGS[row % 5]}" for row in range(MANY + 5)]),
        (
            NumberFormat(decimal=",", currency="€", magnitudes=True),
            [f"{row},5{ENDINGS[row % 5]} €" for row in range(MANY + 5)],
        ),
        (
            NumberFormat(percent=True, hundredths=True),
            [f"{row}.25%" if row % 2 else f"0.{row:05}" for row in range(MANY + 5)],
        ),
    ],
    ids=["magnitudes", "euros", "hundredths"],
)
def test_many_numbers_are_read_as_each_one(form: NumberFormat, texts: list[str]) -> None:
    assert format_of(look_at((text, 1) for text in texts), ".") == form
    numbers = read_numbers(text_array(texts), form, is_gap)
    assert not numbers.misfits
    np.testing.assert_array_equal(numbers.values, [read_number(text, form) for text in texts])


@pytest.mark.parametrize(
    ("text", "number"),
    [("1.005k", 1005.0), ("45K", 45_000.0), ("-1.5 Mio.", -1.5e6), ("2e3k", 2e6), ("7", 7.0), ("5 kg", None)],
)
def test_an_ending_multiplies_without_rounding(text: str, number: float | None) -> None:
    assert read_number(text, NumberFormat(magnitudes=True)) == number


@pytest.mark.parametrize("fields", [{"magnitudes": True, "unit": "kg"}, {"hundredths": True}])
def test_endings_that_exclude_each_other_are_refused(fields: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"magnitudes|hundredths"):
        NumberFormat.model_validate(fields)
