"""Compiled programs of each template and optimizer train like Keras' `fit`, and like new ones."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jobs.spec.templates.info import TemplateInfo
from tests.engine.compiled import test_program
from tests.engine.compiled.test_program import MLPS, WIDE
from tests.engine.models import test_fine_tuning, test_templates
from tests.engine.models.test_templates import QUICK_CASES, TRAINED, TRAINED_IDS
from workers.engine.data.dataset import Dataset

OTHERS = [name for name in MLPS if name not in test_program.QUICK]


@pytest.mark.parametrize("name", OTHERS)
def test_programs_end_with_the_bits_of_keras_fit(data: Dataset, tmp_path: Path, name: str) -> None:
    test_program.test_programs_end_with_the_bits_of_keras_fit(data, tmp_path, name)


@pytest.mark.parametrize("name", OTHERS)
def test_gathering_rows_before_the_loop_or_inside_it_trains_to_the_same_bits(
    data: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    test_program.test_gathering_rows_before_the_loop_or_inside_it_trains_to_the_same_bits(
        data, tmp_path, monkeypatch, name
    )


@pytest.mark.parametrize("name", OTHERS)
def test_a_cached_model_trains_like_a_new_one(data: Dataset, tmp_path: Path, name: str) -> None:
    test_program.test_a_cached_model_trains_like_a_new_one(data, tmp_path, name)


@pytest.mark.parametrize("name", [name for name in WIDE if name != "adam"])
def test_surplus_units_change_nothing_and_stay_at_zero(data: Dataset, tmp_path: Path, name: str) -> None:
    test_program.test_surplus_units_change_nothing_and_stay_at_zero(data, tmp_path, name)


@pytest.mark.parametrize(
    ("info", "args"),
    [
        pytest.param(*case, id=name)
        for case, name in zip(TRAINED, TRAINED_IDS, strict=True)
        if case not in QUICK_CASES
    ],
)
def test_a_cached_model_with_another_seed_and_other_rates_trains_like_a_new_one(
    data_for: Callable[[TemplateInfo], Dataset], tmp_path: Path, info: Any, args: Any
) -> None:
    test_templates.test_a_cached_model_with_another_seed_and_other_rates_trains_like_a_new_one(
        data_for, tmp_path, info, args
    )


@pytest.mark.parametrize(
    "fit",
    [
        {"optimizer": "adam"},
        {"optimizer": "adamw", "optimizer_args": {"weight_decay": 0.01}},
        {"optimizer": "nadam"},
        {"optimizer": "lion"},
    ],
    ids=lambda fit: fit["optimizer"],
)
def test_two_learning_rates_train_as_two_optimizers_of_a_plain_loop(
    data: Dataset, tmp_path: Path, fit: dict[str, Any]
) -> None:
    test_fine_tuning.test_two_learning_rates_train_as_two_optimizers_of_a_plain_loop(data, tmp_path, fit)
