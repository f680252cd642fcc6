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
from workers.serving.protocols import oip_infer, tfs_examples, tfs_predict
from workers.serving.protocols.table_rows import is_quick
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
    """Parses and encodes the bodies of both protocols.

    Attributes:
        open_requests: the number of requests that are being answered, kept by the application.
    """

    def __init__(self, workers: BodyWorkers) -> None:
        self._workers = workers
        self.open_requests = 0

    async def parse_predict(
        self, body: Body, signature: Signature, deadline: float, table: ServedTable | None = None
    ) -> tfs_predict.PredictCall:
        """Parse a predict body; see `tfs_predict.parse_predict`.

        Raises:
            ServingError: it does not fit, or could not be parsed in time.
        """
        small = self._small(body)
        if small is not None and (table is None or is_quick(small, table.size)):
            return tfs_predict.parse_predict(small, signature, table and table.pipeline)
        frame = await self._parse({"op": "parse_predict"}, body, signature, deadline, table)
        return tfs_predict.PredictCall(frame.tensors, frame.header["rows"])

    async def parse_examples(self, body: Body, signature: Signature, deadline: float) -> list[Array]:
        """Parse a classify or regress body; see `tfs_examples.parse_examples`.

        Raises:
            ServingError: it does not fit, or could not be parsed in time.
        """
        small = self._small(body)
        if small is not None:
            return tfs_examples.parse_examples(small, signature)
        return (await self._parse({"op": "parse_examples"}, body, signature, deadline)).tensors

    async def parse_infer(
        self,
        body: Body,
        header_length: str | None,
        signature: Signature,
        deadline: float,
        table: ServedTable | None = None,
    ) -> oip_infer.InferCall:
        """Parse an infer body; see `oip_infer.parse_infer`.

        Raises:
            ServingError: it does not fit, or could not be parsed in time.
        """
        # Raw tensors are not parsed.
        is_valid = header_length is not None and header_length.isdecimal() and len(header_length) < 10
        length = int(header_length) if is_valid and header_length is not None else None
        small = self._small(body, length)
        raw = 0 if small is None or length is None else max(len(small) - length, 0)
        if small is not None and (table is None or is_quick(small, table.size, raw=raw)):
            return oip_infer.parse_infer(small, header_length, signature, table and table.pipeline)
        header = {"op": "parse_infer", "header_length": header_length}
        frame = await self._parse(header, body, signature, deadline, table)
        outputs = [oip_infer.RequestedOutput(*each) for each in frame.header["outputs"]]
        return oip_infer.InferCall(frame.tensors, outputs, frame.header["call"])

    async def encode_predict(
        self, outputs: Sequence[Array], signature: Signature, *, rows: bool, deadline: float
    ) -> bytes | memoryview:
        """Return the body of a predict response; see `tfs_predict.encode_predict`."""
        if self.is_small_output(outputs):
            return tfs_predict.encode_predict(outputs, signature, rows=rows)
        frame = await self._run({"op": "encode_predict", "rows": rows}, outputs, signature, deadline)
        return frame.tensors[0].data

    async def encode_results(
        self,
        verb: tfs_examples.Verb,
        outputs: Sequence[Array],
        labels: Sequence[str],
        signature: Signature,
        deadline: float,
    ) -> bytes | memoryview:
        """Return the body of a classify or regress response; see `tfs_examples.encode_results`."""
        if self.is_small_output(outputs):
            return tfs_examples.encode_results(verb, outputs, labels)
        header = {"op": "encode_results", "verb": verb, "labels": list(labels)}
        frame = await self._run(header, outputs, signature, deadline)
        return frame.tensors[0].data

    async def encode_infer(
        self,
        call: oip_infer.InferCall,
        outputs: Sequence[Array],
        model: str,
        version: int,
        signature: Signature,
        deadline: float,
    ) -> oip_infer.Encoded:
        """Return the body of an infer response; see `oip_infer.encode_infer`."""
        plain = [outputs[position] for position, binary in call.outputs if not binary]
        if self.is_small_output(plain):
            return oip_infer.encode_infer(call, outputs, model, version, signature)
        header = {
            "op": "encode_infer",
            "outputs": [list(each) for each in call.outputs],
            "call": call.id,
            "model": model,
            "version": version,
        }
        frame = await self._run(header, outputs, signature, deadline)
        return oip_infer.Encoded(frame.tensors[0].data, frame.header["header_length"])

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

    def _small(self, body: Body, parsed: int | None = None) -> PlainBody | None:
        """Return the body, unpacked, if it is so small that it is parsed at once; else None.

        Args:
            body: the whole body.
            parsed: the bytes that are parsed, if not all.
        """
        limit = _SMALL_BYTES_ALONE if self.open_requests <= 1 else SMALL_BYTES
        if not isinstance(body, PackedBody):
            return body if (len(body) if parsed is None else parsed) <= limit else None
        if len(body.data) > limit:
            return None
        try:
            return body.unpack(min(limit, body.limit))
        except BodyTooLarge:
            if body.limit <= limit:
                raise
            return None

    def is_small_output(self, outputs: Sequence[Array]) -> bool:
        """Return whether outputs are so small that they are encoded at once."""
        size = sum(output.nbytes for output in outputs)
        return size <= (4 * _SMALL_OUTPUT_BYTES if self.open_requests <= 1 else _SMALL_OUTPUT_BYTES)
