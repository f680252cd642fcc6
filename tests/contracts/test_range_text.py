"""A numeric range is one text, which has the same meaning as its fields."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from jobs.spec.problems import Problem, problems
from jobs.spec.space.range_text import ranges_of, read_range
from jobs.spec.space.search_space import Parameter, Space

SPACES: TypeAdapter[Space] = TypeAdapter(Space)
EXAMPLES = json.loads((Path(__file__).parents[1] / "web/scripts/ranges.json").read_text())


def parameter(**fields: Any) -> Parameter:
    return SPACES.validate_python([{"name": "x", **fields}])[0]


def refusal(**fields: Any) -> Problem:
    body = [{"name": "x", **fields}]
    with pytest.raises(ValidationError) as error:
        SPACES.validate_python(body)
    return problems(error.value, body)[0]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example["text"])
def test_the_text_that_the_form_writes_is_read_as_the_same_range(example: dict[str, Any]) -> None:
    kind = example["kind"]
    assert parameter(kind=kind, range=example["text"]) == parameter(kind=kind, **example["row"])


@pytest.mark.parametrize(
    "text",
    [
        "16…128 step 16",
        " 16 .. 128  STEP 16 ",
        "16 ... 128 step 16",
        "16 to 1.28e2 step 16.0",
        "linear 16 … 128 step 16",
    ],
)
def test_a_range_may_be_typed_in_several_ways(text: str) -> None:
    assert read_range(text, "int") == {"min": 16, "max": 128, "step": 16}


@pytest.mark.parametrize(
    ("kind", "text", "words"),
    [
        ("int", "", "range is empty: write it like 16 … 128"),
        ("int", "16 128", "range '16 128' is not two bounds with … between them"),
        ("int", "16 … 64 … 128", "is not two bounds"),
        ("int", "16 … ", "max is missing"),
        ("int", "16 … 12x", "max '12x' is not a number"),
        ("float", "0,1 … 1", "min '0,1' is not a number"),
        ("int", "0.5 … 2", "min '0.5' is not a whole number"),
        ("int", "1 … 9 step", "step is missing"),
        ("int", "1 … 9 step 2 step 3", "is not two bounds"),
        ("float", "0 … 1e999", "max '1e999' is too large"),
        ("float", "nan … inf", "min 'nan' is not a number"),
        ("int", "1" * 300, "range is too long"),
        ("int", 7, "range is not a text"),
    ],
)
def test_a_text_that_is_no_range_is_refused_at_its_field(kind: str, text: Any, words: str) -> None:
    problem = refusal(kind=kind, range=text)
    assert problem.pointer == "/0/range"
    assert words in problem.message


def test_a_range_beside_its_fields_is_refused() -> None:
    assert "range and min are both given" in refusal(kind="int", range="1 … 2", min=1, max=2).message


def test_a_range_without_meaning_is_refused_like_its_fields() -> None:
    assert refusal(kind="int", range="512 … 128").message == "min 512 is above max 128"
    assert "must be above 0 for log sampling" in refusal(kind="float", range="log 0 … 1").message


def test_a_spec_keeps_the_fields_and_not_the_text() -> None:
    kept = parameter(kind="int", range="16 … 128").model_dump(exclude_none=True)
    assert kept == {"name": "x", "kind": "int", "min": 16, "max": 128, "sampling": "linear"}


@pytest.mark.parametrize(
    "spec", [None, [], {}, {"search": 1}, {"search": {"space": {}}}, {"search": {"space": [1, {}]}}]
)
def test_a_spec_of_any_shape_may_have_no_ranges(spec: object) -> None:
    assert not list(ranges_of(spec))


def test_readable_ranges_are_returned_whatever_else_is_wrong() -> None:
    rows = [
        {"kind": "int", "range": "1 …"},
        {"kind": "float", "range": "log 1 … 8"},
        {"kind": "choice", "range": "1 … 2"},
    ]
    (read,) = ranges_of({"search": {"space": rows}})
    assert read == ("/search/space/1", "log 1 … 8", {"min": 1.0, "max": 8.0, "sampling": "log"})
