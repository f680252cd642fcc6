"""Registers the template `text_bow`: word and character n-grams into a linear or a small network."""

import math
from collections.abc import Iterator

from pydantic import Field

from jobs.spec.base import Frozen
from jobs.spec.data.profile import Profile
from jobs.spec.templates.info import TemplateInfo
from jobs.spec.templates.layers import Layer, dense_block, without_variables


class TextBowArgs(Frozen):
    """N-grams and other columns → dropout → (Dense(hidden) → relu → dropout)? → head."""

    hidden: int = Field(
        default=0,
        ge=0,
        le=65_536,
        title="Hidden units",
        description="0: a linear model, without hidden layer.",
    )
    dropout: float = Field(default=0.0, ge=0, lt=1, title="Dropout")
    l2: float = Field(default=0.0, ge=0, title="L2 penalty")


def layers(args: TextBowArgs, profile: Profile) -> Iterator[Layer]:
    """List the hidden layers."""
    inputs = math.prod(profile.input_shape)
    if args.dropout:
        yield without_variables("input_dropout", (inputs,))
    if args.hidden:
        yield from dense_block(1, inputs, args.hidden, dropout=args.dropout)


INFO = TemplateInfo(
    name="text_bow",
    label="Bag of n-grams",
    help="n-grams of words and characters into a linear or a small network, for texts",
    arguments=TextBowArgs,
    builder="workers.engine.models.templates.text_bow:text_bow",
    data_kinds=("text",),
    texts="words_and_characters",
    shaping=frozenset({"hidden"}),
    ranges={
        "hidden": {"kind": "choice", "values": [0, 32, 128]},
        "dropout": {"kind": "float", "min": 0.0, "max": 0.5, "step": 0.1},
        "l2": {"kind": "float", "min": 1e-6, "max": 1e-2, "sampling": "log"},
    },
    searched=("hidden", "dropout", "l2"),
    initial_arguments=("hidden", "dropout", "l2"),
    layers=layers,
    width="hidden",
    traced=frozenset({"dropout", "l2"}),
    head_penalty="l2",
)
