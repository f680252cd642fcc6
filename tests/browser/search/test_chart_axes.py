"""Chart axes: logarithm, range, smoothing and outliers, all in the address."""

import re
from typing import Any

from playwright.sync_api import Locator, Page, expect

from jobs.models import Job
from tests.browser.search.test_search_charts import Open, charts_of, tile, wait_until_enlarged
from tests.people import People
from tests.seeded import seed_search

OPTION = """async element => {
    const {getInstanceByDom} = await import("/static/vendor/echarts-6.1.0/echarts.esm.min.js");
    return getInstanceByDom(element).getOption();
}"""


# A change of the address draws the chart again, and until then there is none.
READ_ENDS = """async (curves, axis) => {
    while (typeof curves.chart?.scales[axis]?.min !== "number") await new Promise(requestAnimationFrame);
    const {min, max} = curves.chart.scales[axis];
    return [min, max];
}"""


def search_of(people: People, trials: int = 60) -> Job:
    return seed_search(people.project, by=people.owner, trials=trials)


def drawn_axis(chart: Locator, axis: str) -> dict[str, Any]:
    """Return an axis as ECharts draws it."""
    option = chart.locator(".ty-echart").evaluate(OPTION)
    return dict(option[axis][0])


def ends_of(chart: Locator, axis: str) -> list[float]:
    """Return the least and the greatest value on a uPlot axis, once it is drawn."""
    return list(chart.evaluate(READ_ENDS, axis))


def change(page: Page, label: str, value: str) -> None:
    page.get_by_label(label, exact=True).fill(value)
    page.get_by_label(label, exact=True).press("Tab")


def test_an_axis_becomes_logarithmic_and_gets_a_range_and_both_are_in_the_address(
    people: People, open_as: Open
) -> None:
    page = charts_of(search_of(people), people, open_as, "&chart=slice")
    chart = tile(page, "slice")
    expect(chart.locator("canvas").first).to_be_visible()
    page.get_by_label("y axis, logarithmic").check()
    change(page, "y axis, from", "0.8")
    change(page, "x axis, to", "256")
    expect(page.get_by_label("y axis, from", exact=True)).to_have_value("0.8")
    for parameter in ("ax.slice.ylog=on", "ax.slice.yrange=0.8..", "ax.slice.xrange=..256"):
        assert parameter in page.url
    page.reload()
    expect(chart.locator("canvas").first).to_be_visible()
    expect(page.get_by_label("y axis, logarithmic")).to_be_checked()
    expect(page.get_by_label("x axis, to", exact=True)).to_have_value("256")
    y = drawn_axis(chart, "yAxis")
    assert (y["type"], y["min"]) == ("log", 0.8)
    assert drawn_axis(chart, "xAxis")["max"] == 256
    expect(chart.locator("[data-note]")).to_contain_text("outside the axes not drawn")
    page.get_by_role("button", name="Reset").click()
    assert "ax.slice" not in page.url


def test_the_marks_of_whole_numbers_are_whole(people: People, open_as: Open) -> None:
    page = charts_of(search_of(people), people, open_as, "&chart=rank")
    chart = tile(page, "rank")
    expect(chart.locator("canvas").first).to_be_visible()
    assert drawn_axis(chart, "yAxis")["name"] == "layers"
    assert drawn_axis(chart, "yAxis")["minInterval"] == 1


def test_a_range_upside_down_is_refused_at_its_field(people: People, open_as: Open) -> None:
    page = charts_of(search_of(people), people, open_as, "&chart=slice&ax.slice.yrange=0.9..")
    expect(tile(page, "slice").locator("canvas").first).to_be_visible()
    change(page, "y axis, to", "0.5")
    problem = page.get_by_label("y axis, to", exact=True).evaluate("input => input.validationMessage")
    assert problem == "This must be greater than 0.9."
    assert "yrange=0.9..&" in page.url + "&"


def test_each_chart_keeps_its_own_axes_when_another_is_enlarged(people: People, open_as: Open) -> None:
    page = charts_of(search_of(people), people, open_as, "&chart=slice")
    across = page.locator("ty-charts").get_by_label("Across")
    across.select_option("h.learning_rate")
    page.locator("[data-enlarge=rank]").click()
    wait_until_enlarged(page, "rank")
    expect(page.locator("ty-charts").get_by_label("Up")).to_be_visible()
    page.locator("[data-enlarge=slice]").click()
    wait_until_enlarged(page, "slice")
    expect(across).to_have_value("h.learning_rate")
    expect(page.get_by_label("x axis, logarithmic")).to_be_checked()  # it is sampled so


