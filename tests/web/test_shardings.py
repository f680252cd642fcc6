"""The shardings that a training on a mesh has reported, beside the designed ones: on its page and by REST."""

import numpy as np
import pytest

from jobs.models import Job, MetricChunk, MetricSeries
from jobs.queries.runs.codec import pack_columns
from jobs.queries.runs.shardings import shardings_of
from tests.factories import SPEC, make_experiment, make_job
from tests.markup import text_of
from tests.people import People, browser_of
from tests.reports import live, shardings, store_report

MESH = {"shape": [2, 4], "axis_names": ["data", "model"], "simulate": 8}


@pytest.fixture
def training(people: People) -> Job:
    spec = {**SPEC, "mesh": MESH}
    experiment = make_experiment(project=people.project, by=people.owner, spec=spec)
    return make_job(kind="train", by=people.owner, experiment=experiment, state="completed")


def add_speeds(job: Job, *values: float) -> None:
    series = MetricSeries.objects.create(
        job=job, attempt=1, name="system/steps_per_second", x="epoch", count=len(values)
    )
    points = np.array([range(1, len(values) + 1), values, values], dtype=float)
    MetricChunk.objects.create(
        series=series, first_x=1, last_x=len(values), count=len(values), data=pack_columns(points)
    )


def test_the_page_of_a_training_shows_live_shardings_beside_the_designed_ones(
    people: People, training: Job
) -> None:
    store_report(training, shardings(), "shardings", "shardings.json")
    add_speeds(training, 10.0, 30.0, 20.0)
    text = text_of(browser_of(people.viewer).get(f"/jobs/{training.pk}"))
    assert "Mesh of 2 × 4 devices read from the live arrays at the start of the training" in text
    assert "Every weight is where the design puts it." in text
    assert "Each batch of 64 rows is divided along the axis data." in text
    assert "Measured: 20.00 steps per second, the median of the epochs." in text
    assert "dense_1/kernel 64 × 32 float32 –, model as designed 64 × 8" in text
    assert "cpu:0 to cpu:7 4.1 kB of weights and optimizer variables on each" in text


def test_a_weight_that_is_not_where_the_design_puts_it_is_named(people: People, training: Job) -> None:
    whole = live("dense_2/kernel", live=(None, None), shard_shape=(64, 32))
    store_report(
        training, shardings(live("dense_1/kernel"), whole, unmatched=("lstm/.*",)), "shardings", "s.json"
    )
    text = text_of(browser_of(people.viewer).get(f"/jobs/{training.pk}"))
    assert "1 weight is not where the design puts it." in text
    assert "dense_2/kernel 64 × 32 float32 –, model whole 64 × 32" in text
    assert text.index("dense_2/kernel") < text.index("dense_1/kernel"), "the list is long"
    assert "The layout rule lstm/.* matches no weight of this model." in text
    assert "The speed is known after the first epoch." in text


def test_the_shardings_are_an_answer_of_the_api_for_members_alone(people: People, training: Job) -> None:
    path = f"/api/v1/jobs/{training.pk}/shardings"
    missing = browser_of(people.viewer).get(path)
    assert missing.status_code == 404
    assert "only trainings on a mesh do" in missing.json()["detail"]
    store_report(training, shardings(), "shardings", "shardings.json")
    answer = browser_of(people.viewer).get(path).json()
    assert (answer["job"], answer["differences"], answer["steps_per_second"]) == (training.pk, 0, None)
    assert answer["variables"][0]["as_designed"] is True
    assert answer["devices"][7] == {"name": "cpu:7", "bytes": 4096}
    assert browser_of(people.stranger).get(path).status_code == 404


def test_a_report_that_code_has_damaged_is_left_out(people: People, training: Job) -> None:
    store_report(training, b'{"shape": "many"}', "shardings", "shardings.json")
    assert shardings_of(training) is None
    assert browser_of(people.viewer).get(f"/jobs/{training.pk}").status_code == 200


def test_the_designer_of_a_job_shows_what_the_job_has_measured_beside_the_drawn_mesh(
    people: People, training: Job
) -> None:
    address = f"/mesh?job={training.pk}"
    assert "has measured" not in text_of(browser_of(people.viewer).get(address))
    store_report(training, shardings(), "shardings", "shardings.json")
    add_speeds(training, 20.0)
    text = text_of(browser_of(people.viewer).get(address))
    assert f"What job {training.pk} has measured with its own mesh, whatever is drawn above:" in text
    assert "dense_1/kernel 64 × 32 float32 –, model as designed 64 × 8" in text
    assert "Measured: 20.00 steps per second" in text
    assert f'href="{address}"' in browser_of(people.viewer).get(f"/jobs/{training.pk}").content.decode()
