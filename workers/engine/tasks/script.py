"""Runs script tasks: one run, or the trials in a search over a script's arguments.

Neither Keras nor JAX is imported: the script is its own program.
"""

from functools import partial
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

from jobs.messages.events import TrialEnd
from jobs.messages.task import DatasetFile, OwnCode
from jobs.messages.training import ExecutionPlan, TrainTask, TrialPlan, TrialTask
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.sections.pruning import Curve
from jobs.spec.sections.script_model import ScriptModel
from workers.engine.errors import BadSpec, ProgramFailed
from workers.engine.report import Report, TaskInterrupted
from workers.engine.scripts.command import argument_doubts, script_command
from workers.engine.scripts.outputs import OF_RUN, OF_TRIAL
from workers.engine.scripts.run import Plan, Reported, figures, run_script
from workers.engine.tasks.failed_trials import result_or_failure
from workers.engine.training.pruning import RivalCurves, pruning_check


def train(task: TrainTask, report: Report) -> dict[str, Any]:
    """Run a script once.

    Returns:
        Each reported metric's newest value; for a search's trial, the best value of the
        objective as `score`.

    Raises:
        ProgramFailed, TaskInterrupted: see `run_script`.
    """
    script, code = _script(task.spec), _code(task.code)
    command = script_command(script, code)
    _warn(script, code, report)
    data = _data(task.dataset, task.spec, task.folder, report)
    report.phase("working")
    objective = task.objective if task.spec.search is not None else None
    reported = run_script(
        Plan(
            script=script,
            command=command,
            code=code,
            folder=Path(task.folder) / "run",
            seed=task.spec.fit.seed,
            steps=task.spec.fit.epochs,
            objective=objective,
            data=data,
            mesh=task.spec.mesh,
            bounds=OF_RUN,
        ),
        report,
    )
    report.progress(reported.last, reported.last, "steps")
    if not reported.latest:
        report.warning("no_metrics", f"{script.entry} reported no metrics, so there are no charts.")
    metrics = reported.metrics if objective is not None else reported.latest
    return {
        "metrics": {"reported": figures(metrics)} if metrics else {},
        "score": reported.score,
        "best_epoch": reported.best_step,
        "epochs": reported.last,
        "command": command,
    }


def _warn(script: ScriptModel, code: OwnCode, report: Report) -> None:
    for doubt in argument_doubts(script, code):
        report.warning("script_arguments", f"{script.entry}: {doubt}.")


def trials(task: TrialTask, report: Report) -> dict[str, Any]:
    """Run a search's trials in order. A trial that fails does not affect the others.

    Returns:
        `trials`: each trial's score unless it has failed, as for Keras trainings.

    Raises:
        TaskInterrupted: a pause or stop was requested.
        Exception: an error that affects the whole process, such as a full disk.
    """
    data = _data(task.dataset, task.spec, task.folder, report)
    rivals = RivalCurves(task.curves, report.curves)
    run = partial(_trial, task, data, rivals)
    results = [run(trial, report.for_trial(trial.number)) for trial in task.trials]
    return {"trials": [result for result in results if result is not None]}


def _trial(
    task: TrialTask, data: Path | None, rivals: RivalCurves, trial: TrialPlan, report: Report
) -> dict[str, Any] | None:
    """Run a trial and report its start and end; return None if it failed."""
    if (request := report.request()) in ("pause", "stop"):
        raise TaskInterrupted(request)
    report.trial_started()
    done = result_or_failure(report, lambda: _executed(task, data, rivals, trial, report))
    if done is None:
        return None
    verdict = done[-1][1].verdict if done else None
    state: TrialEnd = "completed" if verdict is None else "pruned"
    report.trial_finished(state=state, verdict=verdict)
    scores = [reported.score for _, reported in done if reported.score is not None]
    return {
        "trial": trial.number,
        "score": fmean(scores) if scores else None,
        "std": pstdev(scores) if scores else None,
        "executions": [_summary(number, reported) for number, reported in done],
        "verdict": None if verdict is None else verdict.model_dump(),
    }


def _executed(
    task: TrialTask, data: Path | None, rivals: RivalCurves, trial: TrialPlan, report: Report
) -> list[tuple[int, Reported]]:
    """Run a trial's executions until one is pruned. Return their numbers and reports."""
    done: list[tuple[int, Reported]] = []
    for execution in trial.executions:
        reported = _execution(task, data, rivals, trial, execution, report)
        done.append((execution.execution, reported))
        if reported.verdict is not None:
            break
    return done


def _execution(
    task: TrialTask,
    data: Path | None,
    rivals: RivalCurves,
    trial: TrialPlan,
    execution: ExecutionPlan,
    report: Report,
) -> Reported:
    """Run one execution of a trial, and report its start and end."""
    number = execution.execution
    plan = _plan_execution(task, data, rivals, trial, execution)
    _warn(plan.script, plan.code, report)
    report.execution(number, "running")
    try:
        reported = run_script(plan, report)
    except ProgramFailed:
        report.execution(number, "failed")
        raise
    report.progress(reported.last, reported.last, "steps")
    has_pruner = task.spec.search is not None and task.spec.search.pruner is not None
    report.execution(
        number,
        "completed" if reported.verdict is None else "pruned",
        score=reported.score,
        best_epoch=reported.best_step,
        epochs=reported.last,
        metrics=reported.metrics,
        best=tuple(reported.best) if has_pruner else (),
    )
    curve = Curve(
        trial=trial.number,
        execution=number,
        epochs=reported.last,
        over=reported.verdict is None,
        best=tuple(reported.best),
    )
    rivals.add([curve])
    return reported


def _plan_execution(
    task: TrialTask, data: Path | None, rivals: RivalCurves, trial: TrialPlan, execution: ExecutionPlan
) -> Plan:
    number = execution.execution
    script, code = _script(trial.spec), _code(task.code)
    return Plan(
        script=script,
        command=script_command(script, code),
        code=code,
        folder=Path(task.folder) / f"trial-{trial.number}-{number}",
        seed=execution.seed,
        steps=trial.spec.fit.epochs,
        objective=task.objective,
        data=data,
        mesh=trial.spec.mesh,
        execution=number,
        check=pruning_check(task, trial, execution, rivals),
        bounds=OF_TRIAL,
        prefix=f"trial-{trial.number}/" + (f"execution-{number}/" if len(trial.executions) > 1 else ""),
    )


def _summary(number: int, reported: Reported) -> dict[str, Any]:
    return {
        "execution": number,
        "state": "completed" if reported.verdict is None else "pruned",
        "score": reported.score,
        "best_epoch": reported.best_step,
        "epochs": reported.last,
        "metrics": figures(reported.metrics),
        "seconds": round(reported.seconds, 3),
    }


def _script(spec: ExperimentSpec) -> ScriptModel:
    if not isinstance(spec.model, ScriptModel):
        raise BadSpec(f"{spec.model.info.name} is no script")
    return spec.model


def _code(code: OwnCode | None) -> OwnCode:
    if code is None:
        raise BadSpec("the task has no code")
    return code


def _data(dataset: DatasetFile | None, spec: ExperimentSpec, folder: str, report: Report) -> Path | None:
    """Write the experiment's data for the script, and return the file; None without data."""
    if dataset is None or spec.data is None:
        return None
    report.phase("loading")
    # Tasks without data start faster without it.
    from workers.engine.scripts.data_file import write_data

    return write_data(dataset, spec.data, Path(folder))
