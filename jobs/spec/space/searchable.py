"""Lists the names that a hyperparameter may have.

A hyperparameter is named like a template argument or fit field. A part of a field is named by its path:
`schedule/kind`, `augmentation/rotation`, `optimizer_args/weight_decay`, `class_weights/<label>`. A search
over several templates has the hyperparameter `template`, and each argument with the template's name before
it: `mlp/units`. Hyperparameters in own code have the names that the code gives them; beside them, fit fields
can be searched as `fit/batch_size`.
"""

from collections.abc import Iterable

from jobs.spec.base import Frozen
from jobs.spec.checks.near_names import near_names
from jobs.spec.sections.augmentation import Augmentation
from jobs.spec.sections.fit import Ema, FitSpec
from jobs.spec.sections.model import Model
from jobs.spec.sections.optimizers import ARGUMENTS
from jobs.spec.sections.schedules import KINDS
from jobs.spec.templates import TEMPLATES

NOT_SEARCHED = frozenset({"early_stopping", "metrics", "loss", "schedule/monitor", "schedule/at"})
"""Fields that affect how trainings are compared, and lists, which a hyperparameter cannot have as a value."""
NESTED_FIELDS: dict[str, Iterable[type[Frozen]]] = {
    "optimizer_args": ARGUMENTS.values(),
    "schedule": KINDS.values(),
    "ema": (Ema,),
    "augmentation": (Augmentation,),
}
"""Fields whose parts are searched, with the classes that they may contain."""
TEMPLATE = "template"
"""The hyperparameter that chooses the template."""
TEMPLATE_ARGUMENTS = frozenset(
    f"{template}/{argument}"
    for template, info in TEMPLATES.items()
    for argument in info.arguments.model_fields
)
"""All templates' arguments, each with its template's name."""


SEARCHABLE_FIT_FIELDS = (
    frozenset(FitSpec.model_fields.keys() - NESTED_FIELDS.keys())
    | {
        f"{field}/{name}"
        for field, kinds in NESTED_FIELDS.items()
        for kind in kinds
        for name in kind.model_fields
    }
) - NOT_SEARCHED


def known_names(model: Model) -> frozenset[str]:
    """Return the hyperparameter names for a model, except class weights."""
    arguments = frozenset(model.info.arguments.model_fields)
    return arguments | SEARCHABLE_FIT_FIELDS | TEMPLATE_ARGUMENTS | {TEMPLATE}


def is_known(name: str, model: Model) -> bool:
    """Return whether a hyperparameter may have this name. Any label may follow `class_weights/`."""
    if model.info.own_names:
        return model.refusal_of_name(name) is None
    return name in known_names(model) or _is_weight_of_class(name)


def _is_weight_of_class(name: str) -> bool:
    return name.startswith("class_weights/") and not name.endswith("/")


def refusal_of_field(name: str, model: Model) -> str | None:
    """Return why no fit field has the name of an own code's hyperparameter, or None if one has.

    The code's own names are not checked.
    """
    field = model.info.fit_field(name) if model.info.own_names else None
    if field is None or field in SEARCHABLE_FIT_FIELDS or _is_weight_of_class(field):
        return None
    near = [f"{model.info.fit_prefix}{other}" for other in near_names(field, SEARCHABLE_FIT_FIELDS)]
    hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
    return f"{name!r} is no field of fit that can be searched{hint}"


def unknown_name(name: str, model: Model) -> str:
    """Return why a hyperparameter cannot have this name, with similar names that it can have."""
    if model.info.own_names and (reason := model.refusal_of_name(name)) is not None:
        return reason
    similar = near_names(name, known_names(model))
    hint = f"did you mean {' or '.join(map(repr, similar))}? All" if similar else "all"
    return (
        f"{name!r} is neither an argument of {model.info.name} nor a fit field; {hint} names are on the page "
        "'The experiment spec' of Help, in the tables of templates and of hyperparameters"
    )
