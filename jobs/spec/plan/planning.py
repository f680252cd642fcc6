"""Computes an experiment's plan before it runs: trials, epochs, memory, estimated time, warnings."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from jobs.spec.checks import attention as attention_checks
from jobs.spec.checks import fine_tuning as fine_tuning_checks
from jobs.spec.checks.dry_build import BuiltModel
from jobs.spec.checks.gpus import wanted_count
from jobs.spec.checks.warnings import warnings
from jobs.spec.data.profile import Profile
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.plan import estimate, fine_tuning
from jobs.spec.plan import warnings as plan_warnings
from jobs.spec.plan.base_version import BaseVersion
from jobs.spec.plan.estimate import History
from jobs.spec.plan.largest import largest
from jobs.spec.plan.model_fields import (
    KnownState,
    fields_of_built_model,
    fields_of_template,
    layout_warnings,
    shadow_warnings,
)
from jobs.spec.plan.plan import Plan, PlanWarning, Situation
from jobs.spec.plan.variables import described_input, variables
from jobs.spec.problems import Problem
from jobs.spec.sections import monitors
from jobs.spec.sections.search import SearchSpec
from jobs.spec.space import size as space_size
from jobs.spec.space.size import SpaceSize
from jobs.spec.space.summary import summary
from jobs.spec.templates.layers import Variable


def make_plan(
    spec: ExperimentSpec,
    profile: Profile | None,
    now: Situation,
    jobs: Sequence[str],
    base: BaseVersion | None = None,
    built: BuiltModel | None = None,
    *,
    code_warnings: Iterable[Problem] = (),
    known: KnownState | None = None,
) -> Plan:
    """Return an experiment's plan.

    Args:
        spec: the experiment.
        profile: its data's profile; None until the data set is ready.
        now: free slots and earlier trainings.
        jobs: its jobs' kinds, in order.
        base: the version that it trains further, if it does.
        built: the model that its own code builds, if that is known.
        code_warnings: warnings that the findings about its code give.
        known: the variables of its model, if a worker has built it.
    """
    tuned = fine_tuning.plan_fine_tuning(spec, profile, base) if base is not None else None
    space = space_size.size_of_space(spec.search.space) if spec.search is not None else None
    described = described_input(spec, profile)
    problems = [
        *warnings(spec, profile),
        *(fine_tuning_checks.warnings(spec, profile, base) if base is not None else ()),
        *plan_warnings.code_warnings(spec, built),
        *code_warnings,
        *plan_warnings.size_warnings(spec, profile),
        *plan_warnings.search_warnings(spec, space),
        *_variable_warnings(spec, described, known),
        *plan_warnings.time_warnings(spec, now.workers),
        *plan_warnings.limit_warnings(spec),
        *plan_warnings.worker_warnings(spec, now.workers, unlabelled=now.unlabelled, refusals=now.refusals),
        *plan_warnings.gpu_warnings(spec, now.workers),
        *attention_checks.warnings(spec, built, base, now.workers),
    ]
    return Plan(
        kind=jobs[0],
        steps=tuple(dict.fromkeys(jobs)),
        warnings=tuple(PlanWarning(pointer=w.pointer, message=w.message) for w in problems),
        fine_tuning=tuned,
        **_space_fields(spec.search, space),
        **_amount_fields(spec, now.history),
        **_training_fields(spec),
        **_device_fields(spec, now),
        **(
            fields_of_template(spec, profile, described)
            if profile is not None and described is not None
            else fields_of_built_model(spec, tuned, known, has_data=profile is not None)
        ),
    )


def device_bytes(spec: ExperimentSpec, profile: Profile | None) -> int | None:
    """Return the memory that the largest model of an experiment needs on each device, as its plan shows it.

    None if it is unknown before the model is built.
    """
    described = described_input(spec, profile)
    memory = None if described is None else largest(spec, described)[1]
    return None if memory is None else memory.total


def _space_fields(search: SearchSpec | None, space: SpaceSize | None) -> dict[str, Any]:
    """Return a plan's fields about the search space."""
    return {
        "grid_size": space.grid if space is not None else 1,
        "grid_is_larger": space is not None and not space.exact,
        "distinct": space.distinct if space is not None else None,
        "space": str(space or ""),
        "summary": summary(search.space) if search is not None else (),
        "max_minutes": search.time_limit if search is not None else None,
    }


