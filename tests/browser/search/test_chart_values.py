"""The values that charts show at the pointer, and the colours of their lines."""

from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from jobs.models import Job, MetricChunk, MetricSeries
from jobs.queries.runs.codec import pack_columns
from tests.browser.search.test_search_charts import Open, charts_of, tile
from tests.factories import make_experiment, make_job
from tests.people import People
from tests.seeded import seed_search

LOSSES = "ty-curves[names='loss,val_loss']"
COLOURS = "async () => (await import('/static/js/search/look.js')).look()"
STROKES = "({chart}) => chart.series.slice(1).map(series => series.stroke())"
INKED = """({chart}, series) => {
    const {width, height} = chart.ctx.canvas;
    const [red, green, blue] = chart.series[series].stroke().match(/\\d+/g).map(Number);
    const {data} = chart.ctx.getImageData(0, 0, width, height);
    let count = 0;
    for (let at = 0; at < data.length; at += 4)
        count += data[at] === red && data[at + 1] === green && data[at + 2] === blue;
    return count;
}"""
"""Counts the pixels of a chart that have the colour of a series."""


def add_curves(job: Job, curves: dict[str, list[float]]) -> None:
    """Give a training these curves, with a value for each epoch."""
    for name, values in curves.items():
        series = MetricSeries.objects.create(job=job, attempt=1, name=name, count=len(values))
        epochs = np.arange(1.0, len(values) + 1)
        data = pack_columns(np.array([epochs, values, epochs]))
        MetricChunk.objects.create(series=series, first_x=1, last_x=len(values), count=len(values), data=data)


def training_of(people: People, curves: dict[str, list[float]]) -> Job:
    experiment = make_experiment(project=people.project, by=people.owner)
    job = make_job(experiment=experiment, by=people.owner, kind="train", state="completed")
    add_curves(job, curves)
    return job


