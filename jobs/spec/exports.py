"""Lists the formats in which models are written.

Each format has an entry here and a module in `workers.engine.exports`.
The form, the checks, REST, the pages, the engine and the reference read everything else from the entry.
`docs/tutorial-new-export-format.md` adds one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from jobs.spec.base import Frozen


@dataclass(frozen=True, kw_only=True)
class ExportFormat:
    """One format in which models are written.

    Attributes:
        name: the name in specs: for a quantization the value in `after.quantize.mode`.
        label: the name for users.
        help: a file's content, in a few words.
        runs_in: the programs that load a file.
        writer: the engine function that writes a file, as `module:function`; imported at the first use.
        suffix: its files' suffix.
        stem: a file's name in a task's folder, without the suffix.
        options: the class for its options, whose titles and descriptions label the form's fields. None: no
            options.
        quantizes: the weights that become smaller, to end a sentence. Empty: the format is no quantization.
        verb: begins the title of the job that makes a smaller model.
        checked_rows: so many rows are predicted to compare a file with the model in memory.
        tolerances: the largest accepted difference between predictions, relative to the largest prediction,
            by the training's precision. Predictions must be equal where there is none.
    """

    name: str
    label: str
    help: str
    runs_in: tuple[str, ...]
    writer: str
    suffix: str
    stem: str
    options: type[Frozen] | None = None
    quantizes: str = ""
    verb: str = "Quantize"
    checked_rows: int = 64
    tolerances: Mapping[str, float] = field(default_factory=dict)

    def file_name(self, stem: str = "") -> str:
        """Return a file's name in this format, by default the one in a task's folder."""
        return (stem or self.stem) + self.suffix


EXPORTS: dict[str, ExportFormat] = {
    entry.name: entry
    for entry in (
        ExportFormat(
            name="keras_file",
            label="Keras file",
            help="the model as Keras saves it, with its preprocessing and without an optimizer",
            runs_in=("the prediction server", "Keras 3"),
            writer="workers.engine.exports.keras_file:write",
            suffix=".keras",
            stem="model",
            # Larger in 16 bits: a mesh sums in another order, which rounds differently.
            # The rounding to 8 bits jumps where a value lies between two of them.
            tolerances={
                "float32": 1e-5,
                "float64": 1e-5,
                "mixed_float16": 2e-2,
                "mixed_bfloat16": 5e-2,
                "float8": 5e-2,
            },
        ),
        ExportFormat(
            name="int8",
            label="int8",
            help="a Keras file whose kernels and tables have 8 bits a number",
            runs_in=("the prediction server", "Keras 3"),
            writer="workers.engine.exports.int8:write",
            suffix=".keras",
            stem="quantized",
            quantizes="the kernels of layers",
        ),
        *(
            ExportFormat(
                name=name,
                label=name,
                help=f"a Keras file whose layers keep and compute in {name}; its inputs and outputs stay in "
                "float32",
                runs_in=("the prediction server", "Keras 3"),
                writer=f"workers.engine.exports.half:write_{name}",
                suffix=".keras",
                stem=name,
                quantizes="the weights of layers",
                verb="Cast",
            )
            for name in ("float16", "bfloat16")
        ),
    )
}
"""By name, in the order in which the form lists them."""

STORED = EXPORTS["keras_file"]
"""The format in which models are uploaded, stored and served."""

QUANTIZATIONS = {name: entry for name, entry in EXPORTS.items() if entry.quantizes}
"""The formats for the step `after.quantize`."""

DEFAULT_QUANTIZATION = next(iter(QUANTIZATIONS.values()))


def label_of(name: str) -> str:
    """Return a format's label, or the name itself if only an earlier release had it."""
    return EXPORTS[name].label if name in EXPORTS else name
