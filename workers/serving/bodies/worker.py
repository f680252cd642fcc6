"""Runs in a body worker: parses requests to arrays and encodes arrays to responses."""

import logging
import socket
from collections.abc import Sequence
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
from workers.serving.protocols import oip_infer, tfs_examples, tfs_predict
from workers.serving.table import read_table

logger = logging.getLogger("trainyard.serving")

Array = npt.NDArray[Any]
# Parsed JSON needs many times its size, and Python does not return all of it. A worker that has grown beyond
# this ends, and the next body starts another.
_MAX_RESIDENT_BYTES = 2**30


class Answer(NamedTuple):
    """The fields and tensors of an answer."""

    fields: dict[str, Any]
    tensors: Sequence[Array]


def serve(connection: socket.socket) -> None:
    """Answer frames until the router closes the connection, or this process has grown too large.

    Raises:
        ConnectionError: the router closed the connection inside a frame.
        InvalidFrame: the stream contains invalid data.
    """
    frames, itself = FrameReader(connection), psutil.Process()
    while (frame := frames.read()) is not None:
        try:
            answer = _answer(frame)
        except ServingError as error:
            # A message may quote the body.
            text = plain_text(str(error), limit=2000)
            write_frame(connection, {"op": "error", "kind": str(error.status), "error": text})
        except MemoryError:
            write_frame(connection, {"op": "error", "kind": "413", "error": "The body needs too much memory"})
        # The router answers 500.
        except Exception:
            logger.exception("%s failed", frame.header["op"])
            write_frame(connection, {"op": "error", "kind": "500", "error": "Internal error"})
        else:
            write_frame(connection, {"op": "outputs", **answer.fields}, answer.tensors)
            del answer
        # Not `ru_maxrss`, which a process inherits from the one that started it.
        if itself.memory_info().rss > _MAX_RESIDENT_BYTES:
            return


def _answer(frame: Frame) -> Answer:
    header, tensors = frame
    signature = Signature.model_validate(header["signature"])
    match header["op"]:
        case "parse_predict":
            predict = tfs_predict.parse_predict(_body(frame), signature, _pipeline(frame))
            return Answer({"rows": predict.rows}, predict.arrays)
        case "parse_examples":
            return Answer({}, tfs_examples.parse_examples(_body(frame), signature))
        case "parse_infer":
            infer = oip_infer.parse_infer(_body(frame), header["header_length"], signature, _pipeline(frame))
            return Answer({"outputs": [list(each) for each in infer.outputs], "call": infer.id}, infer.arrays)
        case "encode_results":
            body = tfs_examples.encode_results(header["verb"], tensors, header["labels"])
            return Answer({}, [np.frombuffer(body, np.uint8)])
        case "encode_predict":
            body = tfs_predict.encode_predict(tensors, signature, rows=header["rows"])
            return Answer({}, [np.frombuffer(body, np.uint8)])
        case _:
            call = oip_infer.InferCall(
                [], [oip_infer.RequestedOutput(*each) for each in header["outputs"]], header["call"]
            )
            encoded = oip_infer.encode_infer(call, tensors, header["model"], header["version"], signature)
            return Answer({"header_length": encoded.header_length}, [np.frombuffer(encoded.body, np.uint8)])


def _pipeline(frame: Frame) -> Pipeline | None:
    """Return the pipeline of the version for which a body is parsed."""
    path = frame.header.get("pipeline")
    table = None if path is None else read_table(Path(path))
    return None if table is None else table.pipeline


def _body(frame: Frame) -> bytes:
    """Return the body of a frame, unpacked."""
    data, coding = frame.tensors[0].data, frame.header.get("coding")
    return bytes(data) if coding is None else PackedBody(data, coding, frame.header["limit"]).unpack()
