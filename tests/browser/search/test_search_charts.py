"""A search's charts by mouse and keyboard, beside the trial table."""

import re
from collections.abc import Callable

from playwright.sync_api import Locator, Page, expect

from jobs.models import Job
from tests.browser.looking import NARROW, Look, check_accessibility
from tests.browser.search.importances import store_importance
from tests.people import People
from tests.seeded import SPACE, seed_search

Open = Callable[..., Page]
BY_ECHARTS = ("parallel", "importance", "slice", "contour", "heat", "rank", "pareto", "timeline")
BY_UPLOT = ("history", "curves")


def tile(page: Page, chart: str) -> Locator:
    """Return a chart's place in the grid."""
    return page.locator(f"[data-chart='{chart}']")


def wait_until_enlarged(page: Page, chart: str) -> None:
    """Wait for the frame that draws a chart enlarged: until then, the page shows the one before it."""
    expect(page.locator(".ty-enlarged")).to_have_attribute("data-chart", chart)


def all_drawn(page: Page) -> None:
    """Wait until every chart on the screen is drawn."""
    expect(page.locator(".ty-tile:not(:has(canvas, .empty))")).to_have_count(0)
    expect(page.locator(".ty-tile[aria-busy=true]")).to_have_count(0)


def charts_of(
    search: Job, people: People, open_as: Open, query: str = "", *, is_analysed: bool = True
) -> Page:
    """Open the charts of a search; unless it is analysed, the server computes the importance now."""
    if is_analysed:
        store_importance(search)
    page = open_as(people.owner, f"/jobs/{search.pk}?tab=charts{query}")
    expect(page.locator("ty-trials tbody tr").first).to_be_visible()
    return page


def test_every_chart_is_in_the_grid_and_enlarged_is_read_by_keyboard_and_as_a_table(
    people: People, open_as: Open
) -> None:
    search = seed_search(people.project, by=people.owner, trials=60)
    page = charts_of(search, people, open_as, is_analysed=False)
    expect(page.locator(".ty-tile")).to_have_count(len(BY_ECHARTS) + len(BY_UPLOT))
    for name in BY_ECHARTS:
        page.locator(f"[data-enlarge={name}]").click()
        wait_until_enlarged(page, name)
        chart = tile(page, name).locator(".ty-echart")
        expect(chart.locator("canvas").first).to_be_visible()
        expect(tile(page, name).locator("[data-note]")).to_have_text(re.compile(r"\d+ trials"))
        chart.focus()
        chart.press("ArrowRight")
        expect(tile(page, name).locator(".ty-chart-status")).not_to_be_empty()
        if name == "pareto":  # not `latency`, although it is the first
            expect(page.locator("ty-charts").get_by_label("Up")).to_have_value("m.val_loss")
        page.get_by_role("button", name="Table").click()
        expect(page.locator(".ty-chart-table tbody tr").first).to_be_visible()
        assert f"chart={name}" in page.url
        assert "as=table" in page.url
    for name in BY_UPLOT:
        page.locator(f".ty-chart-nav a[href*='chart={name}']").click()
        wait_until_enlarged(page, name)
        expect(tile(page, name).locator("canvas").first).to_be_visible()
    page.keyboard.press("Escape")
    assert "chart=curves" in page.url, "the focus is on the list of charts"
    page.get_by_role("link", name="Show all charts").focus()
    page.keyboard.press("Escape")
    expect(page.locator(".ty-enlarged")).to_have_count(0)
    check_accessibility(page)


HOLD_FRAMES = """() => {
  const held = [], ask = requestAnimationFrame;
  window.requestAnimationFrame = (draw) => held.push(draw);
  window.release = () => { window.requestAnimationFrame = ask; held.forEach((draw) => ask(draw)); };
}"""
COME_INTO_VIEW_AND_BE_IDLE = """() => {
  document.querySelector("ty-charts").grid.seen([]);
  return new Promise((done) => requestIdleCallback(() => requestIdleCallback(done)));
}"""


