"""The page of an endpoint with requests: figures, charts with one time axis, versions, replicas, live."""

import re
import time
from collections.abc import Callable

from django.db import transaction
from playwright.sync_api import Page, expect

from jobs.actions.registry import releases, replica_reports
from jobs.messages.histogram import bucket_of
from jobs.messages.release import ModelProcess, ReplicaReport, ServerProcess
from jobs.messages.traffic import Counts, TrafficInterval, TrafficReport, VersionCounts
from jobs.models import Endpoint, ModelVersion, RegisteredModel, User
from tests import factories
from tests.browser.conftest import Held
from tests.browser.looking import NARROW, Look
from tests.people import People

Open = Callable[..., Page]


COUNT_CHANGES_FROM_A_LOAD = """() => {
  window.store = document.querySelector("ty-traffic").store;
  window.changes = 0;
  store.addEventListener("change", () => changes++);
  void store.load();
}"""
"""One step: between two, the page's own first load may end and be counted."""


FIGURES_IN_ROWS = """(figures) => {
  const tops = [...figures.children].map((each) => each.getBoundingClientRect().top);
  return [...new Set(tops)].map((top) => tops.filter((other) => other === top).length);
}"""
COLOURS = """() => Object.fromEntries([...document.querySelectorAll("ty-traffic-chart")].map(
  ({kind, lines}) => [kind.id, lines.map(({colour}) => colour)]))"""


def released(people: People) -> RegisteredModel:
    """Make a model whose third version was rolled back to the second."""
    model = factories.make_model("digits", project=people.project, by=people.member, versions=3)
    for version in model.versions.order_by("number"):
        release(model, version, by=people.owner)
    releases.rollback(endpoint_of(model), reason="wrong sevens", by=people.owner)
    return model


def endpoint_of(model: RegisteredModel) -> Endpoint:
    related = ("model__project", "production", "previous", "staging")
    return Endpoint.objects.select_related(*related).get(model=model)


def release(model: RegisteredModel, version: ModelVersion, *, by: User) -> None:
    promotion = factories.make_promotion(version, by=by, state="approved")
    with transaction.atomic():
        releases.put_into_production(endpoint_of(model), promotion, by=by)


def ask(model: RegisteredModel, *, sequence: int, ages: range, requests: int = 40) -> None:
    """Report requests of some intervals, as a prediction server would."""
    now = time.time()
    intervals = [
        TrafficInterval(
            start=int((now - age) // 10) * 10,
            versions=tuple(
                VersionCounts(version=version, counts=counts(requests * version + age % 7, version))
                for version in (2, 3)
            ),
        )
        for age in ages
    ]
    report = ReplicaReport(
        replica="machine-1",
        model=model.name,
        generation=4,
        versions={"2": "AVAILABLE", "3": "LOADING"},
        server=ServerProcess(host="machine", pid=71, started=now - 4000, memory_bytes=61_000_000),
        processes=(ModelProcess(version=2, pid=80, memory_bytes=54_000_000, waiting=12),),
        traffic=TrafficReport(run=1, sequence=sequence, sent=now, intervals=tuple(intervals)),
    )
    replica_reports.record_report(report, server="machine-1")


def counts(requests: int, version: int) -> Counts:
    middle = bucket_of(4000 * version)
    latency = {middle + step: max(1, requests // (abs(step) + 2)) for step in range(-6, 30, 3)}
    return Counts(
        latency=latency,
        errors={400: 2, 503: version % 2},
        batches={0: requests // 4, bucket_of(16): requests // 8},
        rows=requests * 3,
        waiting=requests % 11,
    )


def test_an_endpoint_shows_its_requests_and_follows_them(people: People, open_as: Open, look: Look) -> None:
    model = released(people)
    page = open_as(people.owner, "/endpoints/digits")
    expect(page.get_by_text("No requests yet")).to_be_visible()
    expect(page.get_by_role("button", name="Copy", exact=True)).to_be_visible()
    ask(model, sequence=1, ages=range(20, 600, 10))
    expect(page.get_by_role("region", name="Latency", exact=True)).to_be_visible()
    expect(page.get_by_text("No requests yet")).to_be_hidden()
    figures = page.locator(".ty-traffic-figures")
    expect(figures).to_contain_text(re.compile(r"p99\s*[\d.]+ ms"))
    expect(figures).to_contain_text("400 invalid input: ")
    before = page.locator("ty-traffic").get_attribute("data-end")
    band = page.get_by_role("region", name="Versions in production")
    expect(
        band.get_by_role("link", name=re.compile("v2 in production.*rolled back.*wrong sevens"))
    ).to_be_visible()
    replicas = page.get_by_role("region", name="Replicas")
    for text in ("machine, process 71", "61.0 MB", "54.0 MB", "12"):
        expect(replicas).to_contain_text(text)
    expect(page.locator("ty-traffic")).not_to_have_attribute("data-end", before or "")
    for width in (1440, 1400, 1200, 800, 390):
        page.set_viewport_size({"width": width, "height": 900})
        assert len(set(figures.evaluate(FIGURES_IN_ROWS))) == 1, f"a row of figures is shorter at {width} px"
    look(page, "endpoint-traffic")


def test_requests_of_an_endpoint_are_not_asked_for_once_the_charts_are_gone(
    people: People, open_as: Open
) -> None:
    released(people)
    page = open_as(people.owner, "/endpoints/digits")
    held = Held(page, "**/traffic?*")
    page.evaluate(COUNT_CHANGES_FROM_A_LOAD)
    asked = held.next()
    page.evaluate("document.querySelector('ty-traffic').remove()")
    with page.expect_response("**/traffic?*"):
        asked.fulfill(json={})
    # The answer to a later request is read after that of the earlier one.
    assert page.evaluate("fetch('/healthz').then((answer) => answer.text()).then(() => changes)") == 0


# The other charts are drawn after the one in which the pointer chose a time.
SHOW_THE_SAME_TIME = """() => {
    const begins = [...document.querySelectorAll("ty-traffic-chart")].flatMap(
        ({chart}) => chart ? [Math.round(chart.scales.x.min)] : []);
    return begins.length > 1 && new Set(begins).size === 1;
}"""


def test_the_charts_of_an_endpoint_have_one_time_axis_and_it_is_in_the_address(
    people: People, open_as: Open
) -> None:
    model = released(people)
    ask(model, sequence=1, ages=range(20, 600, 10))
    page = open_as(people.owner, "/endpoints/digits?range=15m&version=3")
    expect(page.get_by_role("button", name="15 min")).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".ty-traffic-tools select")).to_have_value("3")
    chart = page.locator('[data-chart="requests"] .u-over')
    box = chart.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 40)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.9, box["y"] + 40, steps=4)
    page.mouse.up()
    whole = page.get_by_role("button", name=re.compile(r"\d+:\d+:\d+ – "))
    expect(whole).to_be_visible()
    assert "ax.time.xrange=" in page.url
    page.wait_for_function(SHOW_THE_SAME_TIME)
    whole.click()
    expect(whole).to_have_count(0)
    page.get_by_role("button", name="1 day").click()
    assert "range=1d" in page.url
    page.go_back()
    expect(page.get_by_role("button", name="15 min")).to_have_attribute("aria-pressed", "true")


