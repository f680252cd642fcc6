"""Builds every Keras layer that a template can use. Imports Keras, so tests import it when they run."""

import inspect
from typing import Any

import keras
from keras import layers as L  # noqa: N812

from workers.engine.models.initial_values import InitialValues

NOT_BUILT = {
    "Layer": "abstract", "Wrapper": "abstract", "InputLayer": "an input", "Lambda": "runs code of its own",
    "TFSMLayer": "wraps TensorFlow", "TorchModuleWrapper": "wraps PyTorch", "FlaxLayer": "wraps Flax",
    "JaxLayer": "wraps a function", "StringLookup": "reads text", "TextVectorization": "reads text",
    "IntegerLookup": "needs TensorFlow", "Hashing": "needs TensorFlow", "HashedCrossing": "needs TensorFlow",
    "Discretization": "needs TensorFlow", "CategoryEncoding": "reads whole numbers",
    "Equalization": "changes its input in place",
    "MaxNumBoundingBoxes": "takes boxes", "CutMix": "takes labels",
    "MixUp": "takes labels",
}  # fmt: skip
"""Classes that no template can use as a layer of its own, and why."""

ONE = {"units": 3, "filters": 3, "kernel_size": 2, "rate": 0.3, "pool_size": 2, "factor": 0.2, "stddev": 0.1,
       "output_size": 2, "num_heads": 2, "key_dim": 4, "head_dim": 4, "num_query_heads": 2,
       "num_key_value_heads": 1, "input_dim": 9, "output_dim": 3, "axes": 1, "n": 2, "height": 4, "width": 4,
       "num_tokens": 9, "scale": 0.5, "target_shape": (-1,), "dims": (1,), "equation": "ab,bc->ac",
       "output_shape": 3, "height_factor": 0.1, "width_factor": 0.1, "value_range": (0, 1), "bits": 4,
       "max_boxes": 2, "data_format": "channels_last"}  # fmt: skip
"""What required arguments of these names are."""


class SelfAttention(L.Layer):
    """Applies an attention layer, which takes two inputs, to one input twice."""

    def __init__(self, attention: Any) -> None:
        super().__init__()
        self.attention = attention

    def build(self, shape: Any) -> None:
        self.attention.build(shape, shape)

    def call(self, x: Any) -> Any:
        return self.attention(x, x)


GIVEN: dict[str, Any] = {
    "SpectralNormalization": lambda: L.SpectralNormalization(L.Dense(3)),
    "Bidirectional": lambda: L.Bidirectional(L.LSTM(3)),
    "TimeDistributed": lambda: L.TimeDistributed(L.Dense(3)),
    "RNN": lambda: L.RNN(L.LSTMCell(3)),
    "StackedRNNCells": lambda: L.RNN(L.StackedRNNCells([L.LSTMCell(3), L.GRUCell(2)])),
    "LSTMCell": lambda: L.RNN(L.LSTMCell(3, dropout=0.2)),
    "GRUCell": lambda: L.RNN(L.GRUCell(3, dropout=0.2)),
    "SimpleRNNCell": lambda: L.RNN(L.SimpleRNNCell(3, dropout=0.2)),
    "LSTM": lambda **more: L.LSTM(3, dropout=0.2, recurrent_dropout=0.1, **more),
    "GRU": lambda **more: L.GRU(3, dropout=0.2, recurrent_dropout=0.1, **more),
    "Pipeline": lambda: L.Pipeline([L.RandomFlip(), L.RandomZoom(0.1)]),
    "GroupNormalization": lambda **more: L.GroupNormalization(1, **more),
    "ActivityRegularization": lambda: L.ActivityRegularization(0.1),
    "RandomCrop": lambda: L.RandomCrop(4, 4),
    "MelSpectrogram": lambda: L.MelSpectrogram(fft_length=4, sequence_stride=2, num_mel_bins=2),
    "STFTSpectrogram": lambda: L.STFTSpectrogram(frame_length=4, frame_step=2, fft_length=4),
    "MultiHeadAttention": lambda **more: SelfAttention(L.MultiHeadAttention(2, 4, dropout=0.1, **more)),
    "GroupQueryAttention": lambda **more: SelfAttention(L.GroupQueryAttention(4, 2, 1, dropout=0.1, **more)),
    "Activation": lambda: L.Activation("relu"),
    "RandomPosterization": lambda: L.RandomPosterization(4),
    "Permute": lambda: L.Permute((1,)),
    "AugMix": lambda: L.AugMix(value_range=(0, 1)),
    "RandAugment": lambda: L.RandAugment(value_range=(0, 1)),
}
"""Layers that need more than their required arguments."""
SHAPES = [(8,), (6, 4), (8, 8, 3), (5, 8, 8, 3), (3, 4, 4, 4, 2)]
REFUSALS = (ValueError, TypeError, ImportError, NotImplementedError, IndexError, AttributeError)
"""Each layer rejects unsuitable inputs in its own way."""
KNOWN = {c: name for name, c in vars(L).items() if inspect.isclass(c) and issubclass(c, L.Layer)}
"""Each class under one of its names."""
CLASSES = sorted(set(KNOWN.values()) - set(NOT_BUILT))


def make(name: str, *, everything_random: bool) -> Any:
    """Return a layer; with `everything_random`, all its initializers are random ones."""
    if name in GIVEN and not (everything_random and "more" in inspect.signature(GIVEN[name]).parameters):
        return GIVEN[name]()
    parameters = inspect.signature(getattr(L, name).__init__).parameters
    initializers = [key for key in parameters if key.endswith("_initializer")]
    random = dict.fromkeys(initializers, "random_normal") if everything_random else {}
    if name in GIVEN:
        return GIVEN[name](**random)
    required = [key for key, p in parameters.items() if key in ONE and p.default is p.empty]
    return getattr(L, name)(**{key: ONE[key] for key in required}, **random)


def built(name: str, seed: int, *, everything_random: bool) -> tuple[Any, Any]:
    """Build a one-layer model on the first input that it takes, as `build.build_restartable` does."""
    refusals = []
    for shape in SHAPES:
        keras.backend.clear_session(free_memory=False)
        inputs = keras.Input(shape)
        with keras.StatelessScope():
            try:
                layer = make(name, everything_random=everything_random)
                try:
                    outputs = layer(inputs)
                except (TypeError, ValueError):
                    outputs = layer([inputs, inputs])
            except REFUSALS as error:
                refusals.append(error)
                keras.src.backend.common.global_state.set_global_attribute("uninitialized_variables", [])
                continue
            start = InitialValues(keras.Model(inputs, outputs).layers)
            start.set_up(seed)
        return layer, start
    raise AssertionError(f"{name} takes none of the inputs: {refusals}")


def has_initializers(name: str) -> bool:
    return any(
        key.endswith("_initializer") for key in inspect.signature(getattr(L, name).__init__).parameters
    )


CASES = [(name, False) for name in CLASSES] + [(name, True) for name in CLASSES if has_initializers(name)]
"""Each layer with its default initializers, and with random ones everywhere."""
