"""Which jobs an experiment leads to, known before they exist."""

from jobs.contracts.after import AfterSpec, Ensemble, Retrain
from jobs.contracts.experiment import ExperimentSpec
from jobs.errors import Conflict
from jobs.models import Job
from jobs.queries import outcomes
from jobs.states import JobKind


def followed(root: Job) -> ExperimentSpec:
    """Return the spec whose `after` a root follows.

    It is its revision's. The trials that were chosen for an ensemble are retrained as that says, or as usual,
    and pooled; nothing else follows.

    Raises:
        Conflict: the root has no experiment.
    """
    if root.revision is None:
        raise Conflict(f"job {root.pk} does not come from an experiment")
    spec = root.revision.spec
    pooled = outcomes.pooled_of(root)
    if pooled is None:
        return spec
    retrain = (spec.after.retrain or Retrain()).model_copy(update={"top": len(pooled.chosen)})
    after = AfterSpec(retrain=retrain, ensemble=spec.after.ensemble or Ensemble())
    return spec.model_copy(update={"after": after})


def has_after(spec: ExperimentSpec) -> bool:
    """Say whether anything follows the search or the training."""
    after = spec.after
    return any(step is not None for step in (after.retrain, after.ensemble, after.quantize, after.register_))


def steps_of(root: Job) -> list[JobKind]:
    """List the kinds of jobs that a root leads to, in order."""
    kinds = planned(followed(root))
    return kinds if outcomes.pooled_of(root) is None else kinds[1:]  # its search is another job


def planned(spec: ExperimentSpec) -> list[JobKind]:
    """List the kinds of jobs that an experiment leads to, in order."""
    after = spec.after
    steps = [JobKind.TRAIN]
    if spec.search is not None:
        retrained = after.retrain.top if after.retrain is not None else int(has_after(spec))
        steps = [JobKind.SEARCH, *[JobKind.TRAIN] * retrained]
    if after.ensemble is not None:
        steps.append(JobKind.ENSEMBLE)
    if after.quantize is not None:
        steps.append(JobKind.QUANTIZE)
    if after.register_ is not None:
        steps += [JobKind.REGISTER] * len(after.register_.what)
    return steps
