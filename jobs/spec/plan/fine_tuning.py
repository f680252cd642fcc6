"""Plans a fine-tuning: which layers are frozen, and how many parameters are trained."""

from jobs.spec.base import Frozen
from jobs.spec.data.profile import Profile
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.plan.base_version import BaseLayer, BaseVersion
from jobs.spec.plan.variables import head_units
from jobs.spec.sections.version_model import FineTuneArgs, VersionModel
from jobs.spec.signature import Shape


class PlannedLayer(Frozen):
    """A layer of the model that is trained."""

    path: str
    kind: str
    output_shape: Shape | None
    parameters: int
    frozen: bool
    head: bool


class FineTuningPlan(Frozen):
    """The layers of a fine-tuned model, which of them are frozen, and the numbers of parameters."""

    version: str
    digest: str | None
    head: str
    layers: tuple[PlannedLayer, ...]
    parameters: int | None
    trainable: int | None


def plan_fine_tuning(
    spec: ExperimentSpec, profile: Profile | None, base: BaseVersion
) -> FineTuningPlan | None:
    """Return which layers are frozen, for the arguments in `model`, or None if they are invalid.

    Args:
        spec: the experiment.
        profile: its data's profile; None until the data set is ready.
        base: the version.
    """
    args = arguments(spec)
    if args is None or (frozen := base.frozen(args)) is None:
        return None
    before = base.layers_before_head(args)
    kept_head = base.layers[len(before) :] if args.head == "keep" else ()
    layers = [_planned(layer, frozen=i < frozen, head=False) for i, layer in enumerate(before)]
    layers += [_planned(layer, frozen=False, head=True) for layer in kept_head]
    trainable: int | None = sum(layer.trainable for layer in (*before[frozen:], *kept_head))
    parameters: int | None = sum(layer.parameters for layer in (*before, *kept_head))
    if args.head != "keep":
        added = _head_parameters(base, args, profile)
        name = _free("output", {layer.path for layer in before})
        shape = (None, head_units(profile)) if profile is not None else None
        layers.append(_new_head(name, shape, added))
        trainable, parameters = (
            None if added is None else n + added for n in (trainable or 0, parameters or 0)
        )
    return FineTuningPlan(
        version=base.name,
        digest=spec.model.weights_digest,
        head=args.head,
        layers=tuple(layers),
        parameters=parameters,
        trainable=trainable,
    )


def _planned(layer: BaseLayer, *, frozen: bool, head: bool) -> PlannedLayer:
    return PlannedLayer(
        path=layer.path,
        kind=layer.kind,
        output_shape=layer.output_shape,
        parameters=layer.parameters,
        frozen=frozen,
        head=head,
    )


def _new_head(name: str, shape: Shape | None, parameters: int | None) -> PlannedLayer:
    return PlannedLayer(
        path=name, kind="Dense", output_shape=shape, parameters=parameters or 0, frozen=False, head=True
    )


def _free(name: str, taken: set[str]) -> str:
    numbers = (f"{name}_{number}" for number in range(1, len(taken) + 2))
    return next(candidate for candidate in (name, *numbers) if candidate not in taken)


def _head_parameters(base: BaseVersion, args: FineTuneArgs, profile: Profile | None) -> int | None:
    """Count a new head's parameters, or return None if they are unknown."""
    size = base.features
    if args.head == "on_top" and base.signature is not None:
        size = base.signature.outputs[0].shape[-1] if base.signature.outputs[0].shape else None
    return None if size is None or profile is None else (size + 1) * head_units(profile)


def arguments(spec: ExperimentSpec) -> FineTuneArgs | None:
    """Return the arguments for fine-tuning, or None for a spec with another model."""
    args = spec.model.resolved() if isinstance(spec.model, VersionModel) else None
    return args if isinstance(args, FineTuneArgs) else None
