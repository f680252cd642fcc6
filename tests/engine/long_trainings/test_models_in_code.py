"""Each form of a model in own code, and each own `fit`, from its dry build to the saved file."""

from pathlib import Path

import keras
import numpy as np
import pytest

from jobs.messages.task import DatasetFile
from tests import own_code, own_models
from tests.engine.models import (
    test_own_code_errors,
    test_own_code_training,
    test_own_fit_arguments,
    test_saving,
    test_subclassed_models,
)
from tests.engine.models.test_own_code import dry_built
from tests.engine.models.test_own_code_training import trained
from tests.engine.models.test_own_fit_arguments import FITS, RUN
from tests.engine.models.test_subclassed_models import MODELS, TRAINED


@pytest.mark.parametrize("form", [form for form in MODELS if form not in TRAINED])
def test_a_model_of_a_class_is_trained_saved_and_loaded_without_its_class(
    tmp_path: Path, iris: DatasetFile, form: str
) -> None:
    test_subclassed_models.test_a_model_of_a_class_is_trained_saved_and_loaded_without_its_class(
        tmp_path, iris, form
    )


@pytest.mark.parametrize("form", ["call with training", "logits"])
def test_a_training_by_compiled_steps_has_the_losses_of_keras_for_the_same_order_of_rows(
    tmp_path: Path, iris: DatasetFile, form: str
) -> None:
    test_subclassed_models.test_a_training_by_compiled_steps_has_the_losses_of_keras_for_the_same_order_of_rows(
        tmp_path, iris, form
    )


@pytest.mark.parametrize("case", [case for case in FITS if case not in RUN])
def test_a_fit_runs_as_under_kerastuner(tmp_path: Path, iris: DatasetFile, case: str) -> None:
    test_own_fit_arguments.test_a_fit_runs_as_under_kerastuner(tmp_path, iris, case)


@pytest.mark.parametrize(
    ("text", "entry", "metric", "direction"),
    [
        (own_code.SEARCH_OF_LAYERS, "build_model", "val_accuracy", "max"),
        (own_code.CONDITIONAL, "build_model", "val_loss", "min"),
        (own_code.OWN_OBJECTS, "build_model", "val_macro_recall", "max"),
    ],
)
def test_a_trial_trains_code(
    tmp_path: Path, iris: DatasetFile, text: str, entry: str, metric: str, direction: str
) -> None:
    test_own_code_training.test_a_trial_trains_code(tmp_path, iris, text, entry, metric, direction)


@pytest.mark.parametrize(
    ("text", "metric", "direction"),
    [
        (own_code.SEARCH_OF_LAYERS, "val_accuracy", "max"),
        (own_code.CONDITIONAL, "val_loss", "min"),
        (own_code.NOT_COMPILED, "val_accuracy", "max"),
    ],
)
def test_a_model_of_code_is_retrained_saved_and_loaded(
    tmp_path: Path, iris: DatasetFile, text: str, metric: str, direction: str
) -> None:
    test_own_code_training.test_a_model_of_code_is_retrained_saved_and_loaded(
        tmp_path, iris, text, "build_model", metric, direction, custom=False
    )


def test_trained_weights_are_kept_if_the_model_cannot_be_saved(tmp_path: Path, iris: DatasetFile) -> None:
    test_saving.test_trained_weights_are_kept_if_the_model_cannot_be_saved(
        tmp_path, iris, "an argument that is no value"
    )


def test_layers_that_a_class_creates_in_its_first_call_have_the_policy_that_the_code_sets(
    tmp_path: Path, iris: DatasetFile
) -> None:
    text, (metric, direction) = own_models.PLAIN["layers created in build"]
    text = text.replace("\n\nclass", "\n\nkeras.config.set_dtype_policy('mixed_bfloat16')\n\n\nclass", 1)
    text = text.replace(
        "x = self.hidden(x)", "x = self.hidden(x)\n        assert x.dtype == 'bfloat16', x.dtype"
    )
    dry_built(tmp_path / "dry", text)
    result, _, _ = trained(tmp_path, text, "build_model", iris, metric=metric, direction=direction)
    assert np.isfinite(result["score"])
    assert keras.config.dtype_policy().name == "float32"


def test_a_policy_that_code_sets_when_it_is_imported_lasts_and_has_its_loss_scale(
    tmp_path: Path, iris: DatasetFile
) -> None:
    test_own_code_errors.test_a_policy_that_code_sets_when_it_is_imported_lasts_and_has_its_loss_scale(
        tmp_path, iris, own_code.NOT_COMPILED
    )
