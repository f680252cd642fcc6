"""Small tables whose versions a test serves, and the same rows in every form that a protocol has."""

import json
import struct
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jobs.spec.data.column_plans import plan_columns
from jobs.spec.data.columns import ColumnOptions
from jobs.spec.data.profile import Column
from jobs.spec.signature import InputColumn, InputWindow, Signature, TensorSpec
from workers.features.files import add_features
from workers.features.fitting import fit
from workers.features.values import TEXT, Array
from workers.serving.table import ServedTable, read_table

from .in_process import Served, request

ROWS_OF_WINDOW = 2
STORES = [5, 7, 1000, 12, 2000]
CLASSES = ("a", "b", "c")
SALES: dict[str, Array] = {
    "store": np.repeat(np.array(STORES, np.int64), 6),
    "amount": np.linspace(-2, 3, 30),
}
"""The stores are a category: 5 has the first index of its own."""
VISITS: dict[str, Array] = {
    **SALES,
    "member": np.arange(30) % 2 == 0,
    "city": np.array(["Paris", "Rome", "Oslo"] * 10, TEXT),
    "day": np.datetime64("2026-01-01", "us") + np.arange(30).astype("timedelta64[D]"),
}
DESCRIBED = {
    "store": Column(name="store", dtype="int64", type="category", distinct=5, frequent=5),
    "amount": Column(name="amount", dtype="float64", type="number"),
    "member": Column(name="member", dtype="bool", type="boolean"),
    "city": Column(name="city", dtype="text", type="category", distinct=3),
    "day": Column(name="day", dtype="datetime64[us]", type="date"),
}
DATATYPES = {"store": "INT64", "amount": "FP64", "member": "BOOL", "city": "BYTES", "day": "BYTES"}


class Form(NamedTuple):
    """A request for predictions, and where its answer has them."""

    name: str
    content: bytes
    key: str


def served_table(
    folder: Path, columns: Mapping[str, Array], *, outputs: int = 3, window: int | None = None
) -> Served:
    """Return a linear model behind the pipeline that is fitted on a table.

    Args:
        folder: where the file with the pipeline is written.
        columns: the table.
        outputs: how many numbers it predicts; with 3, they are the scores of classes.
        window: how many rows one instance has.
    """
    options = {"store": ColumnOptions(encode="embedding")}
    plans = plan_columns([DESCRIBED[name] for name in columns], options)
    features = fit(plans, columns, np.arange(30))
    shape = None if window is None else InputWindow(rows=window, horizon=1, time="day")
    path = folder / f"{len(columns)}-{outputs}-{window}.keras"
    with zipfile.ZipFile(path, "w"):
        pass
    add_features(path, features.model_copy(update={"window": shape}))
    table = read_table(path)
    assert table is not None
    return Served(_signature(table, outputs), _linear(outputs), table, CLASSES if outputs == 3 else ())


def _signature(table: ServedTable, outputs: int) -> Signature:
    features = table.pipeline.features
    return Signature(
        inputs=(TensorSpec(name="input", dtype="float32", shape=features.input_shape),),
        outputs=(TensorSpec(name="output", dtype="float32", shape=(outputs,)),),
        columns=tuple(InputColumn(name=name, type=kind) for name, kind in table.pipeline.columns.items()),
        window=features.window,
    )


def _linear(outputs: int) -> Any:
    def compute(x: Array) -> Array:
        flat = x.reshape(len(x), -1).astype(np.float64)
        weights = np.cos(np.arange(flat.shape[1] * outputs)).reshape(flat.shape[1], outputs)
        return (flat @ weights).astype(np.float32)

    return compute


def expected(served: Served, columns: Mapping[str, Array], places: Sequence[int]) -> Array:
    """Return the predictions for rows of the table, encoded as the training encodes them."""
    assert served.table is not None
    pipeline = served.table.pipeline
    x = pipeline.of_stored({name: column[list(places)] for name, column in columns.items()})
    return served.compute(x.reshape(-1, *pipeline.features.input_shape))


def rows_of(columns: Mapping[str, Array], places: Sequence[int]) -> list[dict[str, Any]]:
    """Return rows of the table in natural form."""

    def natural(value: Any) -> Any:
        return np.datetime_as_string(value) if isinstance(value, np.datetime64) else value

    listed = {
        name: column[list(places)] if column.dtype.kind == "M" else column[list(places)].tolist()
        for name, column in columns.items()
    }
    return [{name: natural(values[i]) for name, values in listed.items()} for i in range(len(places))]


def forms_of_rows(rows: list[dict[str, Any]]) -> Iterator[Form]:
    """Yield requests with the same rows, in all forms of the row protocols."""
    lists = [list(row.values()) for row in rows]
    yield _predict("objects", {"instances": rows})
    yield _predict("lists", {"instances": lists})
    yield _predict("lists by the name of the input", {"instances": [{"input": row} for row in lists]})
    yield _predict("inputs as lists", {"inputs": lists})
    yield _predict("inputs by the name of the input", {"inputs": {"input": lists}})
    yield _predict("inputs by column", {"inputs": {name: [row[name] for row in rows] for name in rows[0]}})
    yield _predict("one key in another order", {"instances": [dict(reversed(row.items())) for row in rows]})
    yield from _infer_forms(rows, (len(rows),))


