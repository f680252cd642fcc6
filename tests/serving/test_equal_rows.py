"""The same rows give the same predictions in every protocol and form, on the direct path and off it."""

import gzip
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.serving.in_process import Serving, connect, listening, request
from tests.serving.table_models import (
    ROWS_OF_WINDOW,
    SALES,
    STORES,
    VISITS,
    Form,
    expected,
    forms_of_examples,
    forms_of_rows,
    forms_of_windows,
    infer,
    predictions_in,
    raw_bytes,
    rows_of,
    served_table,
)
from workers.features.values import Array
from workers.serving.settings import Limits

PLACES = [0, 7, 12, 13, 29, 24]
"""Rows of the stores 5, 7, 1000 and 2000."""


async def asked(serving: Serving, form: Form) -> Array:
    """Return the predictions in the answers to a request that is sent twice: the second is direct, if any."""
    client = await connect(serving)
    outputs = serving.child.served.signature.outputs[0].shape[0] or 1
    answers = []
    for _ in range(2):
        head, body = await client.ask(form.content)
        assert head.startswith(b"HTTP/1.1 200 "), (form.name, body)
        answers.append(predictions_in(body, form.key, outputs))
    client.writer.close()
    np.testing.assert_array_equal(answers[0], answers[1], err_msg=form.name)
    return answers[0]


async def refused(serving: Serving, content: bytes) -> str:
    client = await connect(serving)
    answers = [await client.ask(content) for _ in range(2)]
    client.writer.close()
    assert all(head.startswith(b"HTTP/1.1 400 ") for head, _ in answers), answers
    first, second = (json.loads(body)["error"] for _, body in answers)
    assert first == second
    return str(first)


def compressed(form: Form) -> Form:
    """Return the request with its body as gzip."""
    head, _, body = form.content.partition(b"\r\n\r\n")
    lines = [line for line in head.split(b"\r\n") if not line.startswith(b"Content-Length")]
    packed = gzip.compress(body)
    lines += [b"Content-Encoding: gzip", b"Content-Length: %d" % len(packed)]
    return form._replace(name=f"{form.name}, compressed", content=b"\r\n".join(lines) + b"\r\n\r\n" + packed)


def rounded(columns: dict[str, Array]) -> dict[str, Array]:
    """Return columns whose numbers each datatype sends exactly."""
    return {**columns, "amount": np.round(columns["amount"] * 4) / 4}


@pytest.mark.parametrize("columns", [rounded(SALES), rounded(VISITS)], ids=["numbers", "all types"])
async def test_equal_rows_give_equal_predictions(columns: dict[str, Array], tmp_path: Path) -> None:
    served = served_table(tmp_path, columns)
    right = expected(served, columns, PLACES)
    assert np.isfinite(right).all()
    rows = rows_of(columns, PLACES)
    forms = [*forms_of_rows(rows), *forms_of_examples(rows, "classify")]
    async with listening(Serving(Limits(), served=served)) as serving:
        for form in [*forms, *map(compressed, forms)]:
            np.testing.assert_allclose(await asked(serving, form), right, rtol=1e-6, err_msg=form.name)
        assert serving.direct > 0


async def test_equal_rows_give_equal_regressions(tmp_path: Path) -> None:
    served = served_table(tmp_path, VISITS, outputs=1)
    right, rows = expected(served, VISITS, PLACES), rows_of(VISITS, PLACES)
    async with listening(Serving(Limits(), served=served)) as serving:
        for form in forms_of_examples(rows, "regress"):
            np.testing.assert_allclose(await asked(serving, form), right, rtol=1e-6, err_msg=form.name)


async def test_equal_windows_give_equal_predictions(tmp_path: Path) -> None:
    columns = {name: VISITS[name] for name in ("store", "amount", "city")}
    served = served_table(tmp_path, columns, window=ROWS_OF_WINDOW)
    right, rows = expected(served, columns, PLACES), rows_of(columns, PLACES)
    windows = [rows[start : start + ROWS_OF_WINDOW] for start in range(0, len(rows), ROWS_OF_WINDOW)]
    classified = {name: [[row[name] for row in rows] for rows in windows] for name in columns}
    examples = [{name: classified[name][i] for name in columns} for i in range(len(windows))]
    by_rows = [{"rows": rows} for rows in windows]
    forms = [
        *forms_of_windows(windows),
        *(
            Form("classify", request({"examples": e}, "/v1/models/m:classify"), "results")
            for e in (examples, by_rows)
        ),
    ]
    async with listening(Serving(Limits(), served=served)) as serving:
        for form in forms:
            np.testing.assert_allclose(await asked(serving, form), right, rtol=1e-6, err_msg=form.name)


