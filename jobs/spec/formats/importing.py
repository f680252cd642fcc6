"""Reads a search space in any supported format. Other modules call this one."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from jobs.spec.formats import katib, keras_tuner, optuna, vertex, wandb
from jobs.spec.formats.reading import Item, format_error, quote_value
from jobs.spec.formats.result import Format, Imported
from jobs.spec.formats.text import parse


class Reader(NamedTuple):
    """A format's title, its detection and its parser."""

    title: str
    looks_like: Callable[[Mapping[str, Any]], bool]
    read: Callable[[Item], Imported]


# Formats are detected in this order, so the one with the most distinctive keys is the first.
READERS: dict[Format, Reader] = {
    "keras_tuner": Reader("KerasTuner", keras_tuner.looks_like, keras_tuner.read),
    "katib": Reader("Katib", katib.looks_like, katib.read),
    "vertex": Reader("Vertex AI", vertex.looks_like, vertex.read),
    "wandb": Reader("Weights & Biases", wandb.looks_like, wandb.read),
    "optuna": Reader("Optuna", optuna.looks_like, optuna.read),
}


# The argument has the name of the API's field, although it hides a built-in function.
def read(text: str, format: Format | None = None) -> Imported:  # noqa: A002
    """Read a search space in another tool's format.

    Args:
        text: JSON or YAML with at most `text.MAX_CHARACTERS` characters.
        format: the file's format; None: detect it from the keys.

    Returns:
        The parts of a search spec that the file describes.

    Raises:
        FormatError: the text cannot be read without loss; lists every problem with its location.
    """
    root = parse(text)
    if not isinstance(root, dict):
        raise format_error("", f"expected an object at the top level, got {quote_value(root)}")
    format_name = format or next((name for name, reader in READERS.items() if reader.looks_like(root)), None)
    if format_name is None:
        titles = ", ".join(reader.title for reader in READERS.values())
        raise format_error("", f"the format is not recognized as {titles}; choose it explicitly")
    return READERS[format_name].read(Item(root, ""))