def point_at(page: Page, chart: Locator) -> Locator:
    """Move the pointer over a chart until it shows a value; return its box."""
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    assert box is not None
    tip = page.locator(".ty-tip:visible .ty-tip-row").first
    for step in range(400):
        across, down = 0.15 + 0.7 * (step % 25) / 25, 0.1 + 0.75 * (step // 25) / 16
        page.mouse.move(box["x"] + across * box["width"], box["y"] + down * box["height"])
        if tip.is_visible():
            return page.locator(".ty-tip:visible").first
    raise AssertionError("the chart shows no value anywhere")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_all_colours_of_charts_are_ones_that_a_canvas_understands(
    people: People, open_as: Open, theme: str
) -> None:
    page = charts_of(seed_search(people.project, by=people.owner, trials=12), people, open_as)
    page.evaluate("theme => document.documentElement.dataset.bsTheme = theme", theme)
    colours: dict[str, Any] = page.evaluate(COLOURS)
    plain = {name: colour for name, colour in colours.items() if isinstance(colour, str)}
    assert plain["ink"]
    named = plain | colours["tones"]
    assert not {name: colour for name, colour in named.items() if not colour.startswith("rgb(")}


@pytest.mark.parametrize("chart", ["slice", "heat", "pareto"])
def test_a_chart_shows_values_at_the_pointer_in_ink_on_paper(
    people: People, open_as: Open, chart: str
) -> None:
    search = seed_search(people.project, by=people.owner, trials=60)
    page = charts_of(search, people, open_as, f"&chart={chart}")
    expect(tile(page, chart).locator("canvas").first).to_be_visible()
    tip = point_at(page, tile(page, chart).locator("canvas").first)
    expect(tip).to_contain_text("val_accuracy (mean)")
    text = tip.locator(".ty-tip-text")
    style = "element => [getComputedStyle(element).color, getComputedStyle(element).backgroundColor]"
    ink, paper = text.evaluate(style)
    assert ink != paper
    assert paper == "rgb(255, 255, 255)"


def test_the_history_shows_a_trial_beside_the_pointer_and_a_click_selects_it(
    people: People, open_as: Open
) -> None:
    page = charts_of(seed_search(people.project, by=people.owner, trials=60), people, open_as)
    plot = page.locator("ty-history .u-over")
    tip = point_at(page, plot)
    expect(tip).to_contain_text("best so far")
    expect(tip).to_contain_text("learning_rate")
    title = tip.locator(".ty-tip-title").inner_text()
    box, at = tip.bounding_box(), page.evaluate("() => [innerWidth, innerHeight]")
    assert box is not None
    assert box["x"] + box["width"] <= at[0]
    assert box["y"] + box["height"] <= at[1]
    page.mouse.down()
    page.mouse.up()
    number = title.removeprefix("Trial ")
    expect(page.locator(".ty-chart-shared .ty-chip")).to_have_text(f"1 selected: {number}")
    assert f"pick={number}" in page.url
    page.mouse.move(0, 0)
    expect(page.locator(".ty-tip:visible")).to_have_count(0)


def test_the_curves_of_a_search_name_the_trainings_that_follow_it(people: People, open_as: Open) -> None:
    search = seed_search(people.project, by=people.owner, trials=2, executions=1)
    common: dict[str, Any] = {"by": people.owner, "project": people.project, "state": "completed"}
    first, second = (make_job(kind="train", parent=search, ordinal=n, **common) for n in (1, 2))
    for training in (first, second):
        add_curves(training, {"val_accuracy": [0.5, 0.7, 0.6]})
    page = open_as(people.owner, f"/jobs/{search.pk}")
    curves = page.locator("ty-curves[names='val_accuracy']")
    legend = curves.locator(".ty-chart-legend")
    expect(legend).to_contain_text(f"job {second.pk}")
    assert legend.locator("button").all_inner_texts() == [
        *("trial 1", "trial 2"),
        *(f"job {first.pk}", f"job {second.pk}"),
    ]
    assert len(set(curves.evaluate(STROKES))) == 4, "a colour for each trial and job"


def test_training_and_validation_have_the_same_colours_on_every_page(people: People, open_as: Open) -> None:
    both = {"val_loss": [0.9, 0.5, 0.4], "loss": [1.0, 0.4, 0.2]}
    training = training_of(people, both)
    validated_first = training_of(people, {"val_loss": [0.5]})
    page = open_as(people.owner, f"/jobs/{training.pk}")
    expect(page.locator(f"{LOSSES} canvas")).to_be_visible()
    train, validation = page.locator(LOSSES).evaluate(STROKES)
    assert train != validation
    page.goto(f"/jobs/{training.pk}?tab=charts")
    expect(page.locator(f"{LOSSES} canvas")).to_be_visible()
    assert page.locator(LOSSES).evaluate(STROKES) == [train, validation]
    page.goto(f"/jobs/{validated_first.pk}")
    expect(page.locator(f"{LOSSES} canvas")).to_be_visible()
    assert page.locator(LOSSES).evaluate(STROKES) == [validation]
    search = seed_search(people.project, by=people.owner, trials=2, executions=1)
    page.goto(f"/jobs/{search.pk}/trials/1")
    expect(page.locator("ty-curves canvas")).to_be_visible()
    assert page.locator("ty-curves").evaluate(STROKES) == [train, validation]


def test_a_series_of_one_point_is_drawn_beside_longer_ones(people: People, open_as: Open) -> None:
    training = training_of(people, {"loss": [1.0, 0.4, 0.2, 0.1, 0.05, 0.02], "val_loss": [0.7]})
    page = open_as(people.owner, f"/jobs/{training.pk}")
    expect(page.locator(f"{LOSSES} canvas")).to_be_visible()
    assert page.locator(LOSSES).evaluate(INKED, 2) > 10


def test_the_curves_of_a_training_are_a_grid_whose_charts_are_enlarged_by_link(
    people: People, open_as: Open
) -> None:
    curves = {"loss": [1.0, 0.4, 0.2], "val_loss": [0.9, 0.5, 0.4], "accuracy": [0.5, 0.8, 0.9]}
    training = training_of(people, curves)
    page = open_as(people.owner, f"/jobs/{training.pk}?tab=charts")
    expect(page.locator(".ty-tile")).to_have_count(2)
    page.locator("[data-enlarge=loss]").click()
    page.get_by_label("y axis, logarithmic").check()
    assert "chart=loss" in page.url
    page.reload()
    expect(page.locator("[data-chart=loss] canvas")).to_be_visible()
    assert page.locator("[data-chart=loss] ty-curves").evaluate("({chart}) => chart.scales.y.distr") == 3
    page.get_by_role("button", name="Table").click()
    expect(page.locator(".ty-chart-table tbody tr")).to_have_count(2)
    page.reload()
    expect(page.locator(".ty-chart-table tbody tr")).to_have_count(2)
    page.get_by_role("button", name="Table").click()
    expect(page.locator("[data-chart=loss] canvas")).to_be_visible()
    page.go_back()
    expect(page.locator(".ty-enlarged")).to_have_count(0)


def test_a_table_of_curves_follows_selection_and_points_and_loads_each_curve_once(
    people: People, open_as: Open
) -> None:
    search = seed_search(people.project, by=people.owner, trials=9, executions=1)
    page = charts_of(search, people, open_as, "&chart=curves&as=table&pick=5")
    chart, loaded = tile(page, "curves"), []
    rows = chart.locator(".ty-chart-table tbody tr")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("trial 5")
    expect(chart.locator("canvas")).to_be_hidden()
    points = int(rows.locator("td").nth(1).inner_text())
    event = {"type": "metric", "job": search.pk, "trial": 5, "execution": 1, "attempt": 1, "x": "epoch"}
    event["points"] = [["val_accuracy", 1000, 0.123, 5000]]
    chart.locator("ty-curves").evaluate("(curves, event) => curves.onEvents([event])", event)
    expect(rows.locator("td").nth(1)).to_have_text(str(points + 1))
    expect(rows).to_contain_text("0.1230")
    page.on("request", lambda request: loaded.append(request.url) if "/metrics?" in request.url else None)
    page.locator(".ty-chart-shared .ty-chip").get_by_role("button").click()
    expect(rows).to_have_count(8)
    chart.get_by_role("button", name="Table").click()
    expect(chart.locator("canvas")).to_be_visible()
    assert len(loaded) == 1


def test_the_curves_of_a_retraining_are_named_in_words(people: People, open_as: Open) -> None:
    training = training_of(people, {"loss": [1.0, 0.4], "retrain_loss": [0.9, 0.3]})
    page = open_as(people.owner, f"/jobs/{training.pk}?tab=charts")
    expect(page.locator(".ty-tile h2")).to_have_text(["loss", "loss, retraining"])


def test_curves_are_read_by_keyboard(people: People, open_as: Open) -> None:
    training = training_of(people, {"loss": [1.0, 0.4, 0.2], "val_loss": [0.9, 0.5, 0.4]})
    page = open_as(people.owner, f"/jobs/{training.pk}")
    curves = page.locator(LOSSES)
    expect(curves.locator("canvas")).to_be_visible()
    curves.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(curves.get_by_role("status")).to_have_text("epoch 2, after 1 s: loss 0.4000, val_loss 0.5000")
