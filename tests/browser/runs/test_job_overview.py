"""The overview of a search: one header line, the answer, and a table with the best trial first."""

import re
from collections.abc import Callable
from typing import Any

from playwright.sync_api import Page, expect

from jobs.models import Execution, Job, Trial
from tests.browser.conftest import Held
from tests.browser.looking import NARROW, WIDE, Look
from tests.browser.search.importances import store_importance
from tests.people import People
from tests.seeded import seed_search

Open = Callable[..., Page]
LINE = 64
"""The most pixels of the header line on a wide screen; with the counts it was 300."""

TEXT_AND_BUTTONS = """(line) => {
  const words = line.querySelector(".ty-progress > .text-secondary");
  words.textContent = "22 of 24 executions · 1 min 35 s left · choosing the faster way";
  const range = document.createRange();
  range.selectNodeContents(words);
  const text = range.getBoundingClientRect();
  const buttons = line.querySelector(".ty-actions").getBoundingClientRect();
  return { text: text.right, buttons: buttons.left, below: buttons.top >= text.bottom };
}"""


def analysed(people: People, **fields: Any) -> Job:
    """Return a search whose importance is known."""
    search = seed_search(people.project, by=people.owner, trials=40, **fields)
    store_importance(search)
    return search


def test_the_overview_of_an_ended_search_answers_it(people: People, open_as: Open, look: Look) -> None:
    search = analysed(people)
    best = Trial.objects.scored().order_by("-score").first()
    assert best is not None
    page = open_as(people.owner, f"/jobs/{search.pk}")
    answer = page.get_by_role("region", name="Answer")
    expect(answer).to_contain_text(f"trial {best.number}")
    expect(answer).to_contain_text(
        re.compile("highest val_accuracy on .* validation rows; mean over 2 trainings")
    )
    expect(answer).to_contain_text(re.compile("95 % interval of the difference|not known yet"))
    expect(answer.get_by_role("listitem").filter(has_text="learning_rate").first).to_contain_text("61 %")
    for tendency in (
        "lower values tend to score better",
        "no clear tendency",
        "adam or rmsprop tends to score best",
    ):
        expect(answer).to_contain_text(tendency)
    expect(answer.get_by_role("button", name="Register", exact=True)).to_be_visible()
    for name in ("Retrain", "Train the best two again", "Search a smaller range"):
        expect(answer.get_by_role("link", name=name, exact=True)).to_be_visible()
    rows = page.locator("ty-trials tbody tr")
    expect(rows.first.locator("a")).to_have_text(str(best.number))
    assert page.locator("ty-trials thead th").count() <= 9, "at most eight columns and the boxes"
    assert page.locator("ty-trials thead").get_by_role("button", name="lr", exact=True).count() == 0
    look(page, "job-overview-answer")


def test_the_head_is_asked_for_once_at_a_time(people: People, open_as: Open) -> None:
    search = analysed(people, state="running")
    page = open_as(people.owner, f"/jobs/{search.pk}")
    held = Held(page, "**/jobs/*part=head*")
    changed = "document.dispatchEvent(new CustomEvent('ty:server', {detail: 'answers'}))"
    page.evaluate(changed)
    asked = held.next()
    page.evaluate(changed)
    # The answer to a later request comes after a second request for the head would have been sent.
    page.evaluate("new Promise((done) => setTimeout(done)).then(() => fetch('/healthz'))")
    assert not held.waiting
    asked.continue_()
    held.next().continue_()


def test_the_other_tabs_repeat_one_line(people: People, open_as: Open) -> None:
    search = analysed(people, state="running")
    page = open_as(people.owner, f"/jobs/{search.pk}?tab=logs")
    page.set_viewport_size(WIDE)
    # The layout may still change while the page loads.
    page.wait_for_function(
        "most => document.querySelector('.ty-job-head').getBoundingClientRect().height <= most", arg=LINE
    )
    expect(page.get_by_role("button", name="Finish with what we have")).to_be_visible()


def test_the_progress_of_a_search_is_not_behind_its_buttons(people: People, open_as: Open) -> None:
    search = analysed(people, state="running")
    page = open_as(people.owner, f"/jobs/{search.pk}?tab=logs")
    for width in (1440, 1380, 1340, 1300, 1260, 1024):
        page.set_viewport_size({"width": width, "height": 900})
        ends = page.locator(".ty-job-line").evaluate(TEXT_AND_BUTTONS)
        assert ends["text"] <= ends["buttons"] or ends["below"], (width, ends)


def test_the_counts_of_trials_stay_in_place_when_a_phase_is_named(people: People, open_as: Open) -> None:
    search = analysed(people, state="running")
    page = open_as(people.owner, f"/jobs/{search.pk}")
    counts = page.locator(".ty-job-counts")
    before = counts.bounding_box()
    counts.evaluate(
        """list => list.insertAdjacentHTML("beforeend", "<div><dt>Trial 3</dt><dd>compiling</dd></div>")"""
    )
    assert counts.bounding_box() == before


