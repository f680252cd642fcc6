"""Which jobs an experiment leads to, known before they exist."""

from jobs.spec.experiment import ExperimentSpec
from jobs.states import JobKind


def has_after(spec: ExperimentSpec) -> bool:
    """Say whether anything follows the search or the training."""
    after = spec.after
    return any(step is not None for step in (after.retrain, after.ensemble, after.quantize, after.register_))


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
