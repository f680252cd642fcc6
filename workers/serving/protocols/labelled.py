"""Answers with the names of the classes: `?labels=1` in the address, or `"output": "labels"` in the body.

TensorFlow Serving's own answer has the bare numbers of the model.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qs

import numpy as np
import numpy.typing as npt
import orjson

from workers.model_process.errors import BadRequest, BodyTooLarge
from workers.serving.protocols.json_tensors import dump, is_finite, quote_value
from workers.serving.protocols.protocol import AnsweringVersion

Array = npt.NDArray[Any]

QUERY_FIELD, BODY_FIELD = "labels", "output"
_LABELS = "labels"
_SWITCH = {"1": True, "true": True, "0": False, "false": False}
_APPLIES_ABOVE = 0.5
"""A label applies above this probability, as evaluations count."""
_MOST_MISSING = 0.02
"""How far the sum of a row's probabilities may be from 1, by rounding in 16 bits."""
_MAX_BYTES = 512 * 2**20
_BYTES_PER_NUMBER = 16


def asks_for_labels(query: str) -> bool:
    """Return whether the query of an address asks for the names of the classes.

    Raises:
        BadRequest: its field has another value than a switch.
    """
    if QUERY_FIELD not in query:
        return False
    values = parse_qs(query, keep_blank_values=True).get(QUERY_FIELD, [])
    if len({*values}) > 1 or any(value not in _SWITCH for value in values):
        raise BadRequest(f"{QUERY_FIELD}: {quote_value(values[-1])} is no switch; send labels=1 or labels=0")
    return bool(values) and _SWITCH[values[0]]


def refuse_labels(query: str, reason: str) -> None:
    """Refuse an address that asks for the names of the classes where no answer has this form.

    Raises:
        BadRequest: it does.
    """
    if asks_for_labels(query):
        raise BadRequest(f"{QUERY_FIELD}: {reason}; send labels=1 to :predict")


def asks_for_labels_in_body(request: Mapping[str, Any]) -> bool:
    """Return whether a predict body asks for the names of the classes.

    Raises:
        BadRequest: its field has another value.
    """
    if BODY_FIELD not in request:
        return False
    if request[BODY_FIELD] != _LABELS:
        raise BadRequest(
            f'{BODY_FIELD}: {quote_value(request[BODY_FIELD])} is unknown; send "{_LABELS}", or leave it out'
        )
    return True


def encode_labelled(outputs: Sequence[Array], version: AnsweringVersion, *, key: str, field: str) -> bytes:
    """Return the response body: for each row, the class and the probabilities by name.

    The class is a list of labels where several may apply. A row with NaN or infinities has null for them and
    for its class, and the body has `"nonfinite": true`.

    Args:
        outputs: arrays in the signature's order, batch dimension first.
        version: names the classes.
        key: that of the rows in the body.
        field: the one that has asked for the names, for messages.

    Raises:
        BadRequest: the classes are not known, or the outputs are no probabilities.
        BodyTooLarge: the names make the answer too long.
    """
    scores = _scores_of_classes(outputs, version, field)
    names = [orjson.dumps(label) for label in version.class_labels]
    if len(scores) * sum(len(name) + _BYTES_PER_NUMBER for name in names) > _MAX_BYTES:
        raise BodyTooLarge(
            f"{field}: the answer with the names is larger than {_MAX_BYTES} bytes; send fewer rows"
        )
    _check_probabilities(scores, version, field)
    rows = b",".join(_encode_rows(scores, version))
    end = b"]}" if is_finite(scores) else b'],"nonfinite":true}'
    return b"".join((b'{"', key.encode(), b'":[', rows, end))


def _scores_of_classes(outputs: Sequence[Array], version: AnsweringVersion, field: str) -> Array:
    """Return the scores, (rows, classes).

    Raises:
        BadRequest: the version has no score for each of its classes, or no names of them.
    """
    labels, name = version.class_labels, f"{version.model} v{version.number}"
    if not labels:
        raise BadRequest(
            f"{field}: {name} has no names of classes: it predicts numbers, or its "
            "data are unknown; ask without it"
        )
    if len({*labels}) < len(labels):
        raise BadRequest(f"{field}: two classes of {name} have the same name; ask without it")
    if len(outputs) == 1 and outputs[0].ndim <= 2:
        scores = outputs[0].reshape(len(outputs[0]), -1)
        # A binary model may return only the probability of its second class.
        if scores.shape[1] == 1 and len(labels) == 2:
            scores = np.concatenate([1 - scores, scores], axis=1)
        if scores.shape[1] == len(labels):
            return scores
    raise BadRequest(
        f"{field}: {name} does not return one number for each of its {len(labels)} classes; ask without it"
    )


def _check_probabilities(scores: Array, version: AnsweringVersion, field: str) -> None:
    """Check that the scores are probabilities: own code may return other numbers, such as logits.

    Raises:
        BadRequest: a row has other numbers.
    """
    finite = np.isfinite(scores).all(axis=1)
    wrong = finite & ((scores < 0) | (scores > 1)).any(axis=1)
    what = "has numbers outside of 0 to 1"
    if not wrong.any() and not version.multilabel:
        with np.errstate(invalid="ignore"):
            sums = scores.sum(axis=1, dtype=np.float64)
        wrong, what = finite & (abs(sums - 1) > _MOST_MISSING), "does not sum to 1"
    if wrong.any():
        raise BadRequest(
            f"{field}: the outputs of {version.model} v{version.number} are no probabilities "
            f"of its classes: row {int(wrong.argmax()) + 1} {what}; ask without it"
        )


def _encode_rows(scores: Array, version: AnsweringVersion) -> Iterator[bytes]:
    """Return each row as JSON. One at a time: objects for all rows would take many times the memory."""
    labels = version.class_labels
    for row in scores:
        label: object = None
        if np.isfinite(row).all():
            applies = [name for name, score in zip(labels, row, strict=True) if score > _APPLIES_ABOVE]
            label = applies if version.multilabel else labels[int(row.argmax())]
        yield dump({"label": label, "probabilities": dict(zip(labels, row, strict=True))})
