"""Trainings of large templates: learned, interrupted within an epoch, and quantized."""

from pathlib import Path

import pytest

from jobs.messages.task import DatasetFile
from tests.engine.models import test_texts
from tests.engine.training import test_image_training


def test_a_training_on_texts_ends_with_the_same_bits(
    texts: DatasetFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    test_texts.test_a_training_interrupted_within_an_epoch_ends_with_the_same_bits(
        tmp_path, texts, monkeypatch, "text_transformer"
    )


def test_a_training_on_images_ends_with_the_same_bits(
    images: DatasetFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    test_image_training.test_a_training_interrupted_within_an_epoch_ends_with_the_same_bits(
        images, tmp_path, monkeypatch, "resnet", None
    )


def test_a_quantized_model_of_texts_predicts_nearly_the_same(texts: DatasetFile, tmp_path: Path) -> None:
    test_texts.test_a_quantized_model_of_texts_predicts_nearly_the_same(tmp_path, texts, "text_transformer")


def test_a_transformer_learns_the_words_that_decide(texts: DatasetFile, tmp_path: Path) -> None:
    test_texts.test_a_model_of_texts_learns_the_words_that_decide(tmp_path, texts, "text_transformer")
