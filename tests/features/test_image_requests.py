"""Images of requests and stored ones: equal arrays, and refusals."""

import base64
import json
import struct
from typing import Any

import numpy as np
import pytest
from PIL import Image
from pydantic import ValidationError

from jobs.spec.data.column_plans import input_shape, plan_column
from jobs.spec.data.columns import ColumnOptions
from jobs.spec.data.features import Features, ImageFeature, NumberFeature
from jobs.spec.data.images import MAX_PIXELS
from jobs.spec.data.profile import Column
from jobs.spec.signature import InputColumn, Signature, TensorSpec
from tests.features.test_images import COLOUR, png_of
from tests.images import picture, saved
from workers.features.images import decode, read_header
from workers.features.pipeline import Pipeline
from workers.features.values import BadValue
from workers.model_process.errors import BadRequest
from workers.serving.protocols import oip_infer, quick_bodies, tfs_examples, tfs_predict


def feature(channels: Any = 3) -> ImageFeature:
    return ImageFeature(column="image", channels=channels, height=8, width=12, fit="fit")


PIPELINE = Pipeline(Features(columns=(feature(),)))


SIGNATURE = Signature(
    inputs=(TensorSpec(name="input", dtype="float32", shape=(8, 12, 3)),),
    outputs=(TensorSpec(name="output", dtype="float32", shape=(3,)),),
    columns=(InputColumn(name="image", type="image"),),
)


BODIES = [picture("PNG"), picture("JPEG", size=(40, 30)), picture("WEBP", "RGBA", (9, 20))]


STORED = np.stack([decode(body, COLOUR) for body in BODIES])


BITS = STORED.astype(np.float32).tobytes()


def b64(body: bytes) -> str:
    return base64.b64encode(body).decode()


def inferred(tensor: dict[str, Any], raw: bytes = b"") -> np.ndarray:
    head = json.dumps({"inputs": [{"name": "image", "shape": [3], "datatype": "BYTES", **tensor}]}).encode()
    return oip_infer.parse_infer(head + raw, str(len(head)) if raw else None, SIGNATURE, PIPELINE).arrays[0]


def test_stored_images_and_those_of_requests_give_equal_bits() -> None:
    stored = PIPELINE.of_stored({"image": STORED})
    assert stored.dtype == np.uint8
    assert stored.astype(np.float32).tobytes() == BITS
    rows = [{"image": {"b64": b64(body)}} for body in BODIES]
    by_row = tfs_predict.parse_predict(json.dumps({"instances": rows}).encode(), SIGNATURE, PIPELINE)
    columns = {"inputs": {"image": [row["image"] for row in rows]}}
    by_column = tfs_predict.parse_predict(json.dumps(columns).encode(), SIGNATURE, PIPELINE)
    raw = b"".join(struct.pack("<I", len(body)) + body for body in BODIES)
    arrays = [
        *(by_row.arrays[0], by_column.arrays[0]),
        inferred({"data": [b64(body) for body in BODIES]}),
        inferred({"parameters": {"binary_data_size": len(raw)}}, raw),
        np.concatenate([PIPELINE.of_rows([row]) for row in rows]),
        Pipeline(Features.model_validate_json(PIPELINE.features.model_dump_json())).of_rows(rows),
    ]
    assert {array.dtype for array in arrays} == {np.dtype(np.float32)}
    assert {array.shape for array in arrays} == {(3, 8, 12, 3)}
    assert {array.tobytes() for array in arrays} == {BITS}


def test_an_image_is_the_same_in_every_form_of_a_request() -> None:
    images = [{"b64": b64(body)} for body in BODIES]
    whole = {"name": "input", "datatype": "BYTES"}
    raw = b"".join(struct.pack("<I", len(body)) + body for body in BODIES)
    for body in (
        {"instances": images},
        {"instances": [[image] for image in images]},
        {"instances": [{"input": image} for image in images]},
        {"inputs": images},
        {"inputs": {"input": images}},
    ):
        call = tfs_predict.parse_predict(json.dumps(body).encode(), SIGNATURE, PIPELINE)
        assert call.arrays[0].tobytes() == BITS, body.keys()
    for shape in ([3], [3, 1]):
        data = [b64(body) for body in BODIES]
        assert inferred({**whole, "shape": shape, "data": data}).tobytes() == BITS
        sized = {**whole, "shape": shape, "parameters": {"binary_data_size": len(raw)}}
        assert inferred(sized, raw).tobytes() == BITS
    for feature in ("image", "input"):
        examples = {"examples": [{feature: image} for image in images]}
        arrays = tfs_examples.parse_examples(json.dumps(examples).encode(), SIGNATURE, PIPELINE)
        assert arrays[0].tobytes() == BITS


