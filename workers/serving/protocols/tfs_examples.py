"""Parses and encodes TensorFlow Serving's classify and regress bodies, whose rows are lists of flat features.

For a version that takes table columns, the features are the columns.

The models have only a predict signature. A version also classifies if its only output is a score for each of
its class labels, and regresses if its only output is one number a row.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from jobs.spec.signature import Signature, TensorSpec, Verb, answers, takes_flat_features
from workers.features.pipeline import Pipeline
from workers.model_process.errors import BadRequest
from workers.serving.protocols.json_tensors import (
    Body,
    dump_answer,
    needs_check,
    quote_value,
    to_array,
    type_name,
)
from workers.serving.protocols.labelled import BODY_FIELD
from workers.serving.protocols.long_numbers import with_exact_numbers
from workers.serving.protocols.table_rows import ROWS, check_keys, names_of_input, read_instances
from workers.serving.protocols.tfs_predict import check_signature_name, parse_object

Array = npt.NDArray[Any]
_NEEDS = {
    "classify": ("classification", "a score for each class label of the version"),
    "regress": ("regression", "one number for each row"),
}


def check_allowed(verb: Verb, signature: Signature, labels: Sequence[str]) -> None:
    """Check that a version can answer.

    Raises:
        BadRequest: its signature or its labels do not allow it.
    """
    if not answers(verb, signature, labels):
        kind, need = _NEEDS[verb]
        raise BadRequest(
            f"Expected {kind} signature method_name to be tensorflow/serving/{verb}. "
            f"Was: tensorflow/serving/predict. To {verb}, the only output must be {need}"
        )
    if not takes_flat_features(signature):
        raise BadRequest("Features are flat lists, and the model has inputs of open shapes: use :predict")


def parse_examples(body: Body, signature: Signature, pipeline: Pipeline | None = None) -> list[Array]:
    """Return the input arrays in a classify or regress body, in the signature's order.

    Args:
        body: the JSON.
        signature: the answering version's.
        pipeline: this version's, if it takes table columns, which are then the features.

    Raises:
        BadRequest: it does not fit the format or the signature.
        BodyTooLarge: its examples become too many numbers.
    """
    request = with_exact_numbers(parse_object(body), body, pipeline)
    check_signature_name(request, "No signature was found with the name: {}")
    if BODY_FIELD in request:
        raise BadRequest(
            f"{BODY_FIELD!r} is a field of :predict; a classification names its classes without it"
        )
    context, examples = _features(request.get("context", {})), _examples(request)
    strings = len(request) + ("signature_name" in request) + len(context) + sum(map(len, examples))
    for number, example in enumerate(examples):
        if both := sorted(context.keys() & example.keys()):
            raise BadRequest(f"Feature: {both[0]} is in 'context' and in examples[{number}]; send it once")
    rows = [{**context, **example} for example in examples] if context else examples
    if pipeline is not None:
        check_keys(body, request)
        return [_read_table(rows, pipeline, names_of_input(signature, pipeline))]
    strict = needs_check(body, strings)
    return [_column(rows, spec, strict=strict) for spec in signature.inputs]


def _read_table(examples: list[dict[str, Any]], pipeline: Pipeline, input_names: frozenset[str]) -> Array:
    """Return the input for examples whose features are columns: a value, or a list of the only value.

    In windows, each feature is a list with the values of all rows. As in the other bodies, an example may
    have its values, or its rows, in one list under the name of the model's input.
    """
    instances: list[object] = []
    whole = {*input_names, ROWS} - pipeline.columns.keys()
    for number, example in enumerate(examples):
        if len(example) == 1 and example.keys() <= whole:
            instances.append(example)
        elif pipeline.features.window is None:
            instances.append({key: _only_value(value) for key, value in example.items()})
        else:
            instances.append(_rows_of_window(example, number))
    return read_instances(instances, pipeline, input_names)


def _only_value(value: Any) -> Any:
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _rows_of_window(example: dict[str, Any], number: int) -> list[dict[str, Any]]:
    lists = [value if isinstance(value, list) else [value] for value in example.values()]
    lengths = {key: len(values) for key, values in zip(example, lists, strict=True)}
    if len({*lengths.values()}) > 1:
        raise BadRequest(f"examples[{number}]: the features differ in their number of rows: {lengths}")
    return [dict(zip(example, row, strict=True)) for row in zip(*lists, strict=True)]


def _examples(request: dict[str, Any]) -> list[dict[str, Any]]:
    if "examples" not in request:
        raise BadRequest(
            f"JSON Value: {quote_value(request)} When method is classify, key 'examples' is expected and was "
            "not found"
        )
    examples = request["examples"]
    if not isinstance(examples, list):
        raise BadRequest(f"JSON Value: {quote_value(request)} Expecting 'examples' value to be an list/array")
    if not examples:
        raise BadRequest(f"JSON Value: {quote_value(request)} 'examples' value is an empty array")
    return [_features(example) for example in examples]


def _features(example: object) -> dict[str, Any]:
    if not isinstance(example, dict):
        raise BadRequest(f"Example must be JSON object but got JSON {type_name(example)}")
    return example


def _column(rows: list[dict[str, Any]], spec: TensorSpec, *, strict: bool) -> Array:
    """Return one input. Features that the model does not take are ignored, as in TensorFlow Serving."""
    flat = None if None in spec.shape else math.prod(size for size in spec.shape if size is not None)
    lists = [_values(row, number, spec) for number, row in enumerate(rows)]
    array = to_array(lists, spec.model_copy(update={"shape": (flat,)}), strict=strict)
    return array.reshape(len(rows), *(array.shape[1:] if flat is None else spec.shape))


def _values(row: dict[str, Any], number: int, spec: TensorSpec) -> list[Any]:
    if spec.name not in row:
        raise BadRequest(f"Feature: {spec.name} is required but could not be found in examples[{number}]")
    value = row[spec.name]
    values = value if isinstance(value, list) else [value]
    if any(isinstance(item, list) for item in values):
        raise BadRequest(
            f"Feature: {spec.name} has element with unexpected JSON type: Array; send a flat list"
        )
    return values


def encode_results(verb: Verb, outputs: Sequence[Array], labels: Sequence[str]) -> bytes:
    """Return the response body: for each row, pairs of label and score, or one number."""
    scores = outputs[0].reshape(len(outputs[0]), -1)
    if verb == "regress":
        scores = np.ascontiguousarray(scores[:, 0])
        return dump_answer("results", scores, [scores])
    if scores.shape[1] < len(labels):
        scores = np.concatenate([1 - scores, scores], axis=1)
    rows = [[[label, score] for label, score in zip(labels, row, strict=True)] for row in scores]
    return dump_answer("results", rows, [scores])
