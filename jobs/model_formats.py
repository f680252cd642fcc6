"""Recognizes uploads that are models in other formats than `.keras`, and states how to convert them."""

_ZIP, _GZIP, _TAR, _TAR_PLACE = b"PK\x03\x04", b"\x1f\x8b", b"ustar", 257
_HDF5 = b"\x89HDF\r\n\x1a\n"
_SAVED_MODEL = b"\x08\x01\x12"
"""A SavedModel begins with its format number, 1, and its first graph."""
_PART = b"saved_model.pb"
"""A file in every SavedModel. Member names are plain text in a zip, and in a tar that is not compressed."""

FROM_H5 = 'keras.saving.load_model("model.h5", compile=False).save("model.keras") with Keras 3'
CONVERT_SAVED_MODEL = (
    "This is a TensorFlow SavedModel, which Keras 3 cannot load as a model: keras.layers.TFSMLayer can only "
    "predict with it. Load it with the version of TensorFlow and Keras that saved it, call "
    f'model.save("model.h5") there, and then {FROM_H5}. A SavedModel of model.export() has no layers any '
    "more: save the original model as .keras instead."
)
CONVERT_H5 = (
    f"This is an HDF5 file: convert it by {FROM_H5}. A file with weights alone needs its model first."
)
CONVERT_TAR = (
    "This is a packed archive, not a .keras file. A SavedModel in it can be converted with the version of "
    f'TensorFlow and Keras that saved it: load it, call model.save("model.h5"), and then {FROM_H5}.'
)


def how_to_convert(head: bytes, tail: bytes) -> str | None:
    """Return how to convert an upload to a `.keras` file; None if it is not recognized, or may be one.

    Args:
        head: its first bytes, at least 300.
        tail: its last bytes, where a zip archive lists its members.
    """
    if head.startswith(_HDF5):
        return CONVERT_H5
    if head.startswith(_SAVED_MODEL):
        return CONVERT_SAVED_MODEL
    is_tar = head[_TAR_PLACE:].startswith(_TAR)
    if (head.startswith(_ZIP) or is_tar) and (_PART in head or _PART in tail):
        return CONVERT_SAVED_MODEL
    return CONVERT_TAR if is_tar or head.startswith(_GZIP) else None