def forms_of_windows(windows: list[list[dict[str, Any]]]) -> Iterator[Form]:
    """Yield requests with the same windows of rows."""
    lists = [[list(row.values()) for row in rows] for rows in windows]
    names = [*windows[0][0]]
    columns = {name: [[row[name] for row in rows] for rows in windows] for name in names}
    yield _predict("windows of objects", {"instances": [{"rows": rows} for rows in windows]})
    yield _predict("windows of lists", {"instances": [{"rows": rows} for rows in lists]})
    yield _predict("lists of objects", {"instances": windows})
    yield _predict("lists of lists", {"instances": lists})
    yield _predict("lists by the name of the input", {"instances": [{"input": rows} for rows in lists]})
    yield _predict("inputs as lists", {"inputs": lists})
    yield _predict("inputs by the name of the input", {"inputs": {"input": lists}})
    yield _predict("inputs by column", {"inputs": columns})
    yield from _infer_forms([row for rows in windows for row in rows], (len(windows), ROWS_OF_WINDOW))


def forms_of_examples(rows: list[dict[str, Any]], verb: str) -> Iterator[Form]:
    """Yield classify or regress requests with the same rows."""
    lists = [list(row.values()) for row in rows]
    examples: dict[str, Any] = {
        "features": {"examples": rows},
        "features as lists": {"examples": [{name: [value] for name, value in row.items()} for row in rows]},
        "one feature": {"examples": [{"input": row} for row in lists]},
    }
    for name, body in examples.items():
        yield Form(f"{verb} {name}", request(body, f"/v1/models/m:{verb}"), "results")


def _predict(name: str, body: dict[str, Any]) -> Form:
    return Form(name, request(body), "predictions" if "instances" in body else "outputs")


def _infer_forms(rows: list[dict[str, Any]], shape: tuple[int, ...]) -> Iterator[Form]:
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    tensors = [_tensor(name, shape, DATATYPES[name], values) for name, values in columns.items()]
    yield infer("a JSON tensor for each column", [(tensor, None) for tensor in tensors])
    raw = [(_tensor(n, shape, DATATYPES[n], None), raw_bytes(v, DATATYPES[n])) for n, v in columns.items()]
    yield infer("a raw tensor for each column", raw)
    flat = [value for row in rows for value in row.values()]
    whole = (*shape, len(columns))
    yield infer("one JSON tensor", [(_tensor("input", whole, "BYTES", flat), None)])
    nested = np.array(flat, object).reshape(whole).tolist()
    yield infer("one nested JSON tensor", [(_tensor("input", whole, "BYTES", nested), None)])
    if all(isinstance(value, int | float) for value in flat):
        for datatype in ("FP64", "FP32", "FP16", "BF16"):
            yield infer(f"one JSON tensor of {datatype}", [(_tensor("input", whole, datatype, flat), None)])
            # BF16 has too few digits for the stores.
            if datatype != "BF16":
                raw = [(_tensor("input", whole, datatype, None), raw_bytes(flat, datatype))]
                yield infer(f"one raw tensor of {datatype}", raw)


def _tensor(name: str, shape: Sequence[int], datatype: str, data: list[Any] | None) -> dict[str, Any]:
    tensor: dict[str, Any] = {"name": name, "shape": [*shape], "datatype": datatype}
    return tensor if data is None else {**tensor, "data": data}


def raw_bytes(values: Sequence[Any], datatype: str) -> bytes:
    """Return values as the bytes of a tensor."""
    if datatype == "BYTES":
        return b"".join(struct.pack("<I", len(text.encode())) + text.encode() for text in map(str, values))
    if datatype == "BF16":
        return (np.array(values, np.float32).view(np.uint32) >> 16).astype("<u2").tobytes()
    dtypes = {"INT64": "<i8", "FP64": "<f8", "FP32": "<f4", "FP16": "<f2", "BOOL": "?"}
    return np.array(values, dtypes[datatype]).tobytes()


def infer(name: str, tensors: Sequence[tuple[dict[str, Any], bytes | None]]) -> Form:
    """Return an infer request with tensors whose bytes follow the JSON, if they have some."""
    described = [
        tensor if raw is None else {**tensor, "parameters": {"binary_data_size": len(raw)}}
        for tensor, raw in tensors
    ]
    head = json.dumps({"inputs": described}).encode()
    raw = b"".join(raw for _, raw in tensors if raw is not None)
    headers = {"Inference_Header_Content_Length": str(len(head))} if raw else {}
    return Form(name, request(head + raw, "/v2/models/m/infer", **headers), "data")


def predictions_in(body: bytes, key: str, outputs: int) -> Array:
    """Return the numbers in an answer, (rows, outputs)."""
    answer = json.loads(body)
    if key == "data":
        return np.array(answer["outputs"][0]["data"]).reshape(-1, outputs)
    if key == "results" and outputs > 1:
        return np.array([[score for _, score in row] for row in answer["results"]])
    return np.array(answer[key]).reshape(-1, outputs)
