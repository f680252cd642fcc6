"""Reads the words in texts from a model's input."""

from typing import Any

import keras

from jobs.spec.data.features import MISSING
from jobs.spec.data.profile import InputBlock


def token_ids(inputs: Any, block: InputBlock) -> Any:
    """Return the indices for the words in a text, (rows, length) int32; 0 after its end.

    Args:
        inputs: the model's input, (rows, positions) float32, or (rows, steps, positions).
        block: the text's positions.
    """
    # Of the input itself: a 16-bit float cannot represent all indices. Unlike a layer, an operation does not
    # cast its input to the type it computes in.
    return keras.ops.cast(positions(inputs, block.start, block.start + block.positions), "int32")


def positions(x: Any, start: int, end: int) -> Any:
    """Return some positions from each row, or from each step in each row."""
    return x[:, start:end] if len(x.shape) == 2 else x[:, :, start:end]


def mean_of_words(vectors: Any, ids: Any) -> Any:
    """Return the average over the words in each text, (rows, width); 0 for a text without words.

    Args:
        vectors: each position's vector, (rows, length, width).
        ids: the words' indices, (rows, length); positions with 0 do not count.
    """
    is_word = keras.ops.cast(keras.ops.expand_dims(keras.ops.not_equal(ids, MISSING), -1), vectors.dtype)
    count = keras.ops.maximum(keras.ops.sum(is_word, axis=1), 1.0)
    return keras.ops.sum(vectors * is_word, axis=1) / count