async def test_equal_rows_of_large_bodies_give_equal_predictions(tmp_path: Path) -> None:
    places = PLACES * 700
    served = served_table(tmp_path, VISITS)
    right, rows = expected(served, VISITS, places), rows_of(VISITS, places)
    async with listening(Serving(Limits(), served=served)) as serving:
        for form in [*forms_of_rows(rows), *forms_of_examples(rows, "classify")]:
            client = await connect(serving)
            _, body = await client.ask(form.content)
            client.writer.close()
            np.testing.assert_allclose(predictions_in(body, form.key, 3), right, rtol=1e-6, err_msg=form.name)


def wrong_numbers() -> Iterator[bytes]:
    """Yield requests whose rows have another number of values than the table has columns."""
    for row in ([5], [5, 0.5, 1], [1, 0, 0, 0, 0, 0, 0.5]):
        yield request({"instances": [row]})
        yield request({"inputs": [row]})
        yield request({"instances": [{"input": row}]})
        yield request({"inputs": {"input": [row]}})
        yield request({"examples": [{"input": row}]}, "/v1/models/m:classify")
        tensor = {"name": "input", "shape": [1, len(row)], "datatype": "FP32"}
        yield infer("", [({**tensor, "data": row}, None)]).content
        yield infer("", [(tensor, np.array(row, "<f4").tobytes())]).content


async def test_another_number_of_values_is_refused_with_the_columns_in_order(tmp_path: Path) -> None:
    async with listening(Serving(Limits(), served=served_table(tmp_path, SALES))) as serving:
        for content in wrong_numbers():
            assert "store, amount" in await refused(serving, content), content


def one_row(value: Any) -> Sequence[Form]:
    return [*forms_of_rows([{"store": value, "amount": 0.5}])]


async def test_an_unknown_category_is_predicted_as_other_ones(tmp_path: Path) -> None:
    served = served_table(tmp_path, SALES)
    columns = {"store": np.array([999], np.int64), "amount": np.array([0.5])}
    right = expected(served, columns, [0])
    async with listening(Serving(Limits(), served=served)) as serving:
        for store in (999, 4, 1001):
            for form in one_row(store):
                np.testing.assert_allclose(await asked(serving, form), right, rtol=1e-6, err_msg=form.name)


async def test_a_number_that_its_datatype_may_have_rounded_is_no_category(tmp_path: Path) -> None:
    async with listening(Serving(Limits(), served=served_table(tmp_path, SALES))) as serving:
        for store, datatype in ((258, "BF16"), (2050, "FP16"), (2**24 + 2, "FP32"), (2**53 + 2, "FP64")):
            tensor = {"name": "input", "shape": [1, 2], "datatype": datatype}
            message = await refused(serving, infer("", [(tensor, raw_bytes([store, 0.5], datatype))]).content)
            assert f"column 'store' takes words, and {store} in {datatype} may be a rounded number" in message


async def test_a_category_is_the_decimal_number_that_a_raw_float_was_made_of(tmp_path: Path) -> None:
    columns = {"store": np.repeat([0.1, 2.5, 0.3], 10), "amount": SALES["amount"]}
    served = served_table(tmp_path, columns)
    right = expected(served, columns, [0, 11, 22])
    async with listening(Serving(Limits(), served=served)) as serving:
        for datatype in ("FP64", "FP32", "FP16"):
            stores = raw_bytes([0.1, 2.5, 0.3], datatype)
            amounts = columns["amount"][[0, 11, 22]].astype("<f8").tobytes()
            tensors = [
                ({"name": "store", "shape": [3], "datatype": datatype}, stores),
                ({"name": "amount", "shape": [3], "datatype": "FP64"}, amounts),
            ]
            answer = await asked(serving, infer(datatype, tensors))
            np.testing.assert_allclose(answer, right, rtol=1e-6, err_msg=datatype)


async def test_numbers_of_16_bits_are_read_as_the_numbers_that_they_are(tmp_path: Path) -> None:
    amounts = [0.1, -2.5, 1000.0]
    served = served_table(tmp_path, SALES)
    async with listening(Serving(Limits(), served=served)) as serving:
        for datatype, sent in (
            ("FP16", [0.0999755859375, -2.5, 1000.0]),
            ("BF16", [0.099609375, -2.5, 1000.0]),
        ):
            columns = {"store": np.array([5, 5, 5]), "amount": np.array(sent)}
            right = expected(served, columns, [0, 1, 2])
            store = ({"name": "store", "shape": [3], "datatype": "INT64", "data": [5, 5, 5]}, None)
            amount = {"name": "amount", "shape": [3], "datatype": datatype}
            raw = infer(datatype, [store, (amount, raw_bytes(amounts, datatype))])
            written = infer(datatype, [store, ({**amount, "data": sent}, None)])
            for form in (raw, written):
                np.testing.assert_allclose(await asked(serving, form), right, rtol=1e-6, err_msg=form.name)


def test_the_stores_of_the_table_have_indices_of_their_own(tmp_path: Path) -> None:
    table = served_table(tmp_path, SALES).table
    assert table is not None
    encoded = table.pipeline.of_json({"store": STORES, "amount": [0] * 5}, 5)
    assert len({*encoded[:, 0].tolist()}) == len(STORES)
