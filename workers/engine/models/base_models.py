"""Provides the files with the weights that trainings start from, by the digest that their spec names.

The supervisor has placed the task's file. It is checked once in a process, before Keras reads it.
"""

from pathlib import Path

from jobs.messages.task import BaseModelFile
from jobs.spec.data.features import Features
from jobs.spec.sections.model import Model
from workers.engine.data.store import file_digest
from workers.engine.errors import BadModel, BadSpec
from workers.engine.models.size_limit import check_budget
from workers.engine.models.untrusted import scan
from workers.features.files import BadFeatures, read_features

_FILES: dict[str, Path] = {}
"""The checked files of this process. A path may change from task to task, the content does not."""


def provide(file: BaseModelFile | None) -> None:
    """Make a task's file available to the models that it builds.

    Raises:
        BadModel: its content has another digest, or it comes from elsewhere and is not accepted.
    """
    if file is None:
        return
    path = Path(file.path)
    if _FILES.get(file.digest) != path:
        if (file_sha256 := file_digest(path)) != file.digest:
            raise BadModel(f"the file's sha256 is {file_sha256}, but {file.digest} is the version's")
        # A foreign file is scanned before Keras reads it: its config could request more memory than there is.
        if file.foreign:
            check_budget(path, scan(path))
    _FILES[file.digest] = path


def path_of(digest: str | None) -> Path:
    """Return the checked file with this digest.

    Raises:
        BadSpec: no task has provided it.
    """
    if digest is None or digest not in _FILES:
        raise BadSpec(
            "the version that this training starts from was not pinned; submit the experiment again"
        )
    return _FILES[digest]


def features_of(model: Model) -> Features | None:
    """Return the pipeline in the version that a model starts from; None for other models, or without one.

    Raises:
        BadModel: the pipeline in the file is invalid.
        BadSpec: see `path_of`.
    """
    if not model.info.assembly:
        return None
    try:
        return read_features(path_of(model.weights_digest))
    except BadFeatures as error:
        raise BadModel(str(error)) from error