def test_only_the_lines_of_versions_have_colours_of_versions(people: People, open_as: Open) -> None:
    model = released(people)
    ask(model, sequence=1, ages=range(20, 600, 10))
    page = open_as(people.owner, "/endpoints/digits")
    expect(page.locator('[data-chart="errors"] canvas')).to_be_visible()
    colours = page.evaluate(COLOURS)
    versions = set(colours.pop("requests"))
    others = {colour for lines in colours.values() for colour in lines}
    assert len(versions) == 2
    assert len(others) > 2
    assert not versions & others


def test_all_parts_of_an_endpoint_follow_its_release_and_keep_what_is_typed(
    people: People, open_as: Open
) -> None:
    model = released(people)
    page = open_as(people.owner, "/endpoints/digits")
    badges, reason = page.locator("#endpoint-badges"), page.get_by_label("Reason").first
    expect(badges).not_to_contain_text("down")
    reason.fill("wrong again")
    releases.take_down(endpoint_of(model), reason="it leaks", by=people.owner)
    expect(badges).to_contain_text("down")
    expect(page.get_by_role("button", name="Bring up")).to_be_visible()
    expect(page.get_by_role("link", name="Try it")).to_have_count(0)
    expect(page.get_by_role("region", name="History")).to_contain_text("it leaks")
    expect(page.locator("#endpoint-kpis")).to_contain_text("every prediction is answered with 404")
    expect(reason).to_have_value("wrong again")


def test_a_confirmed_rollback_is_sent_although_the_page_is_updated_meanwhile(
    people: People, open_as: Open
) -> None:
    released(people)
    page = open_as(people.owner, "/endpoints/digits")
    page.get_by_label("Reason").first.fill("wrong again")
    page.get_by_role("button", name="Roll back to").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    held = Held(page, "**/account/session")
    dialog.get_by_role("button", name="Roll back").click()
    asked = held.next()
    with page.expect_response("**/endpoints/digits?part=now"):
        pass
    asked.continue_()
    expect(page.get_by_role("region", name="History")).to_contain_text("wrong again")


def test_the_examples_of_a_version_are_copied(people: People, open_as: Open) -> None:
    model = released(people)
    signature = {
        "inputs": [{"name": "x", "dtype": "float32", "shape": [2]}],
        "outputs": [{"name": "y", "dtype": "float32", "shape": [1]}],
    }
    model.versions.update(signature=signature)
    page = open_as(people.owner, "/models/digits/versions/2?tab=use")
    page.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text }")
    page.get_by_role("button", name="Copy the script").click()
    expect(page.locator("#toasts")).to_contain_text("Copied.")
    assert page.evaluate("copied").startswith("import json\nimport urllib.request\n")


def test_the_address_is_the_first_thing_below_the_head(people: People, open_as: Open) -> None:
    released(people)
    page = open_as(people.owner, "/endpoints/digits")
    for size in (page.viewport_size, NARROW):
        assert size is not None
        page.set_viewport_size(size)
        boxes = [
            page.locator(part).bounding_box() for part in (".ty-head", "#endpoint-address", "#endpoint-kpis")
        ]
        places = [box["y"] for box in boxes if box is not None]
        assert places == sorted(places)
        assert len(places) == 3


def test_rolling_back_is_the_one_solid_danger_button(people: People, open_as: Open) -> None:
    released(people)
    page = open_as(people.owner, "/endpoints/digits")
    solid = page.locator("main .btn-danger:visible")
    expect(solid).to_have_count(1)
    expect(solid).to_have_text(re.compile("Roll back to v1"))
    page.set_viewport_size({"width": 390, "height": 844})
    page.get_by_role("link", name="Roll back").click()
    expect(page.locator("#rollback")).to_be_in_viewport()
