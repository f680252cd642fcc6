"""Encodes status and metadata in TensorFlow Serving's format."""

from collections.abc import Iterable

import orjson

from jobs.spec.data.columns import ColumnType
from jobs.spec.signature import Signature, TensorSpec
from workers.model_process.dtypes import TYPES
from workers.serving.protocols.tfs_predict import SIGNATURE_NAME
from workers.serving.version_status import VersionStatus

_DATATYPES: dict[ColumnType, str] = {"number": "DT_DOUBLE", "integer": "DT_INT64", "boolean": "DT_BOOL"}
"""Those of all other types are texts."""


def encode_status(statuses: Iterable[VersionStatus]) -> bytes:
    """Return the status body, newest version first."""
    entries = []
    for status in sorted(statuses, key=lambda status: -status.number):
        # A version that is loaded again keeps the error of its last load.
        failed = status.state == "END" and status.error is not None
        code = {"error_code": "UNKNOWN" if failed else "OK", "error_message": status.error if failed else ""}
        entries.append({"version": str(status.number), "state": status.state, "status": code})
    return orjson.dumps({"model_version_status": entries})


def encode_metadata(model: str, version: int, signature: Signature) -> bytes:
    """Return the metadata body. Sizes are strings; -1 means any size."""
    definition = {
        "inputs": tensorflow_columns(signature) or {spec.name: _tensor(spec) for spec in signature.inputs},
        "outputs": {spec.name: _tensor(spec) for spec in signature.outputs},
        "method_name": "tensorflow/serving/predict",
        "defaults": {},
    }
    return orjson.dumps(
        {
            "model_spec": {"name": model, "signature_name": "", "version": str(version)},
            "metadata": {"signature_def": {"signature_def": {SIGNATURE_NAME: definition}}},
        }
    )


def _tensor(spec: TensorSpec) -> dict[str, object]:
    sizes = [-1 if size is None else size for size in (None, *spec.shape)]
    return {
        "dtype": TYPES[spec.dtype].tensorflow,
        "tensor_shape": {"dim": [{"size": str(size), "name": ""} for size in sizes], "unknown_rank": False},
        "name": f"{spec.name}:0",
    }


def tensorflow_columns(signature: Signature) -> dict[str, dict[str, object]]:
    """Return the columns as tensors of the metadata."""
    sizes = (-1,) if signature.window is None else (-1, signature.window.rows)
    shape = {"dim": [{"size": str(size), "name": ""} for size in sizes], "unknown_rank": False}
    return {
        column.name: {
            "dtype": _DATATYPES.get(column.type, "DT_STRING"),
            "tensor_shape": shape,
            "name": f"{column.name}:0",
        }
        for column in signature.columns
    }
