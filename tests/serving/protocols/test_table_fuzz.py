"""Whatever JSON a request for table rows has, it is read or refused as the caller's error."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.serving.in_process import Served
from tests.serving.table_models import ROWS_OF_WINDOW, VISITS, served_table
from workers.model_process.errors import BadRequest, BodyTooLarge
from workers.serving.protocols.oip_infer import parse_infer
from workers.serving.protocols.tfs_examples import parse_examples
from workers.serving.protocols.tfs_predict import parse_predict

KEYS = st.sampled_from([*VISITS, "input", "rows", "b64", "other"])
VALUES = st.sampled_from([5, 0.5, -1, 2**70, True, None, "", "Paris", "2026-01-01", 1e300, "\ud800"])
JSON = st.recursive(
    VALUES,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=30,
)
TENSORS = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "name": KEYS,
            "shape": st.lists(st.sampled_from([0, 1, 2, 5, -1, None]), max_size=3) | VALUES,
            "datatype": st.sampled_from(["FP32", "FP16", "BF16", "BOOL", "INT64", "BYTES", "X", None]),
            "data": JSON,
            "parameters": st.sampled_from([{}, None, [], {"binary_data_size": 4}, {"binary_data_size": -1}]),
        },
    ),
    max_size=3,
)


@pytest.fixture(scope="module", params=[None, ROWS_OF_WINDOW], ids=["rows", "windows"])
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Served:
    folder: Path = tmp_path_factory.mktemp("served")
    return served_table(folder, VISITS, window=request.param)


def read(served: Served, parse: Any, *arguments: Any) -> None:
    """Read a body; the input that it gives has the model's shape."""
    assert served.table is not None
    pipeline = served.table.pipeline
    try:
        call = parse(*arguments, served.signature, pipeline)
    except (BadRequest, BodyTooLarge):
        return
    (array,) = call if isinstance(call, list) else call.arrays
    assert array.dtype == np.float32
    assert array.shape == (len(array), *pipeline.features.input_shape)
    assert np.isfinite(array).all()


@settings(deadline=None)
@given(body=st.dictionaries(st.sampled_from(["instances", "inputs", "signature_name"]), JSON))
def test_a_predict_body_is_read_or_refused(served: Served, body: dict[str, Any]) -> None:
    read(served, parse_predict, json.dumps(body).encode())


@settings(deadline=None)
@given(body=st.dictionaries(st.sampled_from(["examples", "context"]), JSON))
def test_an_examples_body_is_read_or_refused(served: Served, body: dict[str, Any]) -> None:
    read(served, parse_examples, json.dumps(body).encode())


@settings(deadline=None)
@given(tensors=TENSORS, raw=st.binary(max_size=9), is_split=st.booleans())
def test_an_infer_body_is_read_or_refused(
    served: Served, tensors: list[dict[str, Any]], raw: bytes, is_split: bool
) -> None:
    head = json.dumps({"inputs": tensors}).encode()
    read(served, parse_infer, head + raw, str(len(head)) if is_split else None)