def test_one_chart_at_a_time_is_enlarged(people: People, open_as: Open) -> None:
    search = seed_search(people.project, by=people.owner, trials=30)
    page = charts_of(search, people, open_as, "&chart=rank")
    page.set_viewport_size({"width": 1440, "height": 3200})  # the whole page, with its foot
    all_drawn(page)
    page.evaluate(HOLD_FRAMES)
    page.locator("[data-enlarge=slice]").dispatch_event("click")
    page.evaluate(COME_INTO_VIEW_AND_BE_IDLE)
    enlarged = page.locator(".ty-enlarged").evaluate_all("tiles => tiles.map(({dataset}) => dataset.chart)")
    assert enlarged == ["rank"]
    page.evaluate("release()")
    wait_until_enlarged(page, "slice")


KEEP_ECHARTS = """() => import("/static/vendor/echarts-6.1.0/echarts.esm.min.js").then((echarts) => {
  const chart = () => document.querySelector("[data-chart=parallel] .ty-echart");
  window.axes = () => echarts.getInstanceByDom(chart()).getOption().parallelAxis;
  window.axisNames = () => axes().map(({name}) => name);
})"""
MARKS_OF_ENDS = """() => Object.fromEntries(axes().filter(({min}) => min !== undefined).map(
  ({name, min, max, axisLabel}) => [name.replace("\\n", ""), [min, max].map(axisLabel.formatter)]))"""
UNTIL_WRAPPED = """() => new Promise((done) => {
  const look = () => axisNames().includes("learning_\\nrate") ? done() : requestAnimationFrame(look);
  look();
})"""
AXES = [
    *sorted((str(parameter["name"]) for parameter in SPACE), key=lambda name: name != "dropout"),
    "val_accuracy (mean)",
]
"""The hyperparameter that is not active in all trials is at the end, where lines have few gaps."""


def test_the_names_of_parallel_axes_are_whole_and_wrapped_where_there_is_little_room(
    people: People, open_as: Open
) -> None:
    page = charts_of(seed_search(people.project, by=people.owner, trials=30), people, open_as)
    expect(tile(page, "parallel").locator("canvas").first).to_be_visible()
    page.evaluate(KEEP_ECHARTS)
    assert page.evaluate("axisNames()")[:-1] == AXES[:-1], "all but the last fit into one line"
    assert "".join(page.evaluate("axisNames()")[-1].split("\n")) == AXES[-1]
    page.set_viewport_size(NARROW)
    page.evaluate(UNTIL_WRAPPED)
    assert [name.replace("\n", "") for name in page.evaluate("axisNames()")] == AXES


def test_the_marks_of_parallel_axes_differ_where_their_values_do(people: People, open_as: Open) -> None:
    search = seed_search(people.project, by=people.owner, trials=30)
    # Ends that are equal in two digits.
    for at, trial in enumerate(search.trials.filter(score__isnull=False).order_by("number")):
        search.trials.filter(pk=trial.pk).update(
            score=0.9847 + 0.0002 * at, values=trial.values | {"units": 128 + 16 * (at % 25)}
        )
    page = charts_of(search, people, open_as)
    expect(tile(page, "parallel").locator("canvas").first).to_be_visible()
    page.evaluate(KEEP_ECHARTS)
    marks = page.evaluate(MARKS_OF_ENDS)
    assert marks["units"] == ["128", "512"]
    low, high = marks["val_accuracy (mean)"]
    assert low.startswith("0.9847") and high != low


def test_the_whole_name_of_an_axis_is_shown_at_the_pointer(people: People, open_as: Open) -> None:
    search = seed_search(people.project, by=people.owner, trials=30)
    page = charts_of(search, people, open_as, "&chart=parallel")
    canvas = tile(page, "parallel").locator("canvas").first
    expect(canvas).to_be_visible()
    box = canvas.bounding_box()
    assert box is not None
    tip = page.locator(".ty-tip:visible")
    for down in range(8, 40, 3):
        page.mouse.move(box["x"] + 64, box["y"] + down)
        if tip.is_visible():
            break
    expect(tip).to_have_text(AXES[0])