def _amount_fields(spec: ExperimentSpec, history: History | None) -> dict[str, Any]:
    """Return a plan's fields about the trainings, their epochs and their time."""
    search = spec.search
    trials = _count_trials(spec)
    executions = trials * (search.trainings() if search is not None else 1)
    of_search, of_training = _most_epochs(spec)
    epochs = of_search + of_training
    expected = estimate.estimate_time(spec, executions, epochs, history)
    return {
        "trials": trials,
        "executions": executions,
        "epochs": epochs,
        "epochs_of_search": of_search,
        "epochs_of_retraining": of_training if search is not None else 0,
        "epochs_likely": expected.likely_epochs,
        "device_hours": expected.hours,
        "device_hours_likely": expected.likely_hours,
        "estimate": expected.sentence,
    }


def _count_trials(spec: ExperimentSpec) -> int:
    return spec.search.trials_planned(spec.fit.epochs) if spec.search is not None else 1


def _training_fields(spec: ExperimentSpec) -> dict[str, Any]:
    """Return a plan's fields about the last and the best epoch."""
    retrain, early = spec.after.retrain, spec.fit.early_stopping
    objective = spec.search.objective if spec.search is not None else None
    chosen_by, stopped_by = monitors.monitors_of_training(objective, retrain, early)
    chooses = objective is not None or not spec.model.info.trains_itself
    return {
        "epoch_chosen_by": chosen_by.metric if chooses else "",
        "stopped_by": stopped_by.metric if retrain is not None or early is not None else None,
        "retrainings": retrain.top if spec.search is not None and retrain is not None else 0,
    }


def _device_fields(spec: ExperimentSpec, now: Situation) -> dict[str, Any]:
    """Return a plan's fields about slots and devices."""
    parallel = _parallel_trials(spec, _count_trials(spec), now)
    return {
        "slots": spec.resources.slots * parallel,
        "slots_per_trial": spec.resources.slots,
        "minutes_per_training": spec.resources.max_minutes,
        "parallel_trials": parallel,
        "free_slots": now.free_slots,
        "total_slots": now.total_slots,
        "devices": _count_devices(spec),
        "device_kind": _device_kind(spec),
        "batch_shards": spec.mesh.batch_shards() if spec.mesh is not None else 1,
    }


def _most_epochs(spec: ExperimentSpec) -> tuple[int, int]:
    """Return the most epochs of the search and of the trainings outside of it, without early stopping."""
    retrain, search = spec.after.retrain, spec.search
    of_search = search.epochs_planned(spec.fit.epochs) * search.trainings() if search is not None else 0
    if retrain is None:
        return of_search, 0 if search is not None else spec.fit.epochs
    # The best epoch is at most the cap, so the second phase has at most this many epochs.
    again = int(retrain.epochs_cap * retrain.epochs_factor) if retrain.include_validation else 0
    of_retraining = retrain.epochs_cap + again
    return of_search, retrain.top * of_retraining if search is not None else of_retraining


def _parallel_trials(spec: ExperimentSpec, trials: int, now: Situation) -> int:
    """Return how many trials could run in parallel on the free slots, at least one."""
    fitting = max(now.free_slots // spec.resources.slots, 1)
    limit = spec.search.parallel_trials if spec.search is not None else 1
    return min(trials, fitting, limit or fitting)


def _count_devices(spec: ExperimentSpec) -> int:
    gpu, mesh = spec.resources.gpu, spec.mesh
    if mesh is not None:
        return mesh.size()
    return wanted_count(gpu, mesh) if gpu is not None else 1


def _device_kind(spec: ExperimentSpec) -> str:
    mesh = spec.mesh
    if mesh is None:
        return "default" if spec.resources.gpu is None else "gpu"
    if mesh.simulate is not None:
        return "simulated cpu"
    return mesh.devices if isinstance(mesh.devices, str) else "named"


def _variable_warnings(
    spec: ExperimentSpec, described: Profile | None, known: KnownState | None
) -> Iterator[Problem]:
    """Yield the warnings about variables of the model, as far as these are known."""
    yield from layout_warnings(spec, known)
    yield from shadow_warnings(spec, _listed_variables(spec, described, known))


def _listed_variables(
    spec: ExperimentSpec, described: Profile | None, known: KnownState | None
) -> list[Variable]:
    """Return the model's variables; none if they are unknown before it is built."""
    if described is not None:
        return variables(spec.model, described)
    return known.state.listed() if known is not None else []
