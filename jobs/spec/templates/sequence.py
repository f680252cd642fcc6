"""Registers the template `sequence`: recurrent layers or convolutions over sequence steps."""

from collections.abc import Iterator
from typing import Literal, Self

from pydantic import Field, model_validator

from jobs.spec.base import Frozen
from jobs.spec.data.profile import Profile
from jobs.spec.templates.info import TemplateInfo
from jobs.spec.templates.layers import Layer, Shape, Variable, without_variables

SequenceKind = Literal["lstm", "gru", "conv"]
MAX_STEPS = 4_096


class SequenceArgs(Frozen):
    """Normalized steps → `layers` × (LSTM, GRU or 1-D convolution with pooling → dropout) → head."""

    kind: SequenceKind = Field(default="lstm", title="Kind")
    units: int = Field(default=64, ge=1, le=4_096, title="Units", description="Or filters, of each layer.")
    layers: int = Field(default=1, ge=1, le=16, title="Layers")
    kernel_steps: int = Field(
        default=3, ge=1, le=15, title="Kernel size", description="Steps that a convolution reads at once."
    )
    steps: int = Field(
        default=0,
        ge=0,
        le=MAX_STEPS,
        title="Steps",
        description="How many of the last steps of a sequence are read. 0: all.",
    )
    dropout: float = Field(default=0.0, ge=0, lt=1, title="Dropout")

    @model_validator(mode="after")
    def _check_kernel_steps(self) -> Self:
        if self.kind != "conv" and self.kernel_steps != type(self).model_fields["kernel_steps"].default:
            raise ValueError(f"kernel_steps has no effect on {self.kind}; only conv has it")
        return self

    def steps_of(self, length: int) -> int:
        """Return how many steps are read from a sequence with this length."""
        return min(self.steps or length, length)


def layers(args: SequenceArgs, profile: Profile) -> Iterator[Layer]:
    """List the hidden layers."""
    length, features = profile.input_shape
    output: Shape = (args.steps_of(length), features)
    if output[0] < length:
        yield without_variables("last_steps", output)
    for number in range(1, args.layers + 1):
        block = list(
            _convolution(args, number, output) if args.kind == "conv" else _gates(args, number, output)
        )
        if args.dropout:
            block.append(without_variables(f"dropout_{number}", block[-1].output))
        yield from block
        output = block[-1].output


def _gates(args: SequenceArgs, number: int, steps: Shape) -> Iterator[Layer]:
    """Yield a recurrent layer. The last one returns its state after the last step alone."""
    name, units = f"{args.kind}_{number}", args.units
    width = units * (4 if args.kind == "lstm" else 3)
    # In a GRU, the input and the state have a bias each.
    bias = (width,) if args.kind == "lstm" else (2, width)
    cell = f"{name}/cell"
    variables = (
        Variable(f"{cell}/kernel", (steps[1], width)),
        Variable(f"{cell}/recurrent_kernel", (units, width)),
        Variable(f"{cell}/bias", bias),
    )
    if number < args.layers:
        yield Layer(name, variables, (steps[0], units))
        return
    # Training keeps the states after all steps.
    yield without_variables(name, (steps[0], units))
    yield Layer(name, variables, (units,))


def _convolution(args: SequenceArgs, number: int, steps: Shape) -> Iterator[Layer]:
    output = (steps[0], args.units)
    kernel = Variable(f"conv_{number}/kernel", (args.kernel_steps, steps[1], args.units))
    yield Layer(f"conv_{number}", (kernel, Variable(f"conv_{number}/bias", (args.units,))), output)
    yield without_variables(f"conv_activation_{number}", output)
    # Pooling halves the steps, rounded down, so it ends before none would be left.
    if output[0] >= 2:
        yield without_variables(f"pool_{number}", (output[0] // 2, args.units))


INFO = TemplateInfo(
    name="sequence",
    label="Sequence network",
    help="LSTM, GRU or 1-D convolution over the steps of sequences",
    arguments=SequenceArgs,
    builder="workers.engine.models.templates.sequence:sequence",
    data_kinds=("sequence",),
    shaping=frozenset({"kind", "units", "layers", "kernel_steps", "steps"}),
    ranges={
        "kind": {"kind": "choice", "values": ["lstm", "gru", "conv"]},
        "units": {"kind": "choice", "values": [16, 32, 64, 128]},
        "layers": {"kind": "int", "min": 1, "max": 3},
        "kernel_steps": {"kind": "choice", "values": [3, 5, 7]},
        # With 0, so that a search can begin with the defaults.
        "steps": {"kind": "choice", "values": [0, 4, 8, 16, 32]},
        "dropout": {"kind": "float", "min": 0.0, "max": 0.5, "step": 0.1},
    },
    searched=("kind", "units", "dropout"),
    initial_arguments=("kind", "units", "layers", "dropout"),
    layers=layers,
    traced=frozenset({"dropout"}),
)
