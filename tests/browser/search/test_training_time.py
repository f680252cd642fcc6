"""Learning curves over training time instead of epochs."""

from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from jobs.actions.runs import events
from jobs.models import Job, MetricChunk, MetricSeries, Trial
from jobs.queries.runs.codec import pack_columns
from tests.browser.looking import Look
from tests.browser.search.test_chart_values import point_at
from tests.browser.search.test_search_charts import Open, tile
from tests.factories import make_experiment, make_job
from tests.people import People
from tests.seeded import seed_search

NOON = 1.8e9
# A change of the address draws the chart again, and until then there is none.
PLACES = """async (curves, count) => {
    while (curves.chart?.data[0].length !== count) await new Promise(requestAnimationFrame);
    return curves.chart.data[0];
}"""


def measure(
    job: Job, name: str, times: dict[int, float], *, attempt: int = 1, trial: Trial | None = None
) -> None:
    """Store a value for each epoch, measured at this many seconds after noon."""
    epochs = np.array([*times], dtype=float)
    series = MetricSeries.objects.create(
        job=job, trial=trial, execution=1 if trial else 0, attempt=attempt, name=name, count=len(epochs)
    )
    values = (1.2 if name == "val_loss" else 1.0) / epochs
    data = pack_columns(np.array([epochs, values, NOON + np.array([*times.values()])]))
    MetricChunk.objects.create(
        series=series, first_x=epochs[0], last_x=epochs[-1], count=len(epochs), data=data
    )


def resumed_training(people: People, state: str = "completed") -> Job:
    """Make a training with 10 s per epoch. The first attempt ended in epoch 5; it resumed after a pause."""
    experiment = make_experiment(project=people.project, by=people.owner)
    job = make_job(experiment=experiment, by=people.owner, kind="train", state=state)
    for name in ("loss", "val_loss"):
        measure(job, name, {epoch: 10.0 * epoch for epoch in range(1, 5)})
        measure(job, name, {4: 3600, 5: 3610, 6: 3620}, attempt=2)
    return job


def places(curves: Locator, count: int) -> Any:
    """Return the places of a chart on its x axis, once there are so many."""
    return pytest.approx(curves.evaluate(PLACES, count), abs=1e-3)


def enlarged_loss(page: Page) -> Locator:
    curves = tile(page, "loss").locator("ty-curves")
    expect(curves.locator("canvas")).to_be_visible()
    return curves


def test_curves_are_drawn_over_the_time_of_training_without_its_pauses(
    people: People, open_as: Open, look: Look
) -> None:
    page = open_as(
        people.owner, f"/jobs/{resumed_training(people).pk}?tab=charts&chart=loss&ax.loss.xrange=2..4"
    )
    curves = enlarged_loss(page)
    across = page.get_by_label("Across")
    expect(across.locator("option")).to_have_text(["epoch", "training time"])
    across.press("ArrowDown")
    expect(across).to_be_focused()
    assert page.url.endswith("&ax.loss.x=time"), "a range of epochs is no range of seconds"
    assert places(curves, 6) == [0, 10, 20, 30, 40, 50]
    expect(page.get_by_label("x axis (s), from")).to_be_visible()
    expect(tile(page, "loss")).to_contain_text("Pauses, waiting and restarts are left out")
    page.reload()
    curves = enlarged_loss(page)
    assert places(curves, 6) == [0, 10, 20, 30, 40, 50]
    curves.focus()
    page.keyboard.press("End")
    expect(curves.get_by_role("status")).to_have_text(
        "50 s of training, epoch 6: loss 0.1667, val_loss 0.2000"
    )
    look(page, "training-time")
    expect(point_at(page, curves.locator(".u-over")).locator(".ty-tip-title")).to_contain_text(
        "s of training, epoch"
    )
    page.get_by_role("button", name="Table").click()
    expect(page.locator(".ty-chart-table tbody td:last-child")).to_have_text(["50 s", "50 s"])


def test_an_epoch_that_arrives_is_drawn_at_its_time(people: People, open_as: Open) -> None:
    job = resumed_training(people, "running")
    page = open_as(people.owner, f"/jobs/{job.pk}?tab=charts&ax.loss.x=time")
    curves = enlarged_loss(page)
    assert places(curves, 6) == [0, 10, 20, 30, 40, 50]
    point = ["loss", 7, 0.1, NOON + 3630]
    events.append(job.pk, [events.event("metric", job, attempt=2, x="epoch", points=[point])])
    assert places(curves, 7) == [0, 10, 20, 30, 40, 50, 60]


def test_trials_that_started_at_different_moments_begin_at_the_same_place(
    people: People, open_as: Open
) -> None:
    search = seed_search(people.project, by=people.owner, trials=2, executions=1)
    search.series.all().delete()
    first, second = search.trials.order_by("number")
    measure(search, "val_accuracy", {1: 5, 2: 65, 3: 125}, trial=first)
    measure(search, "val_accuracy", {1: 1000, 2: 1030, 3: 1060, 4: 1090}, trial=second)
    page = open_as(people.owner, f"/jobs/{search.pk}?tab=trials&compare=1,2")
    comparison = page.get_by_role("region", name="Comparison")
    curves = comparison.locator("ty-curves")
    assert places(curves, 4) == [1, 2, 3, 4]
    expect(point_at(page, curves.locator(".u-over"))).to_contain_text("after")
    comparison.get_by_label("Across").select_option("training time")
    assert places(curves, 5) == [0, 30, 60, 90, 120]
    assert "ax.compare.x=time" in page.url
    expect(comparison).to_contain_text("Each training starts at 0 with its first point")
