"""Runs a script once: with its arguments in its own folder, and reads its reports."""

import contextlib
import json
import math
import os
import shlex
import shutil
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from jobs.messages.task import OwnCode
from jobs.spec.sections.mesh import MeshSpec
from jobs.spec.sections.pruning import Verdict
from jobs.spec.sections.script_model import ScriptModel
from jobs.spec.sections.search import Objective
from workers.engine.errors import ProgramFailed
from workers.engine.report import Report, TaskInterrupted
from workers.engine.scripts.metric_lines import MetricLine, MetricLines, NotUnderstood
from workers.engine.scripts.outputs import Bounds, report_outputs
from workers.engine.scripts.program import (
    GRACE_SECONDS,
    MAX_OUTPUT_BYTES,
    Ended,
    Program,
    Stream,
    cpu_ticks,
    descendants,
)
from workers.engine.scripts.working_folder import (
    State,
    file_states,
    lost_files_warning,
    remove_others,
    written_files,
)
from workers.system.exit_status import describe_status

HELPER = Path(__file__).resolve().parents[2] / "script_helper"
"""The folder of the module `trainyard_report`."""
TRACE_LINES = 200
"""The last lines of the error output that are kept for a traceback."""
ALIVE_SECONDS = 10.0
"""How often a script that computes or prints is reported as alive, if it reports no metrics."""
MAX_NOT_UNDERSTOOD = 3
"""Warnings of a run about lines with metrics that were not used."""
HINT = 'Print a line such as {"step": 1, "metrics": {"%s": 0.9}}, or use trainyard_report.report'
_NOT_INHERITED = ("TRAINYARD_", "COVERAGE_", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")

type Check = Callable[[int, Sequence[tuple[int, float]]], Verdict | None]
"""Takes the last step and the best values so far, (step, value); returns a verdict to prune the run."""


@dataclass(frozen=True)
class Plan:
    """One script run.

    Attributes:
        script: the script with all its arguments.
        command: the interpreter's arguments that start it.
        code: its files.
        folder: in which its folders are made.
        seed: this run's seed.
        steps: how many steps a full run reports, for the progress.
        objective: the metric that it must report; None if it need not report any.
        data: the file with the data; None without data.
        execution: the execution number; None outside a search.
        check: decides whether to prune it.
        bounds: limit its outputs.
        prefix: starts its outputs' names.
        grace: seconds from SIGTERM to SIGKILL.
        mesh: its devices, which this process's environment makes visible; None for the usual ones.
    """

    script: ScriptModel
    command: tuple[str, ...]
    code: OwnCode
    folder: Path
    seed: int
    steps: int
    objective: Objective | None
    bounds: Bounds
    data: Path | None = None
    execution: int | None = None
    check: Check | None = None
    prefix: str = ""
    grace: float = GRACE_SECONDS
    mesh: MeshSpec | None = None


@dataclass
class Reported:
    """The metrics that a script has reported.

    Attributes:
        last: its last step.
        latest: each metric's newest value.
        best_step: the step with the objective's best value; None before the first finite one.
        score: that value.
        metrics: all metrics' newest values at that step.
        best: each step at which the objective was best, with its value.
        verdict: why it was pruned.
        seconds: how long the run took.
    """

    last: int = 0
    latest: dict[str, float] = field(default_factory=dict)
    best_step: int | None = None
    score: float | None = None
    metrics: dict[str, float] = field(default_factory=dict)
    best: list[tuple[int, float]] = field(default_factory=list)
    verdict: Verdict | None = None
    seconds: float = 0.0

    def add(self, line: MetricLine, objective: Objective | None) -> None:
        """Add a step's metrics."""
        self.last = max(self.last, line.step)
        self.latest |= line.metrics
        value = line.metrics.get(objective.metric) if objective is not None else None
        if objective is not None and value is not None and self._is_better(value, objective):
            self.best_step, self.score = line.step, value
            self.best.append((line.step, value))
        # Several lines may have the same step.
        if line.step == self.best_step:
            self.metrics = dict(self.latest)

    def _is_better(self, value: float, objective: Objective) -> bool:
        # An infinite value would be the best one in one of the directions.
        return math.isfinite(value) and (self.score is None or objective.better(value, self.score))


def run_script(plan: Plan, report: Report) -> Reported:
    """Run a script to its end, and report its metrics, its output and its files.

    Raises:
        ProgramFailed: it failed, or did not report the objective.
        TaskInterrupted: it was asked to pause or stop, and has ended.
        OSError: its files cannot be written.
    """
    return _Run(plan, report).run()


class _Run:
    """One run, from copying its code to its outputs."""

    def __init__(self, plan: Plan, report: Report) -> None:
        self._plan = plan
        self._report = report
        self._lines = MetricLines()
        self._reported = Reported()
        self._not_understood: set[str] = set()
        self._errors: deque[bytes] = deque(maxlen=TRACE_LINES)
        self._work = plan.folder / "work"
        self._outputs = plan.folder / "output"
        self._before: dict[str, State] = {}
        self._alive_at = time.monotonic()
        self._ticks = 0
        self._is_active = True

    def run(self) -> Reported:
        began = time.monotonic()
        self._make_folders()
        plan, script = self._plan, self._plan.script
        python = plan.code.python or sys.executable
        self._report.log(f"{script.entry} started: {shlex.join(plan.command)}")
        program = Program(
            [python, *plan.command],
            self._work,
            self._environment(),
            on_line=self._on_line,
            on_tick=self._must_end,
            grace=plan.grace,
        )
        ended = program.run()
        self._reported.seconds = time.monotonic() - began
        self._warn(ended)
        request = self._report.request()
        self._keep_files(is_paused=request == "pause")
        if ended.was_asked and self._reported.verdict is None and request in ("pause", "stop"):
            raise TaskInterrupted(request)
        self._require_success(ended)
        return self._reported

    def _make_folders(self) -> None:
        # An earlier run of the same attempt may have ended in the middle.
        shutil.rmtree(self._plan.folder, ignore_errors=True)
        self._outputs.mkdir(parents=True)
        self._work.mkdir()
        for file in self._plan.code.files:
            target = self._work / PurePosixPath(file.path)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file.place, target)
        self._before = file_states(self._work)

    def _environment(self) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(_NOT_INHERITED)}
        fixed = {
            "PYTHONPATH": str(HELPER),
            "PYTHONUNBUFFERED": "1",
            "PYTHONIOENCODING": "utf-8",
            "TRAINYARD_OUTPUT": str(self._outputs),
            "TRAINYARD_SEED": str(self._plan.seed),
        }
        if (mesh := self._plan.mesh) is not None:
            axes = dict(zip(mesh.axis_names, mesh.shape, strict=True))
            fixed["TRAINYARD_MESH"] = json.dumps({"axes": axes, "batch_axis": mesh.batch_axis})
            # Of repeated flags the last one counts: the number of devices follows the flags of the script.
            flags = self._plan.script.env.get("XLA_FLAGS", ""), os.environ.get("XLA_FLAGS", "")
            fixed["XLA_FLAGS"] = " ".join(dict.fromkeys(filter(None, flags)))
        if self._plan.data is not None:
            fixed["TRAINYARD_DATA"] = str(self._plan.data)
        return {**inherited, **self._plan.script.env, **fixed}

    # While it runs

    def _on_line(self, stream: Stream, line: bytes) -> None:
        self._is_active = True
        if stream == "stdout":
            try:
                metrics = self._lines.read(line)
            except NotUnderstood as error:
                self._warn_of_line(str(error))
                metrics = None
            if metrics is not None:
                self._add(metrics)
                return
        else:
            self._errors.append(line)
        _print(stream, line)

    def _warn_of_line(self, why: str) -> None:
        # The message contains text of the script, so there may be any number of them.
        if len(self._not_understood) < MAX_NOT_UNDERSTOOD:
            self._not_understood.add(why)
            self._report.warning("metrics_not_understood", f"A line with metrics was not used: {why}.")

    def _add(self, line: MetricLine) -> None:
        plan, reported = self._plan, self._reported
        reported.add(line, plan.objective)
        self._report.metric(line.step, line.metrics, axis="step", execution=plan.execution)
        self._report_progress()
        if plan.check is not None and plan.objective is not None and plan.objective.metric in line.metrics:
            reported.verdict = reported.verdict or plan.check(line.step, reported.best)

    def _report_progress(self) -> None:
        done = self._reported.last
        self._report.progress(done, max(done, self._plan.steps), "steps")

    def _must_end(self) -> bool:
        now = time.monotonic()
        if now - self._alive_at > ALIVE_SECONDS:
            self._alive_at = now
            self._report_life()
        return self._reported.verdict is not None or self._report.request() in ("pause", "stop")

    def _report_life(self) -> None:
        """Report that the script works, if it has printed or computed since the last time.

        A script may train for an hour between two reports. The watchdog ends one that does neither.
        """
        ticks = cpu_ticks(descendants(os.getpid()))
        if self._is_active or ticks != self._ticks:
            self._report_progress()
            # A phase has a longer limit than the time between two steps.
            self._report.phase("working")
        self._is_active, self._ticks = False, ticks

    # After its end

    def _warn(self, ended: Ended) -> None:
        entry = self._plan.script.entry
        if ended.was_killed:
            self._report.warning(
                "script_killed",
                f"the script {entry} did not end within {self._plan.grace:g} s of SIGTERM and was killed.",
            )
        if ended.left_behind and not (ended.was_asked or ended.printed_too_much):
            count = ended.left_behind
            left = "1 process" if count == 1 else f"{count} processes"
            self._report.warning(
                "processes_left", f"the script {entry} ended and left {left} running, now ended."
            )

    def _keep_files(self, *, is_paused: bool) -> None:
        """Report the files that the script wrote, and remove all others in its working folder.

        Only a single run keeps those in its working folder, since a search may run a script many times.
        """
        plan, report = self._plan, self._report
        written = [] if is_paused else written_files(self._work, self._before)
        kept = written if plan.execution is None else []
        if written and not kept:
            report.warning("files_lost", lost_files_warning(plan.script.entry, written))
        # A script may have closed its folders.
        with contextlib.suppress(OSError):
            remove_others(self._work, frozenset(kept))
        if not kept:
            shutil.rmtree(self._work, ignore_errors=True)
        if not is_paused:
            report_outputs(
                report, self._outputs, plan.bounds, prefix=plan.prefix, work=self._work, written=kept
            )

    def _require_success(self, ended: Ended) -> None:
        """Raise a failure's cause."""
        entry, reported = self._plan.script.entry, self._reported
        if ended.printed_too_much:
            limit = MAX_OUTPUT_BYTES >> 20
            raise ProgramFailed(
                "too_much_output", f"{entry} printed more than {limit} MiB and was ended; print less"
            )
        if reported.verdict is None and ended.status != 0:
            raise self._failure(ended.status)
        if self._plan.objective is not None and reported.score is None:
            raise self._no_objective(self._plan.objective.metric)

    def _failure(self, status: int) -> ProgramFailed:
        entry, trace = self._plan.script.entry, self._with_own_paths(_traceback(self._errors))
        if status < 0:
            hint = " The system may have run out of memory." if status == -signal.SIGKILL else ""
            message = f"{entry} was ended {describe_status(status)}.{hint}"
            return ProgramFailed("script_crashed", message, trace)
        last = trace.rstrip().rpartition("\n")[2].strip()[:500]
        cause = f": {last}" if last else ""
        return ProgramFailed("script_failed", f"{entry} ended with exit status {status}{cause}", trace)

    def _with_own_paths(self, trace: str) -> str:
        """Return a traceback that names the files as the code version does."""
        for folder in {str(self._work), os.path.realpath(self._work)}:
            trace = trace.replace(folder + os.sep, "")
        return trace

    def _no_objective(self, metric: str) -> ProgramFailed:
        entry, latest = self._plan.script.entry, self._reported.latest
        if metric in latest:
            return ProgramFailed("nan_objective", f"{entry} reported no finite value of {metric!r}")
        if latest:
            names = ", ".join(sorted(latest)[:20])
            what = f"no value of the objective {metric!r}, only {names}"
        else:
            what = "no metrics"
        message = (
            f"{entry} ended without an error, but reported {what}; did it end too early? {HINT % metric}"
        )
        return ProgramFailed("no_objective", message)


def _print(stream: Stream, line: bytes) -> None:
    """Print a script line as this process' own line; its output is the job's log."""
    # A line with this character marks the trial of the next lines.
    text = line.replace(b"\x1e", b"?") + b"\n"
    # A full disk must not end the script.
    with contextlib.suppress(OSError):
        os.write(1 if stream == "stdout" else 2, text)


def _traceback(lines: Sequence[bytes]) -> str:
    """Return the last traceback in the error output, else its last lines."""
    texts = [line.decode("utf-8", "replace") for line in lines]
    starts = [i for i, text in enumerate(texts) if text.startswith("Traceback (most recent call last)")]
    return "\n".join(texts[starts[-1] :] if starts else texts[-20:])


def figures(metrics: Mapping[str, float]) -> dict[str, float | None]:
    """Return metrics as JSON values: None where a value is not finite."""
    return {name: value if math.isfinite(value) else None for name, value in metrics.items()}
