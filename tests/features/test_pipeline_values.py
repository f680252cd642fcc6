"""Wrong and unusual values in a pipeline: refusals, gaps and bounds."""

import json
import math
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from jobs.spec.data.column_plans import plan_column
from jobs.spec.data.columns import ColumnOptions
from jobs.spec.data.features import DateFeature, Features, IndexFeature, NumberFeature
from jobs.spec.data.number_format import NumberFormat
from jobs.spec.data.profile import Column
from tests.features.making import ALL, COLUMNS, ROWS, plans
from workers.features.fitting import fit
from workers.features.ngrams import frequencies, occurrences
from workers.features.pipeline import Pipeline
from workers.features.values import TEXT, BadValue, TextRule, words_from_json


@pytest.fixture(scope="module")
def pipeline() -> Pipeline:
    return Pipeline(fit(plans(), COLUMNS, ALL))


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"age": "31"}, "column 'age' takes numbers, but row 2 has '31'"),
        ({"age": True}, "column 'age' takes numbers"),
        ({"age": [1]}, "column 'age' takes numbers"),
        ({"age": 10**400}, "column 'age' takes numbers"),
        ({"rooms": 2.5}, "column 'rooms' takes whole numbers, but row 2 has 2.5"),
        ({"member": "yes"}, "column 'member' takes true or false"),
        ({"plan": {"a": 1}}, "column 'plan' takes words"),
        ({"plan": "\ud800"}, "column 'plan' has a text that is not valid Unicode"),
        ({"review": 5}, "column 'review' takes texts"),
        ({"bought": "yesterday"}, "column 'bought' takes dates such as"),
        ({"bought": 20261101}, "column 'bought' takes dates such as"),
        ({"colour": "red"}, "row 2 has the unknown column 'colour'; the columns are age, rooms"),
    ],
)
def test_a_wrong_value_names_column_and_row(pipeline: Pipeline, row: dict[str, object], message: str) -> None:
    with pytest.raises(BadValue, match=message):
        pipeline.of_rows([{}, row])


def test_a_row_without_any_value_is_valid(pipeline: Pipeline) -> None:
    assert np.isfinite(pipeline.of_rows([{}])).all()


def test_values_that_are_not_finite_are_missing(pipeline: Pipeline) -> None:
    stored = pipeline.of_stored(COLUMNS | {"age": np.full(6, np.inf)})
    assert stored[0].tolist() == pipeline.of_rows([ROWS[0] | {"age": math.inf}])[0].tolist()
    assert np.isfinite(stored).all()


@pytest.mark.parametrize(
    "change",
    [
        {"columns": []},
        {"columns": [{"kind": "one_hot", "column": "a", "type": "category", "words": ["b", "c"], "size": 3}]},
        {
            "columns": [
                {
                    "kind": "date",
                    "column": "a",
                    "type": "date",
                    "origin": "x",
                    "fill": "x",
                    "indicator": False,
                }
            ]
        },
        {"columns": [{"kind": "hash", "column": "a", "type": "category", "size": 9}] * 2},
        {
            "columns": [
                {"kind": "tokens", "column": "a", "type": "text", "words": [], "size": 2, "length": 9**9}
            ]
        },
        {
            "columns": [
                {
                    "kind": "words_and_characters",
                    "column": "a",
                    "type": "text",
                    "words": {"analyzer": "words", "ngrams": [], "weights": [], "size": 1},
                    "characters": {"analyzer": "words", "ngrams": [], "weights": [], "size": 1},
                }
            ]
        },
        {"columns": [{"kind": "lambda", "column": "a", "type": "category"}]},
    ],
)
def test_a_pipeline_that_cannot_be_executed_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Features.model_validate(change)


def test_an_option_that_does_not_fit_a_column_is_refused() -> None:
    with pytest.raises(ValueError, match="column 'age' of type number cannot be encoded as hash"):
        plans(age=ColumnOptions(encode="hash"))
    with pytest.raises(ValueError, match="column 'plan' of type category has no mean; impute is for numbers"):
        plans(plan=ColumnOptions(impute="mean"))