def test_small_charts_show_the_numbers_of_their_colours(people: People, open_as: Open) -> None:
    page = charts_of(seed_search(people.project, by=people.owner, trials=40), people, open_as)
    page.set_viewport_size({"width": 1440, "height": 3200})  # the whole page, with its foot
    all_drawn(page)
    for chart in ("parallel", "slice", "contour", "heat", "rank"):
        expect(tile(page, chart).locator(".ty-scale")).to_have_text(re.compile(r"^[\d.]+[\d.]+\w"))
    expect(tile(page, "heat").locator(".ty-scale")).to_have_attribute(
        "aria-label", re.compile(r"^Colours: val_accuracy from 0\.\d+ to 0\.\d+$")
    )
    for chart in ("pareto", "importance", "timeline"):
        expect(tile(page, chart).locator(".ty-scale")).to_be_hidden()
    page.locator("[data-enlarge=heat]").click()
    wait_until_enlarged(page, "heat")
    expect(page.locator(".ty-enlarged .ty-scale")).to_be_hidden()  # the picture has one beside it


def test_drags_filters_and_picks_are_in_table_and_address(people: People, open_as: Open, look: Look) -> None:
    page = charts_of(seed_search(people.project, by=people.owner, trials=60), people, open_as)
    plot = page.locator("ty-history .u-over")
    expect(plot).to_be_visible()
    box = plot.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 50)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.9, box["y"] + 60, steps=4)
    page.mouse.up()
    expect(page.locator("ty-trials .ty-chip")).to_have_text(re.compile(r"trial: \d+ – \d+"))
    expect(page.locator("ty-trials tbody tr").first.locator("a")).to_have_text(re.compile(r"^(29|[345]\d)$"))
    page.get_by_role("button", name="units").click()
    expect(page.locator("ty-trials th[aria-sort]")).to_have_text("units")
    page.keyboard.press("j")
    page.keyboard.press("x")
    expect(page.locator("ty-trials .ty-selected")).to_have_count(1)
    page.get_by_label("Filter by").select_option("h.optimizer")
    page.locator("ty-trials select[name=one]").select_option("adam")
    page.get_by_role("button", name="Filter", exact=True).click()
    expect(page.locator("ty-trials .ty-chip")).to_have_count(3)
    expect(page.locator(".ty-chart-shared .ty-chip")).to_have_count(3)
    before = page.locator("ty-trials tbody a").all_inner_texts()
    page.reload()
    expect(page.locator("ty-trials .ty-chip")).to_have_count(3)
    assert page.locator("ty-trials tbody a").all_inner_texts() == before
    page.set_viewport_size({"width": 1440, "height": 3200})  # the whole page, with its foot
    all_drawn(page)
    look(page, "search-charts")


MARK_A_ROW_BEFORE_THOSE_OUT_OF_SIGHT_ARE_DRAWN = """() => new Promise((done) => {
  scrollTo(0, 0);
  document.querySelector("ty-trials [data-key='h.units']").click();
  requestAnimationFrame(() => {
    document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "j", bubbles: true }));
    requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 50)));
  });
})"""


def test_a_row_stays_marked_when_rows_out_of_sight_are_drawn_later(people: People, open_as: Open) -> None:
    page = charts_of(seed_search(people.project, by=people.owner, trials=60), people, open_as)
    page.set_viewport_size({"width": 1440, "height": 300})
    page.evaluate(MARK_A_ROW_BEFORE_THOSE_OUT_OF_SIGHT_ARE_DRAWN)
    expect(page.locator("ty-trials tbody tr").first).to_have_class(re.compile("ty-here"))


def test_a_search_with_too_few_trials_shows_how_many_a_chart_needs(people: People, open_as: Open) -> None:
    search = seed_search(people.project, by=people.owner, trials=3)
    page = charts_of(search, people, open_as, "&chart=importance")
    missing = tile(page, "importance").locator(".empty")
    expect(missing.locator(".empty-title")).to_have_text("Needs 10 completed trials")
    expect(missing).to_contain_text("With fewer trials, the result would be mostly chance.")


def test_one_bad_trial_does_not_flatten_the_history(people: People, open_as: Open, look: Look) -> None:
    search = seed_search(people.project, by=people.owner, trials=60)
    search.trials.filter(number=20).update(score=-50.0)
    page = charts_of(search, people, open_as, "&chart=history")
    expect(page.locator("ty-history")).to_contain_text(re.compile(r"; 1 below 0\.\d+ not drawn"))
    marks = page.locator("ty-history").evaluate("({ chart }) => chart.scales.y.min")
    assert marks > 0
    look(page, "search-history-with-a-bad-trial")
