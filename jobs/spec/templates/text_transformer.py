"""Registers the template `text_transformer`: self-attention over texts' words."""

from collections.abc import Iterator

from pydantic import Field

from jobs.spec.base import Frozen
from jobs.spec.data.profile import Profile
from jobs.spec.templates.activations import ACTIVATION_RANGE, Activation
from jobs.spec.templates.columns import column_layers, positions_of
from jobs.spec.templates.info import TemplateInfo
from jobs.spec.templates.layers import (
    Layer,
    Shape,
    Variable,
    dense,
    layer_normalization,
    without_variables,
)


class TextTransformerArgs(Frozen):
    """Words + positions → `blocks` × (attention, two dense layers) → mean; other columns beside it → head."""

    dim: int = Field(
        default=64, ge=1, le=4096, title="Width", description="Of the vector of each word in every block."
    )
    blocks: int = Field(default=2, ge=1, le=32, title="Blocks", description="Each adds to its input.")
    heads: int = Field(
        default=2, ge=1, le=64, title="Attention heads", description="Each has width / heads numbers."
    )
    expansion: int = Field(
        default=2,
        ge=1,
        le=16,
        title="Expansion",
        description="The first dense layer of a block has expansion × width units.",
    )
    dropout: float = Field(default=0.1, ge=0, lt=1, title="Dropout")
    activation: Activation = Field(default="gelu", title="Activation")

    @property
    def head_width(self) -> int:
        """Return how many numbers a head compares for each word."""
        return max(self.dim // self.heads, 1)


def layers(args: TextTransformerArgs, profile: Profile) -> Iterator[Layer]:
    """List the hidden layers."""
    words = (positions_of(profile.tokens), args.dim)
    for number, block in enumerate(profile.tokens, start=1):
        yield _embedding(f"text_{number}", block.size, (block.positions, args.dim))
    if len(profile.tokens) > 1:
        yield without_variables("texts", words)
    yield _embedding("position", words[0], words)
    yield without_variables("words", words)
    for number in range(1, args.blocks + 1):
        yield from _block(args, number, words)
    yield layer_normalization("norm", words)
    others = column_layers(profile, tokens=False)
    yield from others
    output = (args.dim + (others[-1].output[0] if others else 0),)
    if others:
        yield without_variables("joined", output)
    if args.dropout:
        yield without_variables("dropout", output)


def _embedding(name: str, size: int, output: Shape) -> Layer:
    return Layer(name, (Variable(f"{name}/embeddings", (size, output[-1])),), output)


def _block(args: TextTransformerArgs, number: int, words: Shape) -> Iterator[Layer]:
    """Yield a block's layers. It adds results from the normalized input to its input."""
    yield layer_normalization(f"attention_norm_{number}", words)
    yield from _attention(f"attention_{number}", args, words)
    if args.dropout:
        yield without_variables(f"attention_dropout_{number}", words)
    yield without_variables(f"attention_add_{number}", words)
    yield layer_normalization(f"dense_norm_{number}", words)
    hidden = args.expansion * args.dim
    yield dense(f"expand_{number}", args.dim, hidden)._replace(output=(words[0], hidden))
    yield without_variables(f"activation_{number}", (words[0], hidden))
    yield dense(f"contract_{number}", hidden, args.dim)._replace(output=words)
    if args.dropout:
        yield without_variables(f"dense_dropout_{number}", words)
    yield without_variables(f"dense_add_{number}", words)


def _attention(name: str, args: TextTransformerArgs, words: Shape) -> Iterator[Layer]:
    """Yield one layer with its variables, and its intermediate results for the memory estimate."""
    length, heads, width = words[0], args.heads, args.head_width
    into = (args.dim, heads, width)
    variables = [
        Variable(f"{name}/{part}/{kind}", shape)
        for part in ("query", "key", "value")
        for kind, shape in (("kernel", into), ("bias", into[1:]))
    ]
    variables.append(Variable(f"{name}/attention_output/kernel", (heads, width, args.dim)))
    variables.append(Variable(f"{name}/attention_output/bias", (args.dim,)))
    yield without_variables(name, (4, length, heads * width))
    # Each word is compared with each other one.
    yield without_variables(name, (heads, length, length))
    yield Layer(name, tuple(variables), words)


INFO = TemplateInfo(
    name="text_transformer",
    label="Transformer for texts",
    help="self-attention over the words of texts in their order, beside the other columns",
    arguments=TextTransformerArgs,
    builder="workers.engine.models.templates.text_transformer:text_transformer",
    data_kinds=("text",),
    texts="tokens",
    reads_tokens=True,
    shaping=frozenset({"dim", "blocks", "heads", "expansion"}),
    ranges={
        "dim": {"kind": "choice", "values": [32, 64, 128]},
        "blocks": {"kind": "int", "min": 1, "max": 3},
        "heads": {"kind": "choice", "values": [1, 2, 4]},
        "expansion": {"kind": "int", "min": 1, "max": 4},
        "dropout": {"kind": "float", "min": 0.0, "max": 0.4, "step": 0.1},
        "activation": ACTIVATION_RANGE,
    },
    searched=("dim", "blocks", "dropout"),
    initial_arguments=("dim", "blocks", "heads", "dropout"),
    layers=layers,
    traced=frozenset({"dropout"}),
)
