"""Pipelines: the same rows give the same bits on every path, and only training rows affect them."""

import json
import math
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from jobs.spec.data.column_plans import ColumnPlan, input_blocks, plan_column
from jobs.spec.data.columns import ColumnOptions
from jobs.spec.data.features import DEFAULT_LENGTH, FIRST_WORD, Features, NgramFeature, TokenFeature
from jobs.spec.data.profile import Column
from tests.features.making import ALL, COLUMNS, DESCRIBED, ROWS, plans
from workers.features.fitting import fit
from workers.features.pipeline import Pipeline
from workers.features.values import TEXT, Array


@pytest.fixture(scope="module")
def pipeline() -> Pipeline:
    return Pipeline(fit(plans(), COLUMNS, ALL))


def place(pipeline: Pipeline, column: str) -> slice:
    """Return a column's positions."""
    block = next(block for block in input_blocks(plans()) if block.column == column)
    return slice(block.start, block.start + block.positions)


def test_stored_rows_json_rows_and_json_columns_give_equal_bits(pipeline: Pipeline) -> None:
    stored = pipeline.of_stored(COLUMNS)
    by_row = pipeline.of_rows(json.loads(json.dumps(ROWS)))
    by_column = pipeline.of_json({name: [row.get(name) for row in ROWS] for name in COLUMNS}, len(ROWS))
    assert stored.dtype == np.float32
    assert stored.shape == (len(ROWS), pipeline.features.width)
    assert stored.tobytes() == by_row.tobytes() == by_column.tobytes()


def test_a_row_alone_gives_the_bits_that_it_gives_among_others(pipeline: Pipeline) -> None:
    together = pipeline.of_rows(ROWS)
    for number, row in enumerate(ROWS):
        assert pipeline.of_rows([row]).tobytes() == together[number : number + 1].tobytes()


def test_a_pipeline_read_from_its_json_gives_equal_bits(pipeline: Pipeline) -> None:
    read = Features.model_validate_json(pipeline.features.model_dump_json())
    assert read == pipeline.features
    assert Pipeline(read).of_rows(ROWS).tobytes() == pipeline.of_rows(ROWS).tobytes()


def test_only_the_training_rows_affect_a_pipeline() -> None:
    changed = {name: column.copy() for name, column in COLUMNS.items()}
    train = ALL[:4]
    for column in changed.values():
        column[4:] = column[0]
    assert fit(plans(), COLUMNS, train) == fit(plans(), changed, train)


def test_the_plan_knows_the_width_that_fitting_gives(pipeline: Pipeline) -> None:
    assert sum(plan.positions for plan in plans()) == pipeline.features.width
    assert fit(plans(), COLUMNS, ALL[:2]).width == pipeline.features.width


def test_a_missing_number_becomes_the_median_and_is_indicated(pipeline: Pipeline) -> None:
    age = pipeline.of_stored(COLUMNS)[:, place(pipeline, "age")]
    np.testing.assert_array_equal(age[:, 0], [31.5, 31.5, 47.25, 8.0, 31.5, 60.0])
    np.testing.assert_array_equal(age[:, 1], [0, 1, 0, 0, 0, 0])


@pytest.mark.parametrize(
    ("options", "filled"),
    [
        (ColumnOptions(impute="mean"), np.float32(np.nanmean(COLUMNS["age"]))),
        (ColumnOptions(impute="constant", constant=-1.0), -1.0),
    ],
)
def test_the_replacement_of_a_missing_number_can_be_chosen(options: ColumnOptions, filled: float) -> None:
    chosen = Pipeline(fit(plans(age=options), COLUMNS, ALL))
    assert chosen.of_stored(COLUMNS)[1, 0] == filled


def test_categories_have_positions_for_missing_for_other_and_for_each_word(pipeline: Pipeline) -> None:
    rows: list[dict[str, Any]] = [{"plan": "free"}, {"plan": "basic"}, {"plan": None}, {"plan": "never seen"}]
    x = pipeline.of_rows(rows)[:, place(pipeline, "plan")]
    # Words in the most rows come first, then in alphabetical order: free, pro, basic.
    np.testing.assert_array_equal(x, [[0, 0, 1, 0, 0], [0, 0, 0, 0, 1], [1, 0, 0, 0, 0], [0, 1, 0, 0, 0]])


def test_an_embedded_category_is_an_index_and_rare_words_share_one() -> None:
    words = np.array(["Paris"] * 6 + ["Rome"] * 5 + ["Oslo"] * 4 + [""], COLUMNS["city"].dtype)
    only = [plan for plan in plans() if plan.column == "city"]
    pipeline = Pipeline(fit(only, {"city": words}, np.arange(len(words))))
    x = pipeline.of_rows([{"city": name} for name in ("Paris", "Rome", "Oslo", "Lima", None)])
    np.testing.assert_array_equal(x[:, 0], [FIRST_WORD, FIRST_WORD + 1, 1, 1, 0])


