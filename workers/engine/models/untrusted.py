"""Checks an untrusted `.keras` file without Keras: it may contain only known parts with limited sizes.

A model's config is a program. Class names are checked against an allow-list, and sizes against the number of
weights that the file stores: a config with a hundred bytes can request a terabyte.
"""

import builtins
import io
import json
import math
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jobs.model_formats import CONVERT_KERAS_2, how_to_convert
from jobs.spec.exports import STORED
from workers.engine.data.reading.archives.archive import open_archive
from workers.engine.data.reading.damage import reading
from workers.engine.errors import BadModel
from workers.engine.models.foreign_parts import NAMED_FUNCTION, WITH_CODE, why_refused
from workers.engine.models.keras_origin import is_keras_module
from workers.engine.models.operations import OPERATIONS
from workers.engine.models.stored_weights import MAX_RATIO, stored_parameters
from workers.features.files import MEMBER as PIPELINE

MEMBERS = frozenset({"metadata.json", "config.json", "model.weights.h5"})
"""The files inside a `.keras` file, beside a pipeline."""

MAX_BYTES = 8 << 30
"""Maximum size of the file, packed and unpacked."""
DIRECTORY_BYTES = 64 << 10
"""Maximum size of the archive's directory, which lists three files and perhaps a pipeline."""
MAX_JSON = 64 << 20
"""Maximum bytes of each JSON file inside."""
MAX_INTEGER = 1 << 24
"""Maximum of any number in the config that may be a size."""
MAX_AXES = 64
"""Maximum number of axes of a shape in the config, as in NumPy."""
MAX_LAYERS = 10_000
MAX_PARAMETERS = 2_000_000_000
SLACK_PARAMETERS = 1_000_000
"""Small models may exceed the limits relative to the file by this many parameters."""

SAVE_AGAIN = f"save the model again with model.save({STORED.file_name('name')!r})"
TOO_DEEP = "too many of its layers follow one another or are nested for Keras, which visits them recursively"

MODELS = {
    ("keras", "Functional"), ("keras", "Sequential"), ("keras.models", "Functional"),
    ("keras.models", "Sequential"), ("keras.src.models.functional", "Functional"),
    ("keras.src.models.sequential", "Sequential"),
}  # fmt: skip

LAYERS = frozenset(
    """
    InputLayer Dense EinsumDense Embedding Identity Masking Activation ReLU LeakyReLU PReLU ELU
    Softmax Conv1D Conv2D Conv3D Conv1DTranspose Conv2DTranspose Conv3DTranspose SeparableConv1D
    SeparableConv2D DepthwiseConv1D DepthwiseConv2D MaxPooling1D MaxPooling2D MaxPooling3D
    AveragePooling1D AveragePooling2D AveragePooling3D GlobalMaxPooling1D GlobalMaxPooling2D
    GlobalMaxPooling3D GlobalAveragePooling1D GlobalAveragePooling2D GlobalAveragePooling3D LSTM GRU
    SimpleRNN RNN LSTMCell GRUCell SimpleRNNCell StackedRNNCells Bidirectional TimeDistributed
    ConvLSTM1D ConvLSTM2D ConvLSTM3D BatchNormalization LayerNormalization GroupNormalization
    RMSNormalization UnitNormalization SpectralNormalization Normalization Rescaling Dropout
    SpatialDropout1D SpatialDropout2D SpatialDropout3D GaussianDropout GaussianNoise AlphaDropout
    ActivityRegularization Attention AdditiveAttention MultiHeadAttention GroupQueryAttention
    ReversibleEmbedding Flatten Reshape Permute RepeatVector Cropping1D Cropping2D Cropping3D
    ZeroPadding1D ZeroPadding2D ZeroPadding3D UpSampling1D UpSampling2D UpSampling3D CenterCrop
    Resizing Add Subtract Multiply Average Maximum Minimum Concatenate Dot Discretization
    CategoryEncoding Hashing HashedCrossing RandomFlip RandomRotation RandomZoom RandomTranslation
    RandomCrop RandomContrast RandomBrightness RandomColorDegeneration RandomColorJitter
    RandomElasticTransform RandomErasing RandomGaussianBlur RandomGrayscale RandomHue RandomInvert
    RandomPerspective RandomPosterization RandomSaturation RandomSharpness RandomShear AugMix AutoContrast
    CutMix Equalization MixUp RandAugment Solarization AdaptiveAveragePooling1D AdaptiveAveragePooling2D
    AdaptiveAveragePooling3D AdaptiveMaxPooling1D AdaptiveMaxPooling2D AdaptiveMaxPooling3D
    """.split()  # noqa: SIM905  a hundred quoted names would be unreadable
)
"""Layers of `keras.layers` that only compute from their inputs and weights: no code, files or imports."""

