import pytest

from jobs.actions.runs import attempt_end, control, pipeline, schedule
from jobs.actions.search import trials
from jobs.errors import BadInput, StaleState
from jobs.kinds import planned_steps
from jobs.kinds.train.actions import TrainActions
from jobs.models import Job
from jobs.spec.experiment import ExperimentSpec
from jobs.states import Outcome
from tests.jobs.yard import SEARCH, PretendWorker, Yard, begun, ended, placed_search, spec, turn, until_final
from tests.present import present

AFTER = {"retrain": {"top": 2}, "ensemble": {}, "quantize": {}}


def test_a_search_without_more_ends_when_its_trials_do(installation: Yard, worker: PretendWorker) -> None:
    job = until_final(worker, installation.submit(search=SEARCH))
    assert job.state == "completed"
    assert [t.values["units"] for t in job.trials.order_by("number")] == [16, 32, 48, 64]
    assert {t.state for t in job.trials.all()} == {"completed"}
    assert job.results_json["best_trial"]["number"] == 1
    assert job.children.count() == 0


def test_a_trials_score_is_the_mean_over_its_executions(installation: Yard, worker: PretendWorker) -> None:
    job = until_final(worker, installation.submit(search=SEARCH), score=0.5)
    trial = job.trials.get(number=1)
    assert trial.score == pytest.approx(0.515)
    assert trial.std == pytest.approx(0.005)


def test_a_cross_validation_trains_each_trial_once_a_fold_of_each_repeat(
    installation: Yard, worker: PretendWorker
) -> None:
    search = {**SEARCH, "max_trials": 1, "evaluation": {"kind": "k_fold", "folds": 3}}
    job = until_final(worker, installation.submit(search=search))
    executions = job.trials.get().executions.order_by("number")
    turns = [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3)]
    assert list(executions.values_list("repeat", "fold")) == turns
    assert len(set(executions.values_list("seed", flat=True))) == len(turns)


def test_the_steps_after_a_search_run_one_by_one(installation: Yard, worker: PretendWorker) -> None:
    job = installation.submit(search=SEARCH, after=AFTER)
    order: list[str] = []
    for _ in range(20):
        order += [a.job.kind for a in turn(worker, job)]
    assert job.state == "completed"
    assert order == ["search"] * 4 + ["train"] * 2 + ["ensemble", "quantize"]
    assert job.results_json["candidates"].keys() == {"best", "ensemble", "quantize"}


def test_advancing_twice_makes_no_step_twice(installation: Yard, worker: PretendWorker) -> None:
    job = installation.submit(search=SEARCH, after=AFTER)
    for _ in range(5):
        turn(worker, job)
        pipeline.advance_all()
        pipeline.advance_all()
    assert job.children.filter(kind="train").count() == 2


def test_a_failed_step_fails_the_root_and_retry_runs_only_that(
    installation: Yard, worker: PretendWorker
) -> None:
    job = installation.submit(search=SEARCH, after=AFTER)
    while not (children := list(job.children.filter(kind="train"))):
        turn(worker, job)
    schedule.place_jobs()
    first, second = worker.claim_all()
    attempt_end.finish(first.pk, Outcome.FAILED, error={"code": "nan_loss", "message": "the loss became NaN"})
    worker.run(second)
    for _ in range(4):
        turn(worker, job)
    assert job.state == "failed"
    assert "the loss became NaN" in present(job.error)["message"]

    control.retry(job, by=installation.owner)
    until_final(worker, job)
    assert job.state == "completed"
    assert job.children.get(pk=children[1].pk).fence == 1


def test_failing_trials_do_not_end_a_search_until_too_many_in_a_row(
    installation: Yard, worker: PretendWorker
) -> None:
    job, (first, second) = placed_search(installation, worker, max_consecutive_failures=2)
    attempt_end.finish(first.pk, Outcome.FAILED, error={"code": "x", "message": "out of luck"})
    pipeline.advance_all()
    job.refresh_from_db()
    assert job.state == "starting"
    attempt_end.finish(second.pk, Outcome.FAILED, error={"code": "x", "message": "out of luck"})
    pipeline.advance_all()
    job.refresh_from_db()
    assert job.state == "failed"
    assert "out of luck" in present(job.error)["message"]


