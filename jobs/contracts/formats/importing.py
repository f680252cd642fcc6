"""The one door to every format."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from jobs.contracts.formats import katib, keras_tuner, optuna, vertex, wandb
from jobs.contracts.formats.made import Format, Imported
from jobs.contracts.formats.reading import Item, refusal
from jobs.contracts.formats.text import parse


class Reader(NamedTuple):
    """What a format is called, how it is recognized and how it is read."""

    title: str
    looks_like: Callable[[Mapping[str, Any]], bool]
    read: Callable[[Item], Imported]


# In this order they are recognized: the first has the clearest marks, the last almost none.
READERS: dict[Format, Reader] = {
    "keras_tuner": Reader("KerasTuner", keras_tuner.looks_like, keras_tuner.read),
    "katib": Reader("Katib", katib.looks_like, katib.read),
    "vertex": Reader("Vertex AI", vertex.looks_like, vertex.read),
    "wandb": Reader("Weights & Biases", wandb.looks_like, wandb.read),
    "optuna": Reader("Optuna", optuna.looks_like, optuna.read),
}


def read(text: str, format: Format | None = None) -> Imported:  # noqa: A002  the API's name
    """Read a search space of another tool.

    Args:
        text: JSON or YAML, up to `text.LONGEST` characters.
        format: whose; recognized if None.

    Raises:
        Refused: it cannot be read, or not without loss; names every place.
    """
    root = parse(text)
    if not isinstance(root, dict):
        raise refusal("", "every format that is read here is one object")
    known = format or _recognized(root)
    return READERS[known].read(Item(root, ""))


def _recognized(root: dict[str, Any]) -> Format:
    for name, reader in READERS.items():
        if reader.looks_like(root):
            return name
    titles = ", ".join(reader.title for reader in READERS.values())
    raise refusal("", f"it looks like none of {titles}; choose the format if it is one")