def test_tabs_that_do_not_fit_show_that_they_scroll_and_are_apart_from_the_head(
    people: People, open_as: Open
) -> None:
    search = analysed(people, state="running")
    page = open_as(people.owner, f"/jobs/{search.pk}")
    page.set_viewport_size(NARROW)
    tabs = page.locator(".ty-tabs")
    assert tabs.evaluate("({ scrollWidth, clientWidth }) => scrollWidth > clientWidth")
    shades = tabs.evaluate("(tabs) => getComputedStyle(tabs).backgroundAttachment")
    assert shades == "local, local, scroll, scroll", "two that hide the others at the ends, as of tables"
    counts, below = page.locator(".ty-job-about").bounding_box(), tabs.bounding_box()
    assert counts is not None and below is not None
    assert below["y"] - counts["y"] - counts["height"] >= 8


def test_the_table_of_trials_shows_scores_on_a_phone_and_that_it_scrolls(
    people: People, open_as: Open
) -> None:
    page = open_as(people.owner, f"/jobs/{analysed(people).pk}?tab=trials")
    page.set_viewport_size(NARROW)
    scroller = page.locator("ty-trials .table-responsive")
    assert scroller.evaluate("({ scrollWidth, clientWidth }) => scrollWidth > clientWidth")
    shades = scroller.evaluate("(scroller) => getComputedStyle(scroller).backgroundAttachment")
    assert shades == "local, local, scroll, scroll"
    score = page.locator("ty-trials tbody tr").first.locator("td").nth(3).bounding_box()
    assert score is not None and score["x"] + score["width"] <= NARROW["width"]


def test_lines_that_arrive_while_the_log_is_loaded_are_not_lost(people: People, open_as: Open) -> None:
    search = analysed(people, state="running")
    page = open_as(people.owner, f"/jobs/{search.pk}?tab=logs")
    expect(page.locator("ty-log [data-count]")).not_to_be_empty()
    held = Held(page, "**/logs?*")
    page.get_by_label("Search the log").fill("epoch")
    asked = held.next()
    line = {"type": "log", "cursor": 10**9, "time": 0, "level": "info", "line": "epoch 7", "source": "runner"}
    page.evaluate("(line) => document.querySelector('ty-log').add([line])", line)
    asked.fulfill(json={"items": [{**line, "cursor": 1, "line": "epoch 6"}], "cursor": 1})
    expect(page.get_by_role("log")).to_contain_text("epoch 6")
    expect(page.get_by_role("log")).to_contain_text("epoch 7")
    expect(page.locator("ty-log [data-count]")).to_have_text("2 lines")


def test_the_lines_of_the_steps_after_a_search_name_their_job(people: People, open_as: Open) -> None:
    search = analysed(people)
    page = open_as(people.owner, f"/jobs/{search.pk}?tab=logs")
    expect(page.locator("ty-log [data-count]")).not_to_be_empty()
    line = {"type": "log", "time": 0, "level": "info", "line": "a line", "source": "engine"}
    lines = [{**line, "cursor": 10**9 + at, "job": job} for at, job in enumerate((search.pk, 77, 78))]
    page.evaluate("(lines) => document.querySelector('ty-log').add(lines)", lines)
    sources = page.get_by_role("log").locator("div > span:nth-child(2)")
    expect(sources).to_have_text(["engine", "job 77", "job 78"])


def test_a_first_click_on_a_metric_puts_the_best_first(people: People, open_as: Open) -> None:
    search = analysed(people)
    page = open_as(people.owner, f"/jobs/{search.pk}?tab=trials&sort=number&cols=score,m.val_loss")
    rows = page.locator("ty-trials tbody tr")
    expect(rows.first.locator("a")).to_have_text("1")
    page.locator("ty-trials thead").get_by_role("button", name=re.compile("^val_accuracy")).click()
    best = Trial.objects.scored().order_by("-score").first()
    assert best is not None
    expect(rows.first.locator("a")).to_have_text(str(best.number))
    assert "sort=-score" in page.url
    page.locator("ty-trials thead").get_by_role("button", name=re.compile("^val_accuracy")).click()
    assert "sort=score" in page.url


def test_the_filter_and_the_number_of_trials_are_one_line(people: People, open_as: Open) -> None:
    page = open_as(people.owner, f"/jobs/{analysed(people).pk}?tab=trials")
    page.set_viewport_size({"width": 1400, "height": 900})
    form, count = page.get_by_role("form", name="Filter trials"), page.locator("ty-trials .ty-chips")
    expect(count).to_have_text("40 trials")
    boxes = [part.bounding_box() for part in (form, count)]
    assert boxes[0] is not None and boxes[1] is not None
    assert boxes[1]["y"] < boxes[0]["y"] + boxes[0]["height"] < 64 + boxes[0]["y"]


def test_a_running_search_shows_its_best_so_far_and_updates_it_live(
    people: People, open_as: Open, look: Look
) -> None:
    from jobs.actions.transition import move
    from jobs.states import JobState

    search = analysed(people, state="running")
    page = open_as(people.owner, f"/jobs/{search.pk}")
    best = page.get_by_role("region", name="Best so far")
    expect(best.get_by_role("link", name="Retrain", exact=True)).to_be_visible()
    look(page, "job-overview-running")
    Execution.objects.filter(trial__job=search, trial__number=5).update(score=0.9999)
    Trial.objects.filter(job=search, number=5).update(score=0.9999, state="completed")
    move(search, JobState.COMPLETED)
    expect(page.get_by_role("region", name="Answer")).to_contain_text("trial 5")
