"""Runs in a body worker: parses requests to arrays and encodes arrays to responses."""

import logging
import socket
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import psutil

from jobs.spec.signature import Signature
from workers.features.pipeline import Pipeline
from workers.model_process.errors import ServingError, plain_text
from workers.model_process.frames import Frame, FrameReader, write_frame
from workers.serving.bodies.packed import PackedBody
from workers.serving.protocols.protocol import AnsweringVersion, Prediction, Protocol, predictions_by_name
from workers.serving.protocols.table import PROTOCOLS
from workers.serving.response import JSON
from workers.serving.table import read_table

logger = logging.getLogger("trainyard.serving")

Array = npt.NDArray[Any]
# Parsed JSON needs many times its size, and Python does not return all of it. A worker that has grown beyond
# this ends, and the next body starts another.
_MAX_RESIDENT_BYTES = 2**30


class Answer(NamedTuple):
    """The fields and tensors in an answer."""

    fields: dict[str, Any]
    tensors: Sequence[Array]


def serve(connection: socket.socket, protocols: Iterable[Protocol] = PROTOCOLS) -> None:
    """Answer frames until the router closes the connection, or this process has grown too large.

    Args:
        connection: to the router.
        protocols: the protocols whose bodies the router sends.

    Raises:
        ConnectionError: the router closed the connection inside a frame.
        InvalidFrame: the stream contains invalid data.
    """
    frames, itself = FrameReader(connection), psutil.Process()
    predictions = predictions_by_name(protocols)
    while (frame := frames.read()) is not None:
        try:
            answer = _answer(frame, predictions)
        except ServingError as error:
            # A message may quote the body.
            text = plain_text(str(error), limit=2000)
            write_frame(connection, {"op": "error", "kind": str(error.status), "error": text})
        except MemoryError:
            write_frame(connection, {"op": "error", "kind": "413", "error": "The body needs too much memory"})
        # Any failure of a protocol: the router answers 500, and the worker continues with the next body.
        except Exception:
            logger.exception("%(op)s of %(prediction)s failed", frame.header)
            write_frame(connection, {"op": "error", "kind": "500", "error": "Internal error"})
        else:
            write_frame(connection, {"op": "outputs", **answer.fields}, answer.tensors)
            del answer
        # Not `ru_maxrss`, which a process inherits from the one that started it.
        if itself.memory_info().rss > _MAX_RESIDENT_BYTES:
            return


def _answer(frame: Frame, predictions: Mapping[str, Prediction[Any]]) -> Answer:
    prediction = predictions[frame.header["prediction"]]
    signature = Signature.model_validate(frame.header["signature"])
    if frame.header["op"] == "parse":
        call = prediction.parse(_body(frame), frame.header["header"], signature, _pipeline(frame))
        return Answer({"call": call.fields()}, call.arrays)
    return _encode(frame, prediction, signature)


def _encode(frame: Frame, prediction: Prediction[Any], signature: Signature) -> Answer:
    header, outputs = frame
    version = AnsweringVersion(
        header["model"], header["number"], signature, tuple(header["labels"]), header["multilabel"]
    )
    response = prediction.encode(prediction.call.restore([], header["call"]), outputs, version)
    headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in response.headers or JSON]
    return Answer({"status": response.status, "headers": headers}, [np.frombuffer(response.body, np.uint8)])


def _pipeline(frame: Frame) -> Pipeline | None:
    """Return the pipeline for the version to which a body is sent."""
    path = frame.header.get("pipeline")
    table = None if path is None else read_table(Path(path))
    return None if table is None else table.pipeline


def _body(frame: Frame) -> bytes:
    """Return the body in a frame, unpacked."""
    data, coding = frame.tensors[0].data, frame.header.get("coding")
    return bytes(data) if coding is None else PackedBody(data, coding, frame.header["limit"]).unpack()