PLAIN_MODULES = frozenset(
    {
        "keras.initializers", "keras.regularizers", "keras.constraints", "keras.dtype_policies",
        "keras.quantizers", "keras.optimizers", "keras.losses", "keras.metrics",
        "keras.optimizers.schedules",
    }
)  # fmt: skip
"""Modules with parameters of layers and trainings; none of their classes reads files or runs given code."""

MARKERS = frozenset({"__keras_tensor__", "__tensor__", "__numpy__", "__slice__", "__ellipsis__"})
"""Class names of values, not of objects: tensors, arrays and indices in the arguments of a layer."""
UNSIZED = frozenset({"seed", "salt", "shared_object_id"})
"""Fields whose numbers are not sizes."""


@dataclass(frozen=True)
class Scan:
    """A file's properties, found without loading it.

    Attributes:
        keras_version: version that wrote the file.
        layers: the layer count.
        stored: how many weights the file has.
        estimated: how many weights the config requests, estimated.
    """

    keras_version: str
    layers: int
    stored: int
    estimated: int


def scan(path: Path, *, names_in_compile_config: bool = True) -> Scan:
    """Check an untrusted file without loading it in Keras.

    Args:
        path: the file.
        names_in_compile_config: whether a custom loss or metric is refused, which only its training needs.

    Raises:
        BadModel: it is not a `.keras` file with known layers whose sizes match the stored weights.
        DamagedFile: its bytes cannot be read as such a file.
    """
    _check_start(path)
    with (
        reading(path, STORED.suffix, SAVE_AGAIN),
        open_archive(path, directory_bytes=DIRECTORY_BYTES) as archive,
    ):
        _check_members(archive)
        metadata = _json(archive, "metadata.json")
        config = _json(archive, "config.json")
        stored = stored_parameters(io.BytesIO(archive.read("model.weights.h5")))
        if PIPELINE in archive.namelist():
            # Only its bytes: other code reads the content, and Keras does not open it.
            archive.read(PIPELINE)
        if not names_in_compile_config:
            config = {**config, "compile_config": None}
        layers = check_config(config)
        estimated = sum(map(estimated_parameters, layers))
    if estimated > MAX_PARAMETERS or estimated > 4 * stored + SLACK_PARAMETERS:
        raise BadModel(f"its config requests about {estimated:,} parameters, but the file stores {stored:,}")
    return Scan(str(metadata.get("keras_version", "")), len(layers), stored, estimated)


def with_conversion(reason: str, metadata: dict[str, Any]) -> str:
    """Return why a file is refused, with the conversion first if Keras 2 has written it."""
    version = str(metadata.get("keras_version", ""))
    if not version.startswith(("1.", "2.")):
        return reason
    return f"it was saved by Keras {version[:20]}, whose files differ: {CONVERT_KERAS_2}. ({reason})"


def metadata_of(path: Path) -> dict[str, Any]:
    """Return the metadata in an untrusted `.keras` file.

    Raises:
        BadModel, DamagedFile: it has other members, or they cannot be read.
    """
    with (
        reading(path, STORED.suffix, SAVE_AGAIN),
        open_archive(path, directory_bytes=DIRECTORY_BYTES) as archive,
    ):
        _check_members(archive)
        return _json(archive, "metadata.json")


def scan_archive(path: Path) -> None:
    """Check the files in an untrusted `.keras` file and their sizes, but not the names in its config.

    Raises:
        BadModel, DamagedFile: as `scan`.
    """
    _check_start(path)
    with (
        reading(path, STORED.suffix, SAVE_AGAIN),
        open_archive(path, directory_bytes=DIRECTORY_BYTES) as archive,
    ):
        _check_members(archive)
        _json(archive, "metadata.json")
        _json(archive, "config.json")


