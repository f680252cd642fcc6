"""Encodes status and metadata in TensorFlow Serving's format."""

from collections.abc import Iterable

import orjson

from jobs.spec.signature import Signature, TensorSpec
from workers.model_process.dtypes import TYPES
from workers.serving.protocols.table_rows import tensorflow_columns
from workers.serving.protocols.tfs_predict import SIGNATURE_NAME
from workers.serving.version_status import VersionStatus


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