@pytest.mark.parametrize("options", [{"encode": "one_hot"}, {"encode": "embedding"}, {"encode": "hash"}])
@pytest.mark.parametrize("stored", [np.int64, np.float64])
def test_whole_numbers_can_be_categories(options: dict[str, object], stored: type) -> None:
    numbers: Any = np.array([7] * 6 + [12] * 5 + [-3] * 5, stored)
    column = Column(name="code", dtype="int64", type="integer", distinct=3, frequent=3)
    plan = plan_column(column, ColumnOptions.model_validate(options))
    coded = Pipeline(fit([plan], {"code": numbers}, np.arange(len(numbers))))
    x = coded.of_stored({"code": numbers})
    assert len(np.unique(x, axis=0)) == 3
    assert x.tobytes() == coded.of_rows([{"code": int(number)} for number in numbers]).tobytes()
    assert coded.of_rows([{"code": None}]).tobytes() != coded.of_rows([{"code": 99}]).tobytes()
    with pytest.raises(BadValue, match="column 'code' takes whole numbers"):
        coded.of_rows([{"code": "7"}])


@pytest.mark.parametrize("value", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-01:00"])
def test_a_date_outside_of_the_calendar_is_a_wrong_value(pipeline: Pipeline, value: str) -> None:
    with pytest.raises(BadValue, match="column 'bought' takes dates"):
        pipeline.of_rows([{"bought": value}])


def test_dates_that_no_request_can_send_are_missing() -> None:
    dates = np.array(["-0044-03-15", "12026-01-01", "2026-01-01"], "datetime64[us]")
    (plan,) = (plan for plan in plans() if plan.column == "bought")
    fitted = fit([plan], {"bought": dates}, np.arange(3))
    (bought,) = fitted.columns
    assert isinstance(bought, DateFeature) and bought.origin == "2026-01-01T00:00:00.000000"
    x = Pipeline(fitted).of_stored({"bought": dates})
    assert x[:, -1].tolist() == [1, 1, 0]


def test_a_number_that_no_32_bit_float_holds_is_missing(pipeline: Pipeline) -> None:
    stored = pipeline.of_stored(COLUMNS | {"age": np.full(6, 1e300)})
    assert stored[0].tolist() == pipeline.of_rows([ROWS[0] | {"age": 1e300}])[0].tolist()
    assert stored[0].tolist() == pipeline.of_rows([ROWS[0] | {"age": None}])[0].tolist()
    huge = fit([plans()[0]], {"age": np.array([1e308, 1.7e308, 3e38, 3e38])}, np.arange(4))
    (age,) = Features.model_validate_json(huge.model_dump_json()).columns
    assert isinstance(age, NumberFeature) and age.fill == pytest.approx(3e38)


def test_values_of_another_type_are_named(pipeline: Pipeline) -> None:
    for wrong in (COLUMNS["bought"], COLUMNS["city"]):
        with pytest.raises(BadValue, match="column 'age' takes numbers, but these data have"):
            pipeline.of_stored(COLUMNS | {"age": wrong})


def test_parts_of_words_have_room_however_few_words_repeat() -> None:
    column = Column(name="review", dtype="text", type="text", ngrams=1)
    assert plan_column(column, ColumnOptions(encode="characters")).size == 1_000
    assert plan_column(column, ColumnOptions(encode="words")).size == 1


def test_frequent_words_are_found_among_more_words_than_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.features.ngrams.MAX_COUNTED", 40)
    counts = frequencies((f"often word{i}" for i in range(200)), "words")
    assert counts["often"] == 200
    assert len(counts) <= 40 + 3
    assert counts == frequencies((f"often word{i}" for i in range(200)), "words")


def test_values_that_repeat_are_found_among_more_values_than_are_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("workers.features.ngrams.MAX_COUNTED", 40)
    monkeypatch.setattr("workers.features.fitting.PART_ROWS", 10)
    users = np.array([word for i in range(200) for word in ("often", f"user{i}")], TEXT)
    column = Column(name="a", dtype="text", type="category", distinct=201, frequent=1)
    plan = plan_column(column, ColumnOptions(encode="embedding"))
    counted: list[int] = []

    def count(names: Any) -> Any:
        names_counted = occurrences(names)
        counted.append(len(names_counted))
        return names_counted

    monkeypatch.setattr("workers.features.fitting.occurrences", count)
    (feature,) = fit([plan], {"a": users}, np.arange(len(users))).columns
    assert isinstance(feature, IndexFeature) and feature.words == ("often",)
    assert counted[0] <= 40


WORDS = np.array(["red", "blue", "red", "green", "blue"], TEXT)


@pytest.mark.parametrize(
    ("encode", "expected"),
    [("one_hot", 4), ("embedding", 4), ("words", 9), ("words_and_characters", 17), ("tokens", 9)],
)
def test_each_part_of_a_long_column_and_each_text_is_announced(
    monkeypatch: pytest.MonkeyPatch, encode: Any, expected: int
) -> None:
    kind = "category" if encode in ("one_hot", "embedding") else "text"
    column = Column(name="a", dtype="text", type=kind, distinct=3, ngrams=9, length=4)
    plan = plan_column(column, ColumnOptions(encode=encode))
    monkeypatch.setattr("workers.features.fitting.PART_ROWS", 2)
    announced: list[None] = []
    fit([plan], {"a": WORDS}, np.arange(5), lambda: announced.append(None))
    assert len(announced) == expected


NGRAMS = {"kind": "ngrams", "column": "a", "type": "text", "analyzer": "words", "ngrams": ["b"], "size": 1}


NUMBER = {"kind": "number", "column": "a", "type": "number", "indicator": False}


DATE = {"kind": "date", "column": "a", "type": "date", "indicator": False}


@pytest.mark.parametrize(
    "column",
    [
        *(NGRAMS | {"weights": [weight]} for weight in (0.0, 1e-200, 1e308, math.inf, math.nan, -1.0)),
        *(NUMBER | {"fill": fill} for fill in (math.nan, math.inf, 1e39)),
        *(
            DATE | {"origin": day, "fill": day}
            for day in ("20260101", "2026-W01-1", "2026-01-01T00:00:00+01:00")
        ),
    ],
)
def test_numbers_and_dates_that_break_the_arithmetic_are_refused(column: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Features.model_validate_json(json.dumps({"columns": [column]}))


def test_a_hundred_thousand_errors_are_not_collected() -> None:
    column = NGRAMS | {"ngrams": ["b"] * 50_000, "weights": ["x"] * 50_000, "size": 50_000}
    with pytest.raises(ValidationError) as refused:
        Features.model_validate_json(json.dumps({"columns": [column] * 3}))
    assert refused.value.error_count() <= 2


def _one_hot(kind: str, words: list[str], **fields: str) -> Pipeline:
    feature = {
        "kind": "one_hot",
        "column": "a",
        "type": kind,
        "words": words,
        "size": len(words) + 2,
        **fields,
    }
    return Pipeline(Features.model_validate({"columns": [feature]}))


def test_the_words_of_earlier_models_are_read_as_before() -> None:
    earlier = _one_hot("category", ["yes ", "yes"])
    assert earlier.of_json({"a": ["yes ", "yes", " yes"]}, 3).argmax(axis=1).tolist() == [2, 3, 1]
    assert "writing" not in earlier.features.model_dump_json()
    rounded = _one_hot("integer", [str(2**53)])
    assert rounded.of_json({"a": [2**53 + 1]}, 1).argmax(axis=1).tolist() == [2]
    assert rounded.of_stored({"a": np.array([2**53 + 1])}).argmax(axis=1).tolist() == [2]


def test_whole_numbers_as_words_are_exact() -> None:
    pipeline = _one_hot("integer", [str(2**53 + 1), "7"], writing="trimmed")
    assert pipeline.of_json({"a": [2**53 + 1, 2**53, 7.0, None]}, 4).argmax(axis=1).tolist() == [2, 1, 3, 0]
    assert pipeline.of_stored({"a": np.array([2**53 + 1, 2**53, 7])}).argmax(axis=1).tolist() == [2, 1, 3]


def test_a_long_whole_number_is_the_same_word_as_a_text_and_as_a_number() -> None:
    rule = TextRule(NumberFormat(thousands=","))
    sent = [2**53 + 1, "9007199254740993", "9,007,199,254,740,993", "-9007199254740993", "1e3", "-"]
    words = words_from_json(sent, "integer", "x", rule).tolist()
    assert words == ["9007199254740993"] * 3 + ["-9007199254740993", "1000", ""]


def test_all_writings_of_a_folded_word_are_one() -> None:
    pipeline = _one_hot("category", ["<=50K", "café", "1"], writing="folded")
    sent = ["<=50k.", " <=50K", "CAFÉ", "cafe\u0301", "01", 1.0, "1.0", "other", "\u00a0"]
    assert pipeline.of_json({"a": sent}, len(sent)).argmax(axis=1).tolist() == [2, 2, 3, 3, 4, 4, 4, 1, 0]


@pytest.mark.parametrize("writing", ["trimmed", "folded"])
def test_a_hashed_word_has_the_number_of_its_other_writings(writing: str) -> None:
    feature = {"kind": "hash", "column": "a", "type": "category", "size": 500, "writing": writing}
    pipeline = Pipeline(Features.model_validate({"columns": [feature]}))
    numbers = pipeline.of_json({"a": ["Rome", " Rome ", "ROME", ""]}, 4)[:, 0].tolist()
    assert numbers[0] == numbers[1]
    assert (numbers[0] == numbers[2]) == (writing == "folded")
    assert numbers[3] == 0
