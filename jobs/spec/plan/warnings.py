"""Warns about a search that cannot run as planned, slow templates, and missing workers."""

from collections.abc import Collection, Iterator

from jobs.spec.checks.devices import describe_missing, has_tpu, lacks
from jobs.spec.checks.dry_build import BuiltModel, warnings_of
from jobs.spec.checks.gpus import lacks_gpus, missing_gpu_warnings, wanted_count
from jobs.spec.checks.settings import tried_templates
from jobs.spec.data.encoding import NUMBER_BYTES, encoded, width_in_memory
from jobs.spec.data.file_limits import GIB
from jobs.spec.data.profile import Profile
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.problems import Problem, warning
from jobs.spec.sections.code_model import CodeModel
from jobs.spec.sections.pruning import MedianPruner
from jobs.spec.sections.resources import WorkerSize, unserved
from jobs.spec.sections.search import SearchSpec
from jobs.spec.space import size as space_size
from jobs.spec.space.size import SpaceSize

LARGE_GIB = 1.0
"""Smaller tables are read while a model trains only by runs with little memory."""


def code_warnings(spec: ExperimentSpec, built: BuiltModel | None) -> Iterator[Problem]:
    """Yield the warnings about own code: it is not known yet, sets its epochs, or cannot be continued."""
    if built is None and isinstance(spec.model, CodeModel):
        yield warning(
            f"/model/{spec.model.named_by}",
            "the dry build of this code is not done yet: it shows which settings, objectives and ranges the "
            "code takes, and a job with others fails before it trains",
            "Run the dry build first",
        )
    if built is not None and built.own_fit and "epochs" in built.replaced:
        yield warning(
            f"/model/{spec.model.named_by}",
            "its fit sets epochs itself, so trainings have other numbers of epochs than this plan",
            "Leave it if the fit searches the epochs, else pass on the epochs that it gets",
        )
    if built is not None and built.one_call:
        yield warning(
            f"/model/{spec.model.named_by}",
            "its code trains a model in one call of fit, which cannot be continued: after a pause, a stop or "
            "the loss of a worker a training begins again, and its epochs so far are lost",
            "Leave it if trainings are short, else build and compile the model without a fit of its own",
        )
    if built is not None:
        yield from warnings_of(spec, built)


def search_warnings(spec: ExperimentSpec, space: SpaceSize | None) -> Iterator[Problem]:
    """Yield the warnings about the number of trials and about the pruner."""
    if spec.search is not None and space is not None:
        yield from _trial_warnings(spec.search, space)
        yield from _rung_warnings(spec.search, spec.fit.epochs)
        yield from _pruner_warnings(spec.search, spec.fit.epochs)


def _trial_warnings(search: SearchSpec, space: SpaceSize) -> Iterator[Problem]:
    if search.info.enumerates_grid and search.max_trials < space.grid:
        size, first = space.formatted(space.grid), search.max_trials
        yield warning(
            "/search/max_trials",
            f"the grid has {size} configurations, of which only the first {first} will run, so later values "
            "are never tried",
            "Raise max_trials, make the grid coarser, or choose another algorithm",
        )
    elif space.exact and space.distinct is not None and search.max_trials > space.distinct:
        size = space_size.format_count(space.distinct)
        yield warning(
            "/search/max_trials",
            f"the space has only {size} distinct configurations, so the search ends after {size} trials or "
            "repeats some",
            f"Set max_trials to {size}, or widen the search space",
        )


def _rung_warnings(search: SearchSpec, epochs: int) -> Iterator[Problem]:
    """Warn if trials are never compared before their last epoch."""
    if not search.info.has_rungs:
        return
    options, trials = search.rung_options(), search.trials_planned(epochs)
    if len(options.rung_epochs(epochs)) > 1 and trials > 1:
        return
    last, enough = options.max_epochs or epochs, options.min_epochs * options.factor
    effect = "one trial alone" if trials == 1 else f"{trials} trials, of which none is stopped early"
    yield warning(
        "/fit/epochs" if options.max_epochs is None else "/search/options/max_epochs",
        f"{search.algorithm} with at most {last} epochs, a first rung after {options.min_epochs} and the "
        f"factor {options.factor} is a search of {effect}",
        f"Use {enough} epochs or more and at least {options.factor} trials, or an algorithm such as random",
    )


def _pruner_warnings(search: SearchSpec, epochs: int) -> Iterator[Problem]:
    pruner = search.pruner
    if isinstance(pruner, MedianPruner):
        if pruner.warmup_epochs + pruner.interval >= epochs:
            yield warning(
                "/search/pruner/warmup_epochs",
                f"the pruner ends no trial, because trainings of {epochs} epochs are over before it first "
                "looks",
                f"Set warmup_epochs and interval to less than {epochs} in total",
            )
        elif pruner.startup_trials >= search.max_trials:
            yield warning(
                "/search/pruner/startup_trials",
                f"the pruner ends no trial, because it lets the first {pruner.startup_trials} complete and "
                f"the search has {search.max_trials}",
                f"Set startup_trials below {search.max_trials}",
            )
    elif pruner is not None and pruner.min_epochs >= epochs:
        yield warning(
            "/search/pruner/min_epochs",
            f"the pruner ends no trial, because none has more than {epochs} epochs",
            f"Set min_epochs below {epochs}",
        )