def test_outliers_are_left_out_and_counted_until_they_are_asked_for(people: People, open_as: Open) -> None:
    search = search_of(people)
    search.trials.filter(number=20).update(score=-50.0)
    page = charts_of(search, people, open_as, "&chart=slice")
    chart = tile(page, "slice")
    expect(chart.locator("[data-note]")).to_contain_text("1 outlier not drawn")
    page.get_by_label("leave out").uncheck()
    expect(chart.locator("[data-note]")).not_to_contain_text("outlier")
    assert "ax.slice.outliers=drawn" in page.url


def test_the_history_has_a_range_and_shows_its_outliers_on_request(people: People, open_as: Open) -> None:
    search = search_of(people)
    search.trials.filter(number=20).update(score=-50.0)
    page = charts_of(search, people, open_as, "&chart=history&ax.history.outliers=drawn")
    history = page.locator("ty-history")
    expect(history.locator("canvas")).to_be_visible()
    assert ends_of(history, "y")[0] < -50
    change(page, "y axis, from", "0.9")
    expect(page).to_have_url(re.compile(r"ax\.history\.yrange=0\.9\.\."))
    assert ends_of(history, "y")[0] == 0.9


def test_curves_are_smoothed_and_their_measured_values_stay_readable(people: People, open_as: Open) -> None:
    page = charts_of(search_of(people), people, open_as, "&chart=curves&ax.curves.smooth=0.5&pick=5")
    curves = tile(page, "curves").locator("ty-curves")
    expect(curves.locator("canvas")).to_be_visible()
    expect(page.get_by_label("Smoothing")).to_have_value("0.5")
    raw, smooth = curves.evaluate("({chart}) => [chart.data[1], chart.data[1 + (chart.data.length - 1) / 2]]")
    assert smooth[0] == raw[0]
    # A moving average with weight 0.5, corrected for the values that are missing before the first.
    assert abs(smooth[1] - (0.5 * raw[0] * 0.5 + 0.5 * raw[1]) / 0.75) < 1e-9
    curves.locator(".u-over").hover(position={"x": 200, "y": 100})
    expect(page.locator(".ty-tip-row").first).to_contain_text("measured")


def test_a_drag_across_curves_zooms_and_the_zoom_is_in_the_address(people: People, open_as: Open) -> None:
    page = charts_of(search_of(people), people, open_as, "&chart=curves&pick=5")
    curves = tile(page, "curves").locator("ty-curves")
    expect(curves.locator("canvas")).to_be_visible()
    over = curves.locator(".u-over")
    over.hover(position={"x": 100, "y": 50})  # waits until the chart has its place
    box = over.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + 50)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + 60, steps=4)
    page.mouse.up()
    expect(page).to_have_url(re.compile(r"ax\.curves\.xrange="))
    low, high = ends_of(curves, "x")
    assert 1 < low < high < 8
    page.mouse.click(box["x"] + 100, box["y"] + 50)
    page.mouse.down(click_count=2)
    curves.evaluate("chart => chart.rebuild()")  # as new points do
    page.mouse.up(click_count=2)
    expect(page).not_to_have_url(re.compile(r"ax\.curves\.xrange="))
    assert ends_of(curves, "x") == [1, 8]


def test_the_timeline_keeps_its_zoom_in_the_address(people: People, open_as: Open) -> None:
    page = charts_of(search_of(people), people, open_as, "&chart=timeline")
    canvas = tile(page, "timeline").locator("canvas").first
    expect(canvas).to_be_visible()
    canvas.hover(position={"x": 400, "y": 100})
    page.mouse.wheel(0, -300)
    expect(page).to_have_url(re.compile(r"ax\.timeline\.xrange="))
    zoom = tile(page, "timeline").locator(".ty-echart").evaluate(OPTION)["dataZoom"][0]
    page.reload()
    expect(canvas).to_be_visible()
    again = tile(page, "timeline").locator(".ty-echart").evaluate(OPTION)["dataZoom"][0]
    assert again["start"] > 0
    assert abs(again["startValue"] - zoom["startValue"]) < 2000  # ms