def test_a_hashed_category_has_the_same_bucket_in_every_process(pipeline: Pipeline) -> None:
    x = pipeline.of_rows([{"street": "a"}, {"street": "a"}, {"street": None}])[:, place(pipeline, "street")]
    # 3904355907 = CRC-32 of "a"; 4 buckets follow the indices of missing and other.
    np.testing.assert_array_equal(x[:, 0], [FIRST_WORD + 3904355907 % 4, FIRST_WORD + 3904355907 % 4, 0])


def test_a_date_is_its_distance_and_its_place_in_year_week_and_day(pipeline: Pipeline) -> None:
    sunday, leap_day, *_ = pipeline.of_rows(ROWS)[:, place(pipeline, "bought")]
    # The latest date, 2026-11-01, is a Sunday and the 305th day of its year.
    year, week = 2 * math.pi * 304 / 366, 2 * math.pi * 6 / 7
    expected = [0, math.sin(year), math.cos(year), math.sin(week), math.cos(week), 0, 1, 0]
    np.testing.assert_allclose(sunday, expected, atol=1e-6)
    assert leap_day[0] == np.float32(-(976 - 13.5 / 24))
    np.testing.assert_allclose(
        leap_day[5:7], [math.sin(27 * math.pi / 24), math.cos(27 * math.pi / 24)], atol=1e-6
    )


@pytest.mark.parametrize(
    ("encode", "options"),
    [
        ("words", {"ngram_range": (1, 2), "token_pattern": r"\w+"}),
        ("characters", {"ngram_range": (3, 5), "analyzer": "char_wb"}),
    ],
)
def test_texts_are_weighted_as_scikit_learn_weights_them(encode: Any, options: dict[str, Any]) -> None:
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts = [*COLUMNS["review"].tolist(), "a a bad bedroom", f"bad {'x' * 40} {'x' * 40}"]
    (feature,) = fit([ColumnPlan("t", "text", encode, size=1000)], {"t": texts_of(texts)}, ALL).columns
    assert isinstance(feature, NgramFeature)
    # It divides texts for characters at spaces alone.
    theirs = TfidfVectorizer(min_df=2, preprocessor=lambda text: text.replace(",", ""), **options)
    expected = theirs.fit(texts[: len(ALL)]).transform(texts).toarray()
    order = [theirs.vocabulary_[name] for name in feature.ngrams]
    assert sorted(order) == list(range(expected.shape[1]))
    ours = Pipeline(Features(columns=(feature,))).of_stored({"t": texts_of(texts)})
    np.testing.assert_allclose(ours[:, : len(order)], expected[:, order], atol=1e-7)


def texts_of(texts: list[str]) -> Array:
    return np.array(texts, TEXT)


def test_words_in_their_order_are_indices_and_the_rest_is_padding(pipeline: Pipeline) -> None:
    rows = [{"title": text} for text in ("GOOD bed", "a ghost: room!", "bed " * 9, "", None)]
    x = pipeline.of_rows(rows)[:, place(pipeline, "title")]
    # In the most texts first, then in alphabetical order: bed, a, good, room, view.
    bed, a, good, room = range(FIRST_WORD, FIRST_WORD + 4)
    np.testing.assert_array_equal(x, [[good, bed, 0, 0, 0], [a, 1, room, 0, 0], [bed] * 5, [0] * 5, [0] * 5])


def test_a_word_of_a_single_text_and_one_beyond_the_vocabulary_have_no_index() -> None:
    def words(**options: object) -> tuple[str, ...]:
        chosen = ColumnOptions.model_validate({"encode": "tokens", **options})
        only = [plan for plan in plans(title=chosen) if plan.column == "title"]
        (feature,) = fit(only, COLUMNS, ALL).columns
        assert isinstance(feature, TokenFeature)
        return feature.words

    assert words() == ("bed", "a", "good", "room", "view")
    assert words(size=2) == ("bed", "a")


def test_the_length_of_a_text_follows_from_the_profile_and_can_be_chosen() -> None:
    def length(column: Column, **options: object) -> int:
        return plan_column(column, ColumnOptions.model_validate({"encode": "tokens", **options})).length

    text = Column(name="t", dtype="text", type="text")
    assert length(text.model_copy(update={"length": 20})) == 20
    assert length(text.model_copy(update={"length": 2_000})) == DEFAULT_LENGTH
    assert length(text) == DEFAULT_LENGTH
    assert length(text, length=1_000) == 1_000


def test_words_and_characters_are_the_weights_of_both(pipeline: Pipeline) -> None:
    def alone(encode: str) -> np.ndarray:
        chosen = plan_column(DESCRIBED["note"], ColumnOptions.model_validate({"encode": encode}))
        return Pipeline(fit([chosen], COLUMNS, ALL)).of_stored(COLUMNS)

    both = pipeline.of_stored(COLUMNS)[:, place(pipeline, "note")]
    assert both.tobytes() == np.hstack([alone("words"), alone("characters")]).tobytes()


@pytest.mark.parametrize("options", [{"length": 5}, {"encode": "words", "length": 9}])
def test_a_length_needs_the_encoding_of_tokens(options: dict[str, object]) -> None:
    with pytest.raises(ValidationError, match="belongs to encode = tokens"):
        ColumnOptions.model_validate(options)
