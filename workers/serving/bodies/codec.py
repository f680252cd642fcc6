"""Parses and encodes bodies: small ones at once, large ones in a worker process.

Nothing else runs in a process that parses JSON:
orjson and NumPy hold Python's lock, so a thread would not help.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from jobs.contracts.signature import Signature
from workers.serving.bodies.pool import BodyWorkers
from workers.serving.errors import BadRequest, BodyTooLarge, ServingError
from workers.serving.frames import Frame
from workers.serving.protocols import oip, tfs_predict
from workers.serving.versions.child_process import ChildFailed

Array = npt.NDArray[Any]
Body = bytes | bytearray

# Up to these sizes, a body is parsed at once: in less than 1 ms, or in 3 ms while no other request waits.
_SMALL_BYTES = 64 * 2**10
_SMALL_BYTES_ALONE = 256 * 2**10
# Encoding takes about as long as parsing per value, and a value has 4 bytes instead of about 8 characters.
_SMALL_OUTPUT_BYTES = 32 * 2**10


class BodyCodec:
    """Parses and encodes the bodies of both protocols.

    Attributes:
        open_requests: the number of requests that are being answered, kept by the application.
    """

    def __init__(self, workers: BodyWorkers) -> None:
        self._workers = workers
        self.open_requests = 0

    async def parse_predict(
        self, body: Body, signature: Signature, deadline: float
    ) -> tfs_predict.PredictCall:
        """Parse a predict body; see `tfs_predict.parse_predict`.

        Raises:
            ServingError: it does not fit, or could not be parsed in time.
        """
        if self._is_small(len(body)):
            return tfs_predict.parse_predict(body, signature)
        frame = await self._run({"op": "parse_predict"}, [np.frombuffer(body, np.uint8)], signature, deadline)
        return tfs_predict.PredictCall(frame.tensors, frame.header["rows"])

    async def parse_infer(
        self, body: Body, header_length: str | None, signature: Signature, deadline: float
    ) -> oip.InferCall:
        """Parse an infer body; see `oip.parse_infer`.

        Raises:
            ServingError: it does not fit, or could not be parsed in time.
        """
        # Raw tensors are not parsed.
        is_valid = header_length is not None and header_length.isdecimal() and len(header_length) < 10
        length = int(header_length) if is_valid and header_length is not None else len(body)
        if self._is_small(length):
            return oip.parse_infer(body, header_length, signature)
        header = {"op": "parse_infer", "header_length": header_length}
        frame = await self._run(header, [np.frombuffer(body, np.uint8)], signature, deadline)
        outputs = [oip.RequestedOutput(*each) for each in frame.header["outputs"]]
        return oip.InferCall(frame.tensors, outputs, frame.header["call"])

    async def encode_predict(
        self, outputs: Sequence[Array], signature: Signature, *, rows: bool, deadline: float
    ) -> bytes | memoryview:
        """Return the body of a predict response; see `tfs_predict.encode_predict`."""
        if self._is_small_output(outputs):
            return tfs_predict.encode_predict(outputs, signature, rows=rows)
        frame = await self._run({"op": "encode_predict", "rows": rows}, outputs, signature, deadline)
        return frame.tensors[0].data

    async def encode_infer(
        self,
        call: oip.InferCall,
        outputs: Sequence[Array],
        model: str,
        version: int,
        signature: Signature,
        deadline: float,
    ) -> oip.Encoded:
        """Return the body of an infer response; see `oip.encode_infer`."""
        plain = [outputs[position] for position, binary in call.outputs if not binary]
        if self._is_small_output(plain):
            return oip.encode_infer(call, outputs, model, version, signature)
        header = {
            "op": "encode_infer",
            "outputs": [list(each) for each in call.outputs],
            "call": call.id,
            "model": model,
            "version": version,
        }
        frame = await self._run(header, outputs, signature, deadline)
        return oip.Encoded(frame.tensors[0].data, frame.header["header_length"])

    async def _run(
        self, header: dict[str, Any], tensors: Sequence[Array], signature: Signature, deadline: float
    ) -> Frame:
        try:
            return await self._workers.run(
                {**header, "signature": signature.model_dump(mode="json")}, tensors, deadline
            )
        except ChildFailed as error:
            match error.kind:
                case "400":
                    raise BadRequest(str(error)) from None
                case "413":
                    raise BodyTooLarge(str(error)) from None
                case _:
                    raise ServingError(str(error)) from None

    def _is_small(self, size: int) -> bool:
        return size <= (_SMALL_BYTES_ALONE if self.open_requests <= 1 else _SMALL_BYTES)

    def _is_small_output(self, outputs: Sequence[Array]) -> bool:
        size = sum(output.nbytes for output in outputs)
        return size <= (4 * _SMALL_OUTPUT_BYTES if self.open_requests <= 1 else _SMALL_OUTPUT_BYTES)
