"""Recognizes uploads that are models in other formats than `.keras`, and states how to convert them."""

import re
from collections.abc import Callable

_ZIP, _GZIP, _TAR, _TAR_PLACE = b"PK\x03\x04", b"\x1f\x8b", b"ustar", 257
_HDF5 = b"\x89HDF\r\n\x1a\n"
_SAVED_MODEL = b"\x08\x01\x12"
"""A SavedModel begins with its format number, 1, and its first graph."""
_PART = b"saved_model.pb"
"""A file in every SavedModel. Member names are plain text in a zip, and in a tar that is not compressed."""
_ONNX = re.compile(rb"\x08[\x02-\x20][\x12\x3a\x42]")
"""An ONNX file begins with the version of its format and its producer, its graph or its operators."""
_PICKLE = re.compile(rb"\x80[\x02-\x05]")
_ZLIB, _XZ, _BZIP2 = (b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda"), b"\xfd7zXZ\x00", b"BZh"
"""joblib writes pickles that are compressed in one of these forms."""
_TORCH = (b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19",)
_TORCH_MEMBERS = re.compile(rb"(?:data\.pkl|constants\.pkl|byteorder|data/serialization_id)")
_SAFE_TENSORS = re.compile(rb".{8}\{\"", re.DOTALL)
_ARRAYS = re.compile(rb"\.npy")

FROM_H5 = 'keras.saving.load_model("model.h5", compile=False).save("model.keras") with Keras 3'
CONVERT_SAVED_MODEL = (
    "This is a TensorFlow SavedModel, which Keras 3 cannot load as a model: keras.layers.TFSMLayer can only "
    "predict with it. Load it with the version of TensorFlow and Keras that saved it, call "
    f'model.save("model.h5") there, and then {FROM_H5}. A SavedModel of model.export() has no layers any '
    "more: save the original model as .keras instead."
)
CONVERT_H5 = (
    f"This is an HDF5 file: convert it by {FROM_H5}. A file with weights alone needs its model first: build "
    'it, model.load_weights("model.weights.h5"), and then model.save("model.keras").'
)
CONVERT_TAR = (
    "This is a packed archive, not a .keras file. A SavedModel in it can be converted with the version of "
    f'TensorFlow and Keras that saved it: load it, call model.save("model.h5"), and then {FROM_H5}.'
)
CONVERT_KERAS_2 = (
    'convert it with TensorFlow and Keras of that version, tf.keras.models.load_model("model.keras")'
    f'.save("model.h5"), and then by {FROM_H5}'
)
_REBUILD = (
    "Build the same layers in Keras, set their weights from its arrays by layer.set_weights([…]), and "
    'model.save("model.keras")'
)
_TRAIN_HERE = "a model of this kind can be trained here: by a template, or by your script on the page Code"
CONVERT_TORCH = (
    "This is a file of PyTorch, a pickle: loading it would run code, so it is never loaded. "
    f'{_REBUILD}: torch.load("model.pt", weights_only=True)["fc.weight"].numpy().T is the kernel of a Dense '
    f"layer. Or {_TRAIN_HERE}."
)
CONVERT_PICKLE = (
    "This is a pickle, as joblib and scikit-learn write their models: loading it would run code, so it is "
    f"never loaded. A{_TRAIN_HERE[1:]}: the template of boosted trees trains on the same table."
)
CONVERT_ONNX = (
    "This is an ONNX file, a graph without layers of Keras, which cannot be loaded. Save the original model "
    'by model.save("model.keras") if Keras has made it. Of another library: '
    f"{_REBUILD[0].lower()}{_REBUILD[1:]}: onnx.numpy_helper.to_array(tensor) for each tensor of "
    'onnx.load("model.onnx").graph.initializer.'
)
CONVERT_LITE = (
    "This is a TensorFlow Lite file, from which the layers cannot be restored: save the original model by "
    'model.save("model.keras").'
)
CONVERT_WEIGHTS = f"This file has weights alone, as safetensors. {_REBUILD}."
CONVERT_ARCHITECTURE = (
    "This is the JSON of a model's layers, without their weights: "
    'keras.models.model_from_json(text), load the weights, and model.save("model.keras").'
)
CONVERT_TREES = f"This is a model of trees from another library, which has no layers. A{_TRAIN_HERE[1:]}."
CONVERT_ARRAYS = (
    "This archive has arrays of NumPy, not a model. If they are weights: build the model, "
    'model.set_weights(list(np.load("model.npz").values())), and model.save("model.keras").'
)
UNPACK = "This is a zip around a model file: unpack it and upload the file itself."


def how_to_convert(head: bytes, tail: bytes) -> str | None:
    """Return how to convert an upload to a `.keras` file; None if it is not recognized, or may be one.

    Args:
        head: its first bytes, at least 300.
        tail: its last bytes, where a zip archive lists its members.
    """
    if head.startswith(_SAVED_MODEL):
        return CONVERT_SAVED_MODEL
    is_tar = head[_TAR_PLACE:].startswith(_TAR)
    is_zip = head.startswith(_ZIP)
    if (is_zip or is_tar) and (_PART in head or _PART in tail):
        return CONVERT_SAVED_MODEL
    if is_zip:
        return _of_members(tail)
    if is_tar or head.startswith(_GZIP):
        return CONVERT_TAR
    return next((advice for recognizes, advice in _BY_START if recognizes(head)), None)


def _of_members(tail: bytes) -> str | None:
    """Return how to convert a zip archive, by the names of its members."""
    if b"config.json" in tail and b"metadata.json" in tail:
        return None
    if _TORCH_MEMBERS.search(tail):
        return CONVERT_TORCH
    if re.search(rb"\.(keras|h5|hdf5)", tail):
        return UNPACK
    return CONVERT_ARRAYS if _ARRAYS.search(tail) else None


def _is_text_with(*words: bytes) -> Callable[[bytes], bool]:
    return lambda head: head.lstrip()[:1] in (b"{", b"[", b"t") and all(word in head for word in words)


_BY_START: tuple[tuple[Callable[[bytes], object], str], ...] = (
    (lambda head: head.startswith(_HDF5), CONVERT_H5),
    (lambda head: head.startswith(_TORCH), CONVERT_TORCH),
    (_PICKLE.match, CONVERT_PICKLE),
    (lambda head: head.startswith((*_ZLIB, _XZ, _BZIP2)), CONVERT_PICKLE),
    (lambda head: head[4:8] == b"TFL3", CONVERT_LITE),
    (_ONNX.match, CONVERT_ONNX),
    (_SAFE_TENSORS.match, CONVERT_WEIGHTS),
    (lambda head: head.startswith(b"CBM1"), CONVERT_TREES),
    (_is_text_with(b"tree\nversion="), CONVERT_TREES),
    (lambda head: head.startswith(b"{") and b"learner" in head, CONVERT_TREES),
    (_is_text_with(b'"class_name"'), CONVERT_ARCHITECTURE),
)
"""How a file is recognized by its first bytes, and its advice."""