def _check_start(path: Path) -> None:
    if path.stat().st_size > MAX_BYTES:
        raise BadModel(f"it has {path.stat().st_size:,} bytes; at most {MAX_BYTES:,} are accepted")
    # zipfile would also open an archive that follows other bytes, such as a pickle.
    with path.open("rb") as file:
        start = file.read(512)
    if not start.startswith(b"PK\x03\x04"):
        advice = how_to_convert(start, b"") or "Pickles, .h5 files and others are never loaded."
        raise BadModel(f"it is not a {STORED.suffix} file. {advice}")


def _check_members(archive: zipfile.ZipFile) -> None:
    members = archive.infolist()
    names = [member.filename for member in members]
    if sorted(name for name in names if name != PIPELINE) != sorted(MEMBERS) or names.count(PIPELINE) > 1:
        raise BadModel(
            f"a {STORED.suffix} file holds {', '.join(sorted(MEMBERS))}; this one holds {names[:10]}"
        )
    if sum(member.file_size for member in members) > MAX_BYTES:
        raise BadModel(f"it unpacks to more than {MAX_BYTES:,} bytes")
    for member in members:
        if member.flag_bits & 0x1:
            raise BadModel(f"{member.filename} is encrypted")
        if member.file_size > MAX_RATIO * max(member.compress_size, 1):
            raise BadModel(f"{member.filename} unpacks to over {MAX_RATIO} times its size")
        if member.filename.endswith(".json") and member.file_size > MAX_JSON:
            raise BadModel(f"{member.filename} has {member.file_size:,} bytes; at most {MAX_JSON:,} are read")


def _json(archive: zipfile.ZipFile, name: str) -> dict[str, Any]:
    body = json.loads(archive.read(name))
    if not isinstance(body, dict):
        raise BadModel(f"{name} is not a JSON object")
    return body


def check_config(config: dict[str, Any]) -> list[dict[str, Any]]:
    """Check every object and number in a model's config; return the entries for its layers.

    In the outermost `compile_config` only names are checked: neither this code nor serving loads it, but a
    person who downloads the file may.

    Raises:
        BadModel: it names an unknown class, or a number is too large.
    """
    _check_compile_config(config.get("compile_config"))
    root = {name: part for name, part in config.items() if name != "compile_config"}
    module, name = root.get("module"), root.get("class_name")
    if not isinstance(module, str) or not isinstance(name, str) or (module, name) not in MODELS:
        raise BadModel(_why_no_model(root))
    entries = list(_entries(root))
    for entry in entries:
        _check_entry(entry)
    layers = [entry for entry in entries if entry.get("module") == "keras.layers"]
    for layer in layers:
        _check_state(layer)
    if len(layers) > MAX_LAYERS:
        raise BadModel(f"it has {len(layers):,} layers; at most {MAX_LAYERS:,} are accepted")
    return layers


def _check_state(layer: dict[str, Any]) -> None:
    config = layer.get("config")
    if isinstance(config, dict) and config.get("stateful") is True:
        raise BadModel(
            f"its layer {config.get('name')!r} keeps a state from one request to the next (stateful=True): "
            "build the model with stateful=False, call model.set_weights(old.get_weights()), and save it"
        )


def _why_no_model(config: dict[str, Any]) -> str:
    """Return why a config is not that of a model whose layers and inputs are known."""
    module, name = config.get("module"), config.get("class_name")
    if is_keras_module(module):
        return f"it is a {module}.{name}, not a functional model"
    return (
        f"it is a model of the class {name}, which is not of Keras: {WITH_CODE}. Or save its layers without "
        "the class: inputs = keras.Input(shape); keras.Model(inputs, model.call(inputs)).save(path)"
    )


def _check_compile_config(part: Any) -> None:
    """Check that a `compile_config` names only parts of Keras, and no Python functions."""
    advice = "save the model without it: keras.saving.load_model(path, compile=False).save(path)"
    todo = [part]
    while todo:
        part = todo.pop()
        if isinstance(part, list):
            todo.extend(part)
        if not isinstance(part, dict):
            continue
        todo.extend(part.values())
        if "class_name" not in part and "module" not in part:
            continue
        module, name = part.get("module"), part.get("class_name")
        # A loss or metric that is a function; its name is looked up in Keras, and then among Python's own.
        function, registered = part.get("config"), part.get("registered_name")
        is_function = (module, name, registered) == ("builtins", "function", "function")
        is_harmless = is_function and isinstance(function, str) and not hasattr(builtins, function)
        if not is_harmless:
            try:
                _check_entry({"class_name": None, **part})
            except BadModel as error:
                raise BadModel(f"in its compile_config, {error}; {advice}") from error


