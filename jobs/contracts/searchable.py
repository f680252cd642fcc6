"""The names of hyperparameters that a model and its fit know.

A hyperparameter is named after a template argument or a fit field; one inside a field by its path:
`schedule/kind`, `augmentation/rotation`, `optimizer_args/weight_decay`, `class_weights/<label>`.
"""

from collections.abc import Iterable

from jobs.contracts.augmentation import Augmentation
from jobs.contracts.base import Frozen
from jobs.contracts.fit import Ema, FitSpec
from jobs.contracts.model import TemplateModel
from jobs.contracts.optimizers import ARGUMENTS
from jobs.contracts.schedules import KINDS

NOT_SEARCHED = frozenset({"early_stopping", "metrics", "loss", "schedule/monitor", "schedule/at"})
"""What changes how trainings are judged, and lists, which no hyperparameter holds."""
INSIDE: dict[str, Iterable[type[Frozen]]] = {
    "optimizer_args": ARGUMENTS.values(),
    "schedule": KINDS.values(),
    "ema": (Ema,),
    "augmentation": (Augmentation,),
}
"""The fields that are searched by paths into them, and what may stand there."""


def _searchable() -> frozenset[str]:
    whole = set(FitSpec.model_fields) - set(INSIDE)
    inside = {
        f"{field}/{name}" for field, kinds in INSIDE.items() for kind in kinds for name in kind.model_fields
    }
    return frozenset((whole | inside) - NOT_SEARCHED)


SEARCHABLE_FIT_FIELDS = _searchable()


def known_names(model: TemplateModel) -> frozenset[str]:
    """Return the hyperparameter names that mean something for this model and its fit."""
    return frozenset(model.info.arguments.model_fields) | SEARCHABLE_FIT_FIELDS


def is_known(name: str, model: TemplateModel) -> bool:
    """Say whether a hyperparameter of this name means something; the labels of classes are free."""
    return name in known_names(model) or _is_of_a_class(name)


def _is_of_a_class(name: str) -> bool:
    return name.startswith("class_weights/") and not name.endswith("/")
