"""Unpacks, parses and encodes bodies: small ones at once, large ones in a worker process.

Nothing else runs in a process that parses JSON:
orjson and NumPy hold Python's lock, so a thread would not help.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from jobs.spec.signature import Signature
from workers.model_process.errors import BadRequest, BodyTooLarge, ServingError
from workers.model_process.frames import Frame
from workers.serving.bodies.packed import PackedBody
from workers.serving.bodies.pool import BodyWorkers
from workers.serving.protocols.protocol import AnsweringVersion, Call, Prediction
from workers.serving.protocols.quick_bodies import is_quick
from workers.serving.response import Response
from workers.serving.table import ServedTable
from workers.serving.versions.child_process import ChildFailed

Array = npt.NDArray[Any]
PlainBody = bytes | bytearray
Body = PlainBody | PackedBody

# Up to these sizes, a body is parsed at once: in less than 1 ms, or in 3 ms while no other request waits.
SMALL_BYTES = 64 * 2**10
_SMALL_BYTES_ALONE = 256 * 2**10
# Encoding takes about as long as parsing per value, and a value has 4 bytes instead of about 8 characters.
_SMALL_OUTPUT_BYTES = 32 * 2**10


class BodyCodec:
    """Parses and encodes the bodies of prediction requests.

    Attributes:
        open_requests: how many requests are being answered, kept by the application.
    """

    def __init__(self, workers: BodyWorkers) -> None:
        self._workers = workers
        self.open_requests = 0

    async def parse[C: Call](
        self,
        prediction: Prediction[C],
        body: Body,
        header: str | None,
        signature: Signature,
        deadline: float,
        table: ServedTable | None = None,
    ) -> C:
        """Parse the body of a prediction request.

        Args:
            prediction: the operation.
            body: as it was received.
            header: the header that the operation needs, if it was sent.
            signature: the answering version's.
            deadline: monotonic time.
            table: this version's pipeline, if it takes table columns.

        Raises:
            ServingError: it does not fit, or could not be parsed in time.
        """
        json_bytes = None
        if header is not None and prediction.json_bytes is not None:
            json_bytes = prediction.json_bytes(header)
        small = self._small(body, json_bytes)
        if small is not None and table is None:
            return prediction.parse(small, header, signature, None)
        if small is not None and table is not None:
            raw = 0 if json_bytes is None else max(len(small) - json_bytes, 0)
            if is_quick(small, table.size, raw=raw):
                return prediction.parse(small, header, signature, table.pipeline)
        fields = {"op": "parse", "prediction": prediction.name, "header": header}
        frame = await self._parse(fields, body, signature, deadline, table)
        return prediction.call.restore(frame.tensors, frame.header["call"])

    async def encode[C: Call](
        self,
        prediction: Prediction[C],
        call: C,
        outputs: Sequence[Array],
        version: AnsweringVersion,
        deadline: float,
    ) -> Response:
        """Return the response to a request for a prediction.

        Args:
            prediction: the operation.
            call: the parsed request.
            outputs: arrays in the signature's order.
            version: the version that answers.
            deadline: monotonic time.

        Raises:
            ServingError: it could not be encoded in time.
        """
        if self.encodes_at_once(prediction, call, outputs):
            return prediction.encode(call, outputs, version)
        fields = {
            "op": "encode",
            "prediction": prediction.name,
            "call": call.fields(),
            "model": version.model,
            "number": version.number,
            "labels": list(version.class_labels),
            "multilabel": version.multilabel,
        }
        frame = await self._run(fields, outputs, version.signature, deadline)
        headers = [
            (name.encode("latin-1"), value.encode("latin-1")) for name, value in frame.header["headers"]
        ]
        return Response(frame.tensors[0].data, frame.header["status"], headers)

    async def _parse(
        self,
        header: dict[str, Any],
        body: Body,
        signature: Signature,
        deadline: float,
        table: ServedTable | None = None,
    ) -> Frame:
        if table is not None:
            header = {**header, "pipeline": str(table.path)}
        if isinstance(body, PackedBody):
            header = {**header, "coding": body.coding, "limit": body.limit}
            body = bytes(body.data)
        return await self._run(header, [np.frombuffer(body, np.uint8)], signature, deadline)

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

    def _small(self, body: Body, json_bytes: int | None = None) -> PlainBody | None:
        """Return the body, unpacked, if it is so small that it is parsed at once; else None.

        Args:
            body: the whole body.
            json_bytes: how many bytes are parsed, if not all.
        """
        limit = _SMALL_BYTES_ALONE if self.open_requests <= 1 else SMALL_BYTES
        if not isinstance(body, PackedBody):
            return body if (len(body) if json_bytes is None else json_bytes) <= limit else None
        if len(body.data) > limit:
            return None
        try:
            return body.unpack(min(limit, body.limit))
        except BodyTooLarge:
            if body.limit <= limit:
                raise
            return None

    def encodes_at_once[C: Call](self, prediction: Prediction[C], call: C, outputs: Sequence[Array]) -> bool:
        """Return whether the outputs for a call are so small that they are encoded at once."""
        if prediction.json_outputs is not None:
            outputs = prediction.json_outputs(call, outputs)
        size = sum(output.nbytes for output in outputs)
        return size <= (4 * _SMALL_OUTPUT_BYTES if self.open_requests <= 1 else _SMALL_OUTPUT_BYTES)