def size_warnings(spec: ExperimentSpec, profile: Profile | None) -> Iterator[Problem]:
    """Yield a warning if runs may read a table's rows from its file while they train.

    Args:
        spec: the experiment.
        profile: its data's profile; None until the data set is ready.
    """
    if profile is None or not profile.has_pipeline or profile.images is not None:
        return
    if spec.model.info.trains_itself:
        return
    described = encoded(spec, profile)
    width = width_in_memory(described.input_shape[-1], spec.required_data.window)
    size = profile.rows * width * NUMBER_BYTES / GIB
    if size < LARGE_GIB:
        return
    cannot = "" if spec.model.info.by_gradient else f", which {spec.model.info.name} cannot"
    if described.kind == "sequence":
        cannot = ", which is not possible for windows"
    yield warning(
        "/data",
        f"all rows have {size:.1f} GiB with their columns encoded, and a run with less than "
        f"{4 * size:.1f} GiB of memory reads them from their file while it trains{cannot}",
        "Raise resources.memory_gib, or leave out features, to keep them in memory",
    )


def time_warnings(spec: ExperimentSpec, workers: Collection[WorkerSize]) -> Iterator[Problem]:
    """Yield a warning about a template that trains slowly, unless a worker has another device than CPUs.

    Args:
        spec: the experiment.
        workers: the live workers of its pool.
    """
    devices = [device for worker in workers for device in worker.devices]
    slow = [info.slow for info in tried_templates(spec) if info.slow]
    if slow and all(device.startswith("cpu") for device in devices):
        yield warning(
            f"/model/{spec.model.named_by}",
            f"{slow[0]}, and no worker of pool {spec.resources.pool} has a GPU",
            "Start a worker with a GPU, or choose a smaller template",
        )


def limit_warnings(spec: ExperimentSpec) -> Iterator[Problem]:
    """Yield a warning if the time limit of trainings is set for a search, which it does not end."""
    # Without a step, the limit is refused.
    if spec.resources.max_minutes is not None and spec.search is not None and spec.after.has_steps():
        yield warning(
            "/resources/max_minutes",
            "this ends each retraining after the search, but neither the search nor its trials",
            "Set search.max_minutes to end the search",
        )


def gpu_warnings(spec: ExperimentSpec, workers: Collection[WorkerSize]) -> Iterator[Problem]:
    """Yield a warning if user code runs on the CPU, although workers have GPUs.

    Args:
        spec: the experiment.
        workers: the live workers of its pool.
    """
    mesh, gpu = spec.mesh, spec.resources.gpu
    if spec.model.code_digest is None or (mesh is not None and mesh.kind == "cpu"):
        return
    several = (wanted_count(gpu, mesh) if gpu is not None else mesh.size() if mesh is not None else 1) > 1
    reasons = [
        worker.no_gpu_in_sandbox[several] for worker in workers if len(worker.no_gpu_in_sandbox) > several
    ]
    if reasons and all(reasons):
        yield warning(
            "/mesh/devices"
            if mesh is not None
            else "/resources/gpu"
            if gpu is not None
            else f"/model/{spec.model.named_by}",
            f"code runs in a sandbox, and no worker of pool {spec.resources.pool} can give it a GPU, because "
            f"{reasons[0]}",
            "Start a worker that can, or let the code run on the CPU",
        )


def worker_warnings(
    spec: ExperimentSpec,
    workers: Collection[WorkerSize],
    *,
    unlabelled: bool = False,
    refusals: Collection[str] = (),
) -> Iterator[Problem]:
    """Yield the warnings about labels, slots and devices that no worker has.

    Args:
        spec: the experiment.
        workers: the live workers of its pool that have its labels and take work.
        unlabelled: whether others run in the pool.
        refusals: workers with its labels that take no work, and why.
    """
    mesh, slots, pool = spec.mesh, spec.resources.slots, spec.resources.pool
    if refusals and not workers:
        reasons = " ".join(refusals)
        yield Problem("/resources/pool", f"no worker of pool {pool!r} takes the job. {reasons}")
        return
    labels, largest = spec.resources.labels, max((worker.slots for worker in workers), default=0)
    problem = unserved(pool, slots, largest, labels, unlabelled=unlabelled)
    if problem is not None:
        yield Problem(f"/resources{problem.pointer}", problem.message)
        return
    equipped = [worker.slots for worker in workers if not lacks(mesh, slots, worker.devices)]
    if mesh is not None and not equipped:
        # A spec for TPUs that no worker has is refused, which is more than a warning.
        if mesh.kind == "tpu" and not any(has_tpu(worker.devices) for worker in workers):
            return
        sentence = describe_missing(mesh, slots, pool, [worker.devices for worker in workers])
        yield warning(
            "/mesh/devices",
            f"{sentence[:1].lower()}{sentence[1:]}, so the job will wait for one that has",
            "Start such a worker, or change the devices of the mesh",
        )
        return
    yield from missing_gpu_warnings(spec, workers)
    gpu = spec.resources.gpu
    wanted = [
        worker.slots
        for worker in workers
        if not lacks(mesh, slots, worker.devices) and not lacks_gpus(gpu, mesh, slots, worker.gpus)
    ]
    if wanted and slots > max(wanted):
        yield warning(
            "/resources/slots",
            f"the largest worker of pool {pool} with the GPUs of the mesh has {max(wanted)} of the {slots} "
            "slots, so the job will wait for a larger one",
            f"Start a worker with these GPUs and {slots} slots, or use fewer GPUs and slots",
        )
