"""Steps in which Ada watches a job without a reload, and opens its results."""

import re

from playwright.sync_api import expect

from tests.browser.visitor import Visitor

JOB_TIMEOUT = 1_800_000  # ms
SOME = re.compile(r"^[1-9]")
LOOKED_AT_ELSEWHERE = ("Trials", "Charts")
"""Tabs whose look is checked by `test_trial_choice.py` and `test_search_charts.py`."""
OF_SOME_POINTS = re.compile(r"^[1-9][\d,]* of [\d,]+ points")


def watch_it_run(who: Visitor) -> None:
    """Watch the trials on the page that opened with the job, and the log in another one."""
    page = who.page
    who.mark()
    log = Visitor(page.context.new_page(), who.look)
    log.page.goto(page.url)
    watch_the_log_grow(log)
    log.page.close()
    expect(who.card("Trials").locator("tbody tr").first).to_be_visible(timeout=JOB_TIMEOUT)
    expect(page.locator("ty-curves .ty-chart-note").first).to_have_text(OF_SOME_POINTS, timeout=JOB_TIMEOUT)
    who.assert_not_reloaded()


def watch_the_log_grow(who: Visitor) -> None:
    count = who.page.locator("ty-log [data-count]")
    who.tab("Logs")
    who.mark()
    expect(count).to_have_text(SOME, timeout=JOB_TIMEOUT)
    count_before = count.inner_text()
    expect(count).not_to_have_text(count_before, timeout=JOB_TIMEOUT)
    who.assert_not_reloaded()
    who.see("job-logs")


def watch_it_end(who: Visitor) -> None:
    page = who.page
    who.mark()
    expect(page.locator(".ty-job-line .ty-state")).to_have_text("completed", timeout=JOB_TIMEOUT)
    expect(who.card("Candidates").locator("tbody tr")).not_to_have_count(0)
    expect(who.card("Trials").locator("tbody tr")).to_have_count(4)
    who.assert_not_reloaded()
    who.see("job")


def look_at_the_job(who: Visitor) -> None:
    page = who.page
    overview = page.url
    for tab in ("Trials", "Charts", "Evaluation", "System", "Artifacts", "Attempts", "Spec"):
        who.tab(tab)
        who.until_drawn()
        if tab not in LOOKED_AT_ELSEWHERE:
            who.see(f"job-{tab.lower()}")
    page.goto(overview)
    who.follow(who.card("Trials").locator("a[data-open]").first)
    expect(page.locator("ty-curves .ty-chart-note").first).to_have_text(OF_SOME_POINTS)
    who.see("trial")
    who.go("Jobs")
    who.see("jobs")


def look_at_the_experiment(who: Visitor) -> None:
    who.go("Experiments")
    who.see("experiments")
    who.go("Experiments", "Flowers by hand")
    who.see("experiment")