def _entries(root: Any) -> Iterator[dict[str, Any]]:
    """Yield every JSON object that names a class; reject numbers too large to be a size."""
    # A list of parts to visit instead of recursion, which a deeply nested config would exhaust.
    todo: list[tuple[str, Any]] = [("", root)]
    while todo:
        name, part = todo.pop()
        if isinstance(part, dict):
            if "class_name" in part:
                yield part
            elif part.keys() == {"value"} and _is_code(part["value"]):
                raise BadModel(f"its {name} is a lambda: {NAMED_FUNCTION}")
            todo.extend(part.items())
        elif isinstance(part, list):
            todo.extend((name, item) for item in part)
        elif isinstance(part, int) and abs(part) > MAX_INTEGER and name not in UNSIZED:
            raise BadModel(f"its config has {name} = {part:,}, above {MAX_INTEGER:,}")


def _is_code(value: Any) -> bool:
    """Return whether a value is a lambda as Keras writes it: its code as a text, defaults and closure.

    The initializer Constant([0.1, 0.2]) has a list in the same place.
    """
    return isinstance(value, list) and len(value) == 3 and isinstance(value[0], str)


def _check_entry(entry: dict[str, Any]) -> None:
    module, name, registered = entry.get("module"), entry["class_name"], entry.get("registered_name")
    if not isinstance(name, str) or not isinstance(module, str | None):
        raise BadModel("its config has a class whose name is not a text")
    if module is None and name in MARKERS:
        return
    is_accepted = (
        (module, name) in MODELS
        or (module == "keras.layers" and name in LAYERS)
        or (module is not None and name in OPERATIONS.get(module, ()))
        or module in PLAIN_MODULES
        or (module, name) == ("keras", "DTypePolicy")
    )
    if not is_accepted:
        raise BadModel(why_refused(entry))
    if registered not in (None, name):
        raise BadModel(
            f"it uses the custom object {registered!r}, and only layers of Keras are accepted: {WITH_CODE}"
        )


def estimated_parameters(layer: dict[str, Any]) -> int:
    """Estimate a layer's kernel size from the sizes and input shape in its config; 0 if unknown."""
    config = layer.get("config")
    if not isinstance(config, dict):
        return 0
    built = layer.get("build_config")
    shape = built.get("input_shape") if isinstance(built, dict) else None
    inputs = _size(shape[-1]) if isinstance(shape, list) and shape else 1
    kind = layer["class_name"]
    units = _size(config.get("units"))
    if kind == "Dense":
        return inputs * units
    if kind in ("Embedding", "ReversibleEmbedding"):
        return _size(config.get("input_dim")) * _size(config.get("output_dim"))
    if kind.startswith(("Conv", "SeparableConv")):
        return _size(config.get("kernel_size")) * inputs * _size(config.get("filters"))
    if kind == "EinsumDense":
        return inputs * _size(config.get("output_shape"))
    if kind in ("MultiHeadAttention", "GroupQueryAttention"):
        heads = config.get("num_heads", config.get("num_query_heads"))
        return 4 * _size(heads) * _size(config.get("key_dim", config.get("head_dim"))) * inputs
    gates = {"LSTM": 4, "GRU": 3, "SimpleRNN": 1, "LSTMCell": 4, "GRUCell": 3, "SimpleRNNCell": 1}
    return gates.get(kind, 0) * units * (inputs + units)


def _size(value: Any) -> int:
    """Return a size, or several multiplied; 1 if there is none."""
    sizes = value if isinstance(value, list) else [value]
    # The product of a list of a million numbers would take hours.
    if len(sizes) > MAX_AXES:
        raise BadModel(f"its config has a shape with {len(sizes):,} axes; at most {MAX_AXES} are accepted")
    return math.prod(
        size for size in sizes if isinstance(size, int) and not isinstance(size, bool) and size > 0
    )