def test_a_training_without_a_search_continues_with_its_steps(
    installation: Yard, worker: PretendWorker
) -> None:
    job = installation.submit(after={"quantize": {}})
    assert job.kind == "train"
    until_final(worker, job)
    assert job.state == "completed"
    assert [c.kind for c in job.children.all()] == ["quantize"]


def test_a_configuration_queued_by_hand_runs_beside_the_others(
    installation: Yard, worker: PretendWorker
) -> None:
    job = installation.submit(search=SEARCH)
    trial = trials.queue_by_hand(job, {"units": 48}, by=installation.owner)
    assert trial.source == "hand"
    until_final(worker, job)
    assert job.trials.count() == 5
    assert job.trials.get(pk=trial.pk).state == "completed"


def test_a_failing_search_starts_no_trial_while_a_worker_still_holds_one(
    installation: Yard, worker: PretendWorker
) -> None:
    job, (first, second) = placed_search(installation, worker, max_consecutive_failures=1)
    attempt_end.finish(first.pk, Outcome.FAILED, error={"code": "x", "message": "out of luck"})
    for _ in range(3):
        pipeline.advance_all()
    assert job.trials.count() == 2
    worker.run(second)
    pipeline.advance_all()
    job.refresh_from_db()
    assert (job.state, present(job.error)["code"]) == ("failed", "trials_keep_failing")

    control.retry(job, by=installation.owner)
    until_final(worker, job)
    assert job.state == "completed"


def test_a_search_without_a_completed_trial_names_the_last_error(
    installation: Yard, worker: PretendWorker
) -> None:
    job, attempts = placed_search(installation, worker, max_trials=2, max_consecutive_failures=3)
    for attempt in attempts:
        attempt_end.finish(attempt.pk, Outcome.FAILED, error={"code": "x", "message": "out of luck"})
    pipeline.advance_all()
    job.refresh_from_db()
    assert (job.state, present(job.error)["code"]) == ("failed", "no_trial_completed")
    assert present(job.error)["message"].endswith("no model to continue with; the last error: out of luck")


def test_the_failed_trial_of_a_completed_search_is_retried_without_its_old_start_and_error(
    installation: Yard, worker: PretendWorker
) -> None:
    job, (first, second) = placed_search(installation, worker)
    trial = first.trials.get()
    worker.report(first, begun(trial, ago=60), ended(trial, error="out of luck"))
    attempt_end.finish(first.pk, Outcome.COMPLETED)
    worker.run(second)
    assert until_final(worker, job).state == "completed"
    control.retry(job, by=installation.owner)
    trial.refresh_from_db()
    assert (job.state, trial.state, trial.started, trial.error) == ("queued", "queued", None, None)


def test_a_trial_that_another_user_retried_is_not_queued_twice(
    installation: Yard, worker: PretendWorker
) -> None:
    _, (first, _) = placed_search(installation, worker)
    attempt_end.finish(first.pk, Outcome.FAILED, error={"code": "x", "message": "out of luck"})
    seen_by_one, seen_by_other = (first.trials.get() for _ in range(2))
    trials.retry(seen_by_one, by=installation.owner)
    schedule.place_jobs()
    with pytest.raises(StaleState, match="only a failed or stopped trial"):
        trials.retry(seen_by_other, by=installation.owner)


def test_a_search_past_its_trials_takes_no_more(installation: Yard, worker: PretendWorker) -> None:
    job = installation.submit(search=SEARCH, after=AFTER)
    while not job.children.exists():
        turn(worker, job)
    with pytest.raises(StaleState, match="already retrains its best"):
        trials.queue_by_hand(job, {"units": 16}, by=installation.owner)


def test_a_configuration_outside_the_space_is_refused_with_its_name(installation: Yard) -> None:
    job = installation.submit(search=SEARCH)
    with pytest.raises(BadInput, match="'units' must be int from 16 to 64, got 1000"):
        trials.queue_by_hand(job, {"units": 1000}, by=installation.owner)


