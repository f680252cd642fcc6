"""The remaining time, compared with recordings of complete jobs."""

import datetime as dt
from dataclasses import dataclass, replace
from typing import Any, Self

import pytest
from django.utils import timezone

from jobs import clock
from jobs.models import Attempt, Execution, Job, Trial
from jobs.queries.runs import progress
from tests.jobs.yard import PretendWorker, Yard

Span = tuple[float, float]
"""Start and end of something, in seconds since the job was submitted."""


@dataclass(frozen=True)
class Recording:
    """The times of one search with two executions per trial, on two slots."""

    claimed: float
    started: float
    ended: float
    trials: list[Span]
    epochs: int
    best_epoch: int
    steps: dict[str, list[Span]]

    def slowed(self, by: float) -> Self:
        """Return the same on a slower machine."""

        def slow(spans: list[Span]) -> list[Span]:
            return [(begin * by, end * by) for begin, end in spans]

        return replace(
            self,
            claimed=self.claimed * by,
            started=self.started * by,
            ended=self.ended * by,
            trials=slow(self.trials),
            steps={kind: slow(spans) for kind, spans in self.steps.items()},
        )


DEMO = Recording(
    claimed=1.5,
    started=4.0,
    ended=45.9,
    trials=[
        *((1.5, 10.1), (2.3, 11.9), (10.3, 15.6), (12.0, 18.1), (15.8, 20.8), (18.2, 24.8)),
        *((20.9, 22.7), (22.8, 26.6), (24.8, 27.7), (26.7, 28.0), (27.8, 30.4), (28.0, 30.7)),
    ],
    epochs=56,
    best_epoch=44,
    steps={
        "train": [(30.8, 34.4), (30.9, 34.6), (34.5, 37.1)],
        "ensemble": [(37.5, 39.5)],
        "quantize": [(39.6, 44.3)],
        "register": [(44.5, 44.8), (44.6, 45.2), (45.0, 45.9)],
    },
)
"""`make demo` on two quiet cores: what compiles gets faster from trial to trial."""

SEARCH = {
    "algorithm": "random",
    "max_trials": 12,
    "executions_per_trial": 2,
    "space": [{"name": "learning_rate", "kind": "float", "min": 1e-3, "max": 1e-1}],
}
AFTER = {
    "retrain": {"top": 3, "epochs_factor": 1.2, "patience": 10},
    "ensemble": {},
    "quantize": {},
    "register": {"model": "digits", "what": ["best", "ensemble", "quantized"]},
}


class Replay:
    """A recorded job's rows as they were at any second."""

    def __init__(
        self,
        installation: Yard,
        recording: Recording,
        monkeypatch: pytest.MonkeyPatch,
        after: dict[str, Any] = AFTER,
    ) -> None:
        self.recording = recording
        self.submitted = timezone.now()
        self.worker = PretendWorker(slots=2)
        self.worker.row.lease_until = self._moment(recording.ended)
        self.worker.row.save()
        self.root = installation.submit(search=SEARCH, after=after)
        self.monkeypatch = monkeypatch

    def left_at(self, second: float) -> float | None:
        """Return the remaining time in seconds, or None while it is unknown."""
        return self.at(second).eta_seconds

    def at(self, second: float) -> progress.Progress:
        """Return the progress that is shown."""
        now = self._moment(second)
        self.monkeypatch.setattr(clock, "estimate", lambda: now)
        root, recording = self.root, self.recording
        root.state, root.started = "running", self._moment(recording.started)
        root.save()
        self._attempt()
        for number, span in enumerate(recording.trials, start=1):
            self._trial(number, span, second)
        for kind, spans in recording.steps.items():
            for ordinal, span in enumerate(spans, start=1):
                self._step(kind, ordinal, span, second)
        return progress.progress_of_job(root)

    def _moment(self, second: float) -> dt.datetime:
        return self.submitted + dt.timedelta(seconds=second)

    def _times(self, span: Span, second: float) -> dict[str, object]:
        """Return state and times of what takes that span, as they are now."""
        begin, end = (self._moment(moment) for moment in span)
        if span[1] <= second:
            return {"state": "completed", "started": begin, "finished": end}
        return {"state": "running", "started": begin}

    def _attempt(self) -> None:
        claimed = self._moment(self.recording.claimed)
        fields = {"assigned": claimed, "claimed": claimed, "lease_until": claimed, "slots": 1}
        worker = self.worker.row
        Attempt.objects.create(job=self.root, number=1, worker=worker, state="running", **fields)

    def _trial(self, number: int, span: Span, second: float) -> None:
        if span[0] > second:
            return
        digest, times = f"{number:064d}", self._times(span, second)
        trial = Trial.objects.create(job=self.root, number=number, values={}, values_digest=digest, **times)
        half = (span[0] + span[1]) / 2
        for execution, end in ((1, half), (2, span[1])):
            if end <= second:
                Execution.objects.create(
                    trial=trial,
                    number=execution,
                    state="completed",
                    seed=0,
                    epochs=self.recording.epochs,
                    best_epoch=self.recording.best_epoch,
                )

    def _step(self, kind: str, ordinal: int, span: Span, second: float) -> None:
        if span[0] <= second:
            times = self._times(span, second)
            family = {"parent": self.root, "root": self.root, "project": self.root.project}
            Job.objects.create(kind=kind, ordinal=ordinal, created_by=self.root.created_by, **family, **times)