def test_base64_may_have_line_breaks() -> None:
    lines = base64.encodebytes(BODIES[0]).decode()
    for text in (lines, lines.replace("\n", "\r\n"), f"  {lines}\t"):
        assert PIPELINE.of_rows([{"image": {"b64": text}}]).tobytes() == BITS[: len(BITS) // 3]


@pytest.mark.parametrize("rows", [STORED.tolist(), [[row] for row in STORED.tolist()]])
def test_pixels_are_refused_with_the_form_that_is_accepted(rows: list[Any]) -> None:
    with pytest.raises(BadRequest, match=r'\{"b64": "…"\}'):
        tfs_predict.parse_predict(json.dumps({"instances": rows}).encode(), SIGNATURE, PIPELINE)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"image": {"b64": "%%%"}}, "column 'image' has in row 1 a text that is not base64"),
        ({"image": {"b64": b64(b"hello")}}, "column 'image' has in row 1 no image in one of the formats"),
        ({"image": {"b64": b64(png_of(30_000, 30_000))}}, f"at most {MAX_PIXELS:,} pixels"),
        ({"image": {"b64": b64(png_of(12, 8))}}, "a damaged PNG image"),
        ({"image": {}}, 'no image of the form {"b64": "…"}'),
        ({"image": {"b64": "", "more": 1}}, 'no image of the form {"b64": "…"}'),
        ({"image": "abc"}, 'no image of the form {"b64": "…"}'),
        ({"image": None}, "column 'image' has in row 1 no image"),
        ({}, "column 'image' has in row 1 no image"),
        ({"picture": {"b64": ""}}, "row 1 has the unknown column 'picture'; the columns are image"),
    ],
)
def test_a_request_without_a_usable_image_is_refused_with_the_row(row: Any, message: str) -> None:
    with pytest.raises(BadRequest) as refused:
        tfs_predict.parse_predict(json.dumps({"instances": [row]}).encode(), SIGNATURE, PIPELINE)
    assert message in str(refused.value)


def test_too_many_bytes_are_refused_before_they_are_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.features.images.MAX_IMAGE_BYTES", 100)
    with pytest.raises(BadValue, match="at most 100 are read"):
        PIPELINE.of_rows([{"image": {"b64": "A" * 1000}}])
    with pytest.raises(BadValue, match="at most 100 are read"):
        PIPELINE.of_json({"image": [bytes(101)]}, 1)


def test_a_key_that_is_given_twice_inside_of_an_image_is_refused() -> None:
    body = b'{"instances": [{"image": {"b64": "", "b64": ""}}]}'
    with pytest.raises(BadRequest, match="twice"):
        tfs_predict.parse_predict(body, SIGNATURE, PIPELINE)


def test_another_process_decodes_every_image() -> None:
    size = quick_bodies.size_of(PIPELINE)
    body = json.dumps({"instances": [{"image": {"b64": b64(BODIES[0])}}]}).encode()
    assert len(body) < 2048
    assert not quick_bodies.is_quick(body, size)
    assert not quick_bodies.is_quick(b'{"inputs": []}' + BODIES[0], size, raw=len(BODIES[0]))
    assert not quick_bodies.is_quick(b'{"instances": [null]}', size)


def test_a_pipeline_has_an_image_alone() -> None:
    number = NumberFeature(column="age", type="number", fill=0.0, indicator=False)
    with pytest.raises(ValidationError, match="no other column can be combined"):
        Features(columns=(feature(), number))
    with pytest.raises(ValidationError, match="cannot be encoded as NumberFeature"):
        NumberFeature(column="image", type="image", fill=0.0, indicator=False)


def test_an_image_has_no_options() -> None:
    shape = {"height": 8, "width": 12, "channels": 3, "fit": "fit"}
    column = Column.model_validate({"name": "image", "dtype": "uint8", "type": "image", "image": shape})
    assert input_shape([plan_column(column, ColumnOptions())]) == (8, 12, 3)
    for options in ({"encode": "pixels"}, {"encode": "hash"}, {"impute": "mean"}, {"indicator": True}):
        with pytest.raises(ValueError, match="column 'image'"):
            plan_column(column, ColumnOptions.model_validate(options))


@pytest.mark.parametrize("kind", ["PNG", "BMP", "GIF"])
@pytest.mark.parametrize(("last", "is_grey"), [([200, 200, 200], True), ([9, 9, 200], False)])
def test_the_colours_of_a_palette_are_known_from_the_header_alone(
    kind: str, last: list[int], is_grey: bool
) -> None:
    image = Image.new("P", (64, 48))
    image.putpalette([9, 9, 9, *last])
    image.putdata([(x // 8) % 2 for _ in range(48) for x in range(64)])
    body = saved(image, kind)
    assert read_header(body).is_grey == is_grey
    # All pixels are missing, which only decoding finds.
    begins = {"PNG": body.find(b"IDAT") + 4, "BMP": int.from_bytes(body[10:14], "little"), "GIF": -24}
    cut = body[: begins[kind]]
    header = read_header(cut)
    assert (header.width, header.height, header.is_grey) == (64, 48, is_grey)
    with pytest.raises(BadValue, match="damaged"):
        decode(cut, COLOUR)