def test_steps_are_known_before_they_exist() -> None:
    body = spec(search=SEARCH, after=AFTER | {"register": {"model": "m", "what": ["best", "ensemble"]}})
    assert planned_steps(body) == ["search", "train", "train", "ensemble", "quantize", "register", "register"]
    assert planned_steps(ExperimentSpec.model_validate(body.to_json() | {"after": {}})) == ["search"]


def test_pausing_waits_for_the_checkpoint_and_resuming_continues_from_it(
    installation: Yard, worker: PretendWorker
) -> None:
    job, held = placed_search(installation, worker)
    control.pause(job, by=installation.owner)
    assert (job.state, job.desired) == ("starting", "paused")
    for attempt in held:
        attempt_end.finish(attempt.pk, Outcome.PAUSED)
    pipeline.advance_all()
    job.refresh_from_db()
    assert job.state == "paused"
    assert {t.state for t in job.trials.all()} == {"paused"}
    assert schedule.place_jobs() == 0

    control.resume(job, by=installation.owner)
    assert job.state == "queued"
    until_final(worker, job)
    assert job.state == "completed"
    assert job.trials.get(number=1).attempt > held[0].number


def test_a_step_of_a_paused_job_does_not_resume_alone(installation: Yard, worker: PretendWorker) -> None:
    job = installation.submit(search=SEARCH, after=AFTER)
    while not (children := list(job.children.all())):
        turn(worker, job)
    control.pause(job, by=installation.owner)
    children[0].refresh_from_db()
    with pytest.raises(StaleState, match=f"a step of job {job.pk}"):
        control.resume(children[0], by=installation.owner)


def test_an_internal_error_fails_one_job_and_does_not_block_the_others(
    installation: Yard, worker: PretendWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken, job = installation.submit(search=SEARCH, after=AFTER), installation.submit(search=SEARCH)
    make = TrainActions.children

    def raise_for_one(self: TrainActions, root: Job, spec: ExperimentSpec) -> list[Job]:
        if root == broken:
            raise RuntimeError("a bug")
        return make(self, root, spec)

    monkeypatch.setattr(TrainActions, "children", raise_for_one)
    until_final(worker, broken)
    until_final(worker, job)
    assert (broken.state, present(broken.error)["code"]) == ("failed", "internal")
    assert "RuntimeError: a bug" in present(broken.error)["message"]
    assert "raise_for_one" in present(broken.error)["traceback"]
    assert job.state == "completed"


def test_a_stopped_search_keeps_its_results(installation: Yard, worker: PretendWorker) -> None:
    job = installation.submit(search=SEARCH)
    turn(worker, job)
    control.stop(job, by=installation.owner)
    pipeline.advance_all()
    job.refresh_from_db()
    assert job.state == "stopped"
    assert job.results_json["best_trial"]["number"] == 1


def test_a_queued_job_can_be_stopped_but_not_paused(installation: Yard) -> None:
    job = installation.submit()
    with pytest.raises(StaleState, match="queued"):
        control.pause(job, by=installation.owner)
    control.kill(job, by=installation.owner)
    assert Job.objects.get(pk=job.pk).state == "stopped"


def test_a_job_can_be_cloned_and_ordered(installation: Yard) -> None:
    job = installation.submit()
    control.change(job, priority=90, by=installation.owner)
    assert job.priority == 90


def test_code_that_raises_a_fatal_error_ends_its_search_at_once(
    installation: Yard, worker: PretendWorker
) -> None:
    job, (first, second) = placed_search(installation, worker)
    fatal = {"code": "code_fatal", "message": "building the model ended the search: FatalError: no data"}
    attempt_end.finish(first.pk, Outcome.FAILED, error=fatal)
    pipeline.advance_all()
    attempt_end.finish(second.pk, Outcome.STOPPED)
    pipeline.advance_all()
    job.refresh_from_db()
    assert (job.state, job.error, job.trials.count()) == ("failed", fatal, 2)
    # The cause may have been outside of the code.
    control.retry(job, by=installation.owner)
    until_final(worker, job)
    assert job.state == "completed"