@pytest.fixture
def replay(installation: Yard, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Replay:
    return Replay(installation, DEMO.slowed(request.param), monkeypatch)


@pytest.mark.parametrize("replay", [0.5, 1.0, 4.0], indirect=True, ids="a machine {} times as slow".format)
def test_halfway_the_remaining_time_is_right_within_30_percent(replay: Replay) -> None:
    half = replay.recording.ended / 2
    assert replay.left_at(half) == pytest.approx(half, rel=0.3)


STEPS = 8
"""The later steps of `AFTER`: three retrainings, an ensemble, a quantization and three registrations."""


@pytest.mark.parametrize("replay", [1.0], indirect=True)
def test_the_fraction_is_that_of_completed_executions_and_later_steps(replay: Replay) -> None:
    progress_out = replay.at(23.0)
    assert (progress_out.done, progress_out.total, progress_out.unit) == (13, 24, "executions")
    assert progress_out.fraction == pytest.approx(13 / 24 * 12 / (12 + STEPS))


@pytest.mark.parametrize(("second", "steps"), [(30.75, 0), (37.2, 3), (44.4, 5)])
@pytest.mark.parametrize("replay", [1.0], indirect=True)
def test_the_fraction_still_rises_during_the_later_steps(replay: Replay, second: float, steps: int) -> None:
    assert replay.at(second).fraction == pytest.approx((12 + steps) / (12 + STEPS))


@pytest.mark.parametrize("replay", [1.0], indirect=True)
def test_a_running_step_counts_by_its_own_progress(replay: Replay) -> None:
    replay.at(40.0)
    quantize = replay.root.children.get(kind="quantize")
    quantize.progress = {"done": 2, "total": 4, "time": replay._moment(39.9).timestamp()}
    quantize.save()
    root = Job.objects.get(pk=replay.root.pk)
    assert progress.progress_of_job(root).fraction == pytest.approx((12 + 4 + 2 / 4) / (12 + STEPS))


@pytest.mark.parametrize("replay", [1.0], indirect=True)
def test_the_time_left_of_the_last_step_counts_down_and_then_is_unknown(
    replay: Replay, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Two of three registrations have ended; the third hangs.
    replay.recording = replace(replay.recording, ended=90.0)
    replay.recording.steps["register"][2] = (45.0, 90.0)
    replay.at(45.25)
    left = []
    for second in (45.25, 45.3, 46.0, 60.0):
        moment = replay._moment(second)
        monkeypatch.setattr(clock, "estimate", lambda moment=moment: moment)
        left.append(progress.progress_of_job(Job.objects.get(pk=replay.root.pk)).eta_seconds)
    assert left[0] is not None and left[1] is not None and left[0] > left[1]
    assert left[2:] == [None, None]


def test_slots_of_other_jobs_do_not_count_for_later_trials(
    installation: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    one_by_one = replace(DEMO, trials=[(5.0 * n, 5.0 * n + 5) for n in range(12)], ended=90.0)
    replay = Replay(installation, one_by_one, monkeypatch, after={})
    assert replay.left_at(30.0) == pytest.approx(6 * 5, rel=0.1)


@pytest.mark.parametrize("replay", [1.0], indirect=True)
def test_with_only_small_steps_open_their_usual_time_remains(replay: Replay) -> None:
    assert replay.left_at(39.6) == pytest.approx(replay.recording.ended - 39.6, rel=0.3)


@pytest.mark.parametrize("replay", [1.0], indirect=True)
def test_before_a_trial_has_ended_no_remaining_time_is_shown(replay: Replay) -> None:
    assert replay.left_at(9.0) is None


@pytest.mark.parametrize("replay", [1.0], indirect=True)
def test_a_paused_job_has_no_remaining_time_and_keeps_its_fraction(replay: Replay) -> None:
    before = replay.at(23.0)
    assert before.eta_seconds is not None
    replay.root.state = "paused"
    progress_out = progress.progress_of_job(replay.root)
    assert (progress_out.eta_seconds, progress_out.fraction) == (None, before.fraction)
    assert progress_out.fraction > 0


def test_a_slow_trial_does_not_increase_the_remaining_time(
    installation: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    spans = [(5.0 * n, 5.0 * n + 5) for n in range(11)]
    slow = replace(DEMO, trials=[*spans, (55.0, 100.0)], ended=100.0, steps={})
    replay = Replay(installation, slow, monkeypatch, after={})
    assert replay.left_at(57.0) == pytest.approx(3.0, rel=0.1)
    monkeypatch.setattr(clock, "estimate", lambda: replay._moment(70.0))
    left = progress.progress_of_job(replay.root).eta_seconds
    assert left is not None and 0 < left < 1
