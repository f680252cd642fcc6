"""Remembers the row sizes that a model was asked for, so that its next process compiles them ahead.

They belong to the model, not to a version: a new version gets the lengths that the old one was asked for.
"""

import hashlib
import logging
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path

import orjson
from pydantic import TypeAdapter, ValidationError

logger = logging.getLogger("trainyard.serving")

# The shape of each input without the batch dimension, in the signature's order.
Sizes = tuple[tuple[int, ...], ...]
_FILE = TypeAdapter(list[Sizes])
_MAX_SEEN = 256


class SeenSizes:
    """The sizes that one model was asked for, the most recent ones."""

    def __init__(self, path: Path) -> None:
        self._path = path
        # The most recent last.
        self._seen: OrderedDict[Sizes, None] = OrderedDict()
        try:
            self._seen = OrderedDict.fromkeys(reversed(_FILE.validate_json(path.read_bytes())))
        except FileNotFoundError:
            pass
        except (OSError, ValidationError) as error:
            logger.warning("the seen sizes in %s could not be read: %s", path, error)

    def record(self, sizes: Sequence[tuple[int, ...]]) -> None:
        """Add the sizes in a batch that was answered, and save new ones."""
        key = tuple(sizes)
        is_new = key not in self._seen
        self._seen[key] = None
        self._seen.move_to_end(key)
        if len(self._seen) > _MAX_SEEN:
            self._seen.popitem(last=False)
        # A new size was compiled just now, which took much longer than this small file does.
        if is_new:
            self.save()

    def recent(self) -> list[Sizes]:
        """Return the sizes, the most recent first."""
        return list(reversed(self._seen))

    def save(self) -> None:
        """Write the file atomically. A failure costs compilations later, but no answer now."""
        temporary = self._path.with_suffix(".new")
        try:
            temporary.write_bytes(orjson.dumps(self.recent()))
            temporary.replace(self._path)
        except OSError as error:
            logger.warning("the seen sizes could not be saved: %s", error)


class SeenSizesFolder:
    """The files with seen sizes, one for each model."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._models: dict[str, SeenSizes] = {}
        folder.mkdir(parents=True, exist_ok=True)

    def for_model(self, model: str) -> SeenSizes:
        """Return the sizes that a model has seen. Its versions share them."""
        if model not in self._models:
            # A hash, because a name may contain characters that a file name must not.
            name = hashlib.sha256(model.encode()).hexdigest()[:32]
            self._models[model] = SeenSizes(self._folder / f"{name}.json")
        return self._models[model]
