"""Labels of workers: a job that asks for some runs nowhere else, with all of its steps."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from jobs import program
from jobs.actions.registry import promotions, registration
from jobs.actions.runs import control, pipeline, schedule, submit, workers
from jobs.actions.runs.workers import NameTaken
from jobs.kinds.quantize.payload import QuantizePayload
from jobs.models import Attempt, Job, Worker
from jobs.queries.experiments import plan
from jobs.queries.search import waiting
from tests import factories
from tests.jobs.runs.test_schedule import gpu_mesh, waits
from tests.jobs.yard import SEARCH, PretendWorker, Yard, suggest_from_grid

H200 = {"gpu": "h200"}


def asking(**labels: str) -> dict[str, Any]:
    return {"resources": {"labels": labels}}


def test_a_job_runs_on_a_worker_with_its_labels_only(installation: Yard) -> None:
    wanted, plain = installation.submit(**asking(gpu="h200", site="berlin")), installation.submit()
    other = PretendWorker(name="other", slots=4, labels={"gpu": "h200", "site": "paris"})
    command = program.command_line("worker --pool default --label gpu=h200 --label site=berlin")
    assert waits(wanted) == (
        f"No worker of pool default has the labels gpu=h200, site=berlin; start one with: {command}"
    )
    assert [attempt.job_id for attempt in other.claim_all()] == [plain.pk], "it blocks no other job"
    fitting = PretendWorker(name="fitting", labels={"gpu": "h200", "site": "berlin", "more": "1"})
    schedule.place_jobs()
    assert [attempt.job_id for attempt in fitting.claim_all()] == [wanted.pk]


def test_a_pool_whose_last_worker_ends_by_itself_shows_how_to_start_another(installation: Yard) -> None:
    ending = PretendWorker(info={"ending": "It reaches the end of its life of 60 s (--max-life)."})
    job = installation.submit()
    workers.drain(ending.row, by=installation.owner)
    assert waits(job).endswith("manage.py worker --pool default")


def test_a_job_whose_pool_has_no_worker_shows_the_command_with_its_labels(installation: Yard) -> None:
    assert waits(installation.submit(**asking(gpu="h200"))).endswith(
        "manage.py worker --pool default --label gpu=h200"
    )


def test_trials_of_a_search_are_placed_by_its_labels_and_show_why_they_wait(installation: Yard) -> None:
    search = installation.submit(search=SEARCH, **asking(gpu="h200"))
    PretendWorker(name="plain", slots=4)
    pipeline.advance_all()
    suggest_from_grid(search)
    reason = waits(search)
    assert reason.startswith("No worker of pool default has the labels gpu=h200")
    assert set(waiting.waiting_reasons(search).values()) == {reason}
    PretendWorker(name="labelled", slots=4, labels=H200)
    schedule.place_jobs()
    assert {attempt.worker.name for attempt in Attempt.objects.all()} == {"labelled"}


def test_steps_have_the_labels_of_their_job(installation: Yard) -> None:
    search = installation.submit(search=SEARCH, **asking(gpu="h200"))
    step = submit.create_step(search, QuantizePayload(source=search.pk), 1, title="int8")
    assert Job.objects.get(pk=step.pk).labels == H200


def test_the_validation_and_the_gates_of_a_version_run_where_its_job_was_allowed_to(
    installation: Yard,
) -> None:
    project, owner = installation.project, installation.owner
    model = factories.make_model(project=project, by=owner, versions=2)
    labelled, plain = model.versions.order_by("number")
    labelled.source_job = installation.submit(resources={"pool": "berlin", "labels": H200})
    plain.source_job = installation.submit(resources={"pool": "berlin"})
    jobs = [registration.queue_validation(version, by=owner) for version in (labelled, plain)]
    assert [(job.pool, job.labels) for job in jobs] == [("berlin", H200), ("default", {})]
    labelled.save(update_fields=["source_job"])
    promotion = promotions.request(labelled, stage="production", by=owner)
    assert promotion.gate_job is not None
    assert (promotion.gate_job.pool, promotion.gate_job.labels) == ("berlin", H200)


def test_a_version_whose_gpus_have_a_part_each_is_loaded_on_as_many_again(installation: Yard) -> None:
    project, owner = installation.project, installation.owner
    mesh = {"devices": "gpu", "shape": [4], "axis_names": ["data"]}
    rules = [{"match": "dense_1/kernel", "axes": [None, "data"]}]
    split, copied = factories.make_model(project=project, by=owner, versions=2).versions.order_by("number")
    resources = {"pool": "berlin", "slots": 4}
    split.source_job = installation.submit(resources=resources, mesh={**mesh, "layout": rules})
    copied.source_job = installation.submit(resources=resources, mesh=mesh)
    jobs = [registration.queue_validation(version, by=owner) for version in (split, copied)]
    # One GPU has the whole model if there is no rule.
    assert [(job.pool, job.slots) for job in jobs] == [("berlin", 4), ("default", 1)]


def test_labels_of_a_waiting_job_can_be_changed_with_those_of_its_steps(installation: Yard) -> None:
    job = installation.submit(**asking(gpu="h200"))
    step = submit.create_step(job, QuantizePayload(source=job.pk), 1, title="int8")
    control.change(job, labels={"gpu": "a100"}, by=installation.owner)
    step.refresh_from_db()
    assert job.labels == step.labels == {"gpu": "a100"}
    assert "gpu=a100" in waits(job)
    control.change(job, labels={}, by=installation.owner)
    assert "--label" not in waits(job)


def test_the_plan_warns_about_labels_that_no_worker_has(installation: Yard) -> None:
    job = installation.submit(**asking(gpu="h200"))
    worker = PretendWorker()
    (problem,) = plan.resource_warnings(job)
    assert problem.pointer == "/labels"
    assert "--pool default --label gpu=h200" in problem.message
    spec = job.revision.spec  # type: ignore[union-attr]
    (planned,) = (
        warning
        for warning in plan.validate_spec(installation.project, spec.to_json()).plan.warnings  # type: ignore[union-attr]
        if warning.pointer == "/resources/labels"
    )
    assert "no running worker of pool 'default' has the labels gpu=h200" in planned.message
    Worker.objects.filter(pk=worker.row.pk).update(labels=H200)
    assert plan.resource_warnings(job) == []


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ({"a b": "c"}, "'a b' is not the name of a label"),
        ({"gpu": ""}, "'' is not the value of a label"),
        ("gpu", "'gpu' has no =; write KEY=VALUE"),
        ("gpu=a, gpu=b", "the label gpu has two values, a and b"),
        ({f"k{n}": "v" for n in range(17)}, "at most 16"),
    ],
)
def test_labels_that_are_none_are_refused_at_their_field(installation: Yard, labels: Any, words: str) -> None:
    body = {"version": 1, "data": {"dataset": "flowers"}, "model": {"kind": "template", "template": "mlp"}}
    verdict = plan.validate_spec(installation.project, body | {"resources": {"labels": labels}})
    (problem,) = verdict.problems
    assert problem.pointer.startswith("/spec/resources/labels")
    assert words in problem.message


def test_labels_leave_the_digest_of_other_specs_unchanged(installation: Yard) -> None:
    assert "labels" not in installation.revision().spec.to_json()["resources"]


def test_more_jobs_with_labels_take_no_more_statements(installation: Yard) -> None:
    PretendWorker(labels={"gpu": "h200"}, slots=1)

    def statements() -> int:
        schedule.place_jobs()  # writes why each waits
        with CaptureQueriesContext(connection) as queries:
            schedule.place_jobs()
        return len(queries)

    installation.submit(**asking(gpu="a100"))
    few = statements()
    for number in range(3):
        installation.submit(**asking(gpu="a100", number=str(number)))
    assert statements() == few


def test_a_worker_that_refuses_work_gets_none_and_its_reason_is_why_jobs_wait(installation: Yard) -> None:
    job, meshed = installation.submit(), installation.submit(**gpu_mesh(1))
    reason = "This machine has gpu:0 (NVIDIA H200), but JAX's CUDA plugin is not installed. " + "More. " * 100
    broken = PretendWorker(name="broken", slots=4, info={"refuses": reason, "no_gpu": reason})
    sentence = f"Worker broken of pool default takes no work: {reason}"
    assert waits(job) == waits(meshed) == f"{sentence[:499]}…", "cut to the length of its column"
    assert broken.claim_all() == []
    cpu = PretendWorker(name="cpu", slots=4)
    assert waits(meshed).startswith(
        "No worker of pool default has a GPU; worker broken: This machine has gpu:0"
    )
    assert [attempt.job_id for attempt in cpu.claim_all()] == [job.pk]


def test_a_job_that_needs_more_gpus_than_jax_supports_names_those_that_are_left_out(
    installation: Yard,
) -> None:
    reason = "GPU 1 (Tesla K80, compute capability 3.7): JAX's CUDA 12 needs 5.2"
    PretendWorker(name="box", slots=2, gpus=1, info={"unsupported_gpus": [reason]})
    assert waits(installation.submit(**gpu_mesh(2))) == (
        "The job needs 2 GPUs on one worker, and the largest of pool default has 1; worker box: "
        + reason
        + "."
    )


@pytest.mark.parametrize("kind", ["gpu", "tpu"])
def test_a_worker_with_cpus_never_gets_a_job_that_asks_for_another_device(
    installation: Yard, kind: str
) -> None:
    mesh = {"devices": kind, "shape": [1], "axis_names": ["data"], "batch_axis": "data"}
    job = installation.submit(mesh=mesh)
    cpu = PretendWorker(slots=4)
    assert waits(job).startswith(f"No worker of pool default has a {kind.upper()}; ")
    assert cpu.claim_all() == []


def test_a_live_name_is_refused_and_a_dead_one_is_taken_over(installation: Yard) -> None:
    first = PretendWorker(name="oak").row
    with pytest.raises(
        NameTaken, match=r"A worker named 'oak' already runs on h \(process 1, pool default\)"
    ):
        PretendWorker(name="oak", pool="gpu")
    assert Worker.objects.get().pool == "default", "nothing was written"
    Worker.objects.update(lease_until=first.started.replace(year=2020))
    second = PretendWorker(name="oak", labels=H200).row
    first.refresh_from_db()
    assert (first.state, second.state, second.labels) == ("lost", "up", H200)
    workers.mark_as_gone(second.pk)
    assert PretendWorker(name="oak", labels={}).row.labels == {}, "a restart has the labels that it was given"


def test_a_repeated_registration_of_a_process_finds_its_row(installation: Yard) -> None:
    fields: dict[str, Any] = {
        "name": "oak",
        "host": "h",
        "pid": 1,
        "pool": "default",
        "devices": [],
        "info": {},
    }
    first = workers.register(**fields, slots=1, process="a" * 32)
    again = workers.register(**fields, slots=2, process="a" * 32)
    assert (again.pk, again.slots) == (first.pk, 2)
    with pytest.raises(NameTaken):
        workers.register(**fields, slots=1, process="b" * 32)
