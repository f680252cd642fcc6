"""Makes random requests for a model: some fit its signature, most are wrong in one way or another."""

import json
import random
from typing import Any, NamedTuple

Shape = tuple[int | None, ...]

_SIZES = (0, 1, 2, 3, 9)
_ROWS = (0, 1, 1, 1, 2, 3, 65)
_ODD: tuple[Any, ...] = (
    None,
    True,
    "text",
    "x" * 5000,
    {},
    [],
    [[]],
    10**40,
    -1,
    1.5,
    1e300,
    float("nan"),
    "\x1b[1mred\x00",
)


class FuzzRequest(NamedTuple):
    path: str
    body: bytes
    headers: dict[str, str]


class Fuzzer:
    """Random requests to one model.

    Args:
        seed: the same seed makes the same requests.
    model: its name.
        inputs: shape without the batch dimension, and Open Inference Protocol type, by name.
    """

    def __init__(self, seed: int, model: str, inputs: dict[str, tuple[Shape, str]]) -> None:
        self._random, self._model, self._inputs = random.Random(seed), model, inputs

    def request(self) -> FuzzRequest:
        """Return the next request."""
        make = self._random.choice((self._rows, self._columns, self._tensors, self._tensors, self._binary))
        return make()

    def _shape(self, shape: Shape) -> list[int]:
        sizes = [self._random.choice(_SIZES) if size is None else size for size in shape]
        kind = self._random.random()
        if kind < 0.05:
            sizes.append(self._random.choice(_SIZES))
        elif kind < 0.1 and sizes:
            sizes.pop()
        elif kind < 0.15 and sizes:
            sizes[self._random.randrange(len(sizes))] = self._random.choice((*_SIZES, 2**31 - 1))
        return sizes

    def _nested(self, sizes: list[int]) -> Any:
        if not sizes:
            odd = self._random.random() < 0.002
            return self._random.choice(_ODD) if odd else self._random.randrange(-3, 60)
        if sizes[0] > 1000:
            return []
        rows = [self._nested(sizes[1:]) for _ in range(sizes[0])]
        if rows and self._random.random() < 0.01:
            rows[self._random.randrange(len(rows))] = self._random.choice(_ODD)
        return rows

    def _rows(self) -> FuzzRequest:
        rows = self._random.choice(_ROWS)
        columns = {
            name: self._nested([rows, *self._shape(shape)]) for name, (shape, _) in self._inputs.items()
        }
        if len(columns) == 1 and self._random.random() < 0.8:
            instances: Any = next(iter(columns.values()))
        else:
            instances = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=False)]
        return self._predict({"instances": instances})

    def _columns(self) -> FuzzRequest:
        rows = self._random.choice(_ROWS)
        named = {name: self._nested([rows, *self._shape(shape)]) for name, (shape, _) in self._inputs.items()}
        return self._predict({"inputs": named})

    def _predict(self, value: Any) -> FuzzRequest:
        return FuzzRequest(f"/v1/models/{self._model}:predict", self._damaged(json.dumps(value).encode()), {})

    def _damaged(self, body: bytes) -> bytes:
        kind = self._random.random()
        if kind < 0.03:
            return body[: self._random.randrange(len(body))]
        if kind < 0.05:
            return b"[" * self._random.choice((100, 1020, 5000)) + body
        if kind < 0.07:
            depth = self._random.choice((70, 1000))
            return b'{"instances":' + b"[" * depth + b"true" + b"]" * depth + b"}"
        return body

    def _tensors(self) -> FuzzRequest:
        rows = self._random.choice(_ROWS)
        inputs = []
        for name, (shape, datatype) in self._inputs.items():
            sizes = [rows, *self._shape(shape)]
            data = self._nested(sizes)
            if self._random.random() < 0.1:
                sizes = self._shape((rows, *shape))
            if self._random.random() < 0.03:
                datatype = self._random.choice(("FP64", "BYTES", "BOOL", 5))  # type: ignore[assignment]
            inputs.append({"name": name, "shape": sizes, "datatype": datatype, "data": data})
        return FuzzRequest(
            f"/v2/models/{self._model}/infer", self._damaged(json.dumps({"inputs": inputs}).encode()), {}
        )

    def _binary(self) -> FuzzRequest:
        rows, raw, inputs = self._random.choice(_ROWS), b"", []
        for name, (shape, datatype) in self._inputs.items():
            sizes = [rows, *self._shape(shape)]
            count = 4
            for size in sizes:
                count *= size
            count = min(count, 4096) + self._random.choice((0, 0, 0, 0, 1, 4))
            raw += self._random.randbytes(count)
            parameters = {"binary_data_size": count}
            inputs.append({"name": name, "shape": sizes, "datatype": datatype, "parameters": parameters})
        head = json.dumps({"inputs": inputs}).encode()
        length = str(len(head) + self._random.choice((0, 0, 0, 0, 0, -1, 10**9)))
        headers = {"Inference-Header-Content-Length": length}
        return FuzzRequest(f"/v2/models/{self._model}/infer", head + raw, headers)
