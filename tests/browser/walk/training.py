"""Steps in which Ada watches a job without a reload, and opens its results."""

import re

from playwright.sync_api import expect

from tests.browser.visitor import Visitor

JOB_TIMEOUT = 1_800_000  # ms
SOME = re.compile(r"^[1-9]")
LOOKED_AT_ELSEWHERE = ("Trials", "Charts")
"""Tabs whose look is checked by `test_trial_choice.py` and `test_search_charts.py`."""
OF_SOME_POINTS = re.compile(r"^[1-9][\d,]* of [\d,]+ points")


def watch_it_run(user: Visitor) -> None:
    """Watch the trials on the page that opened with the job, and the log in another one."""
    page = user.page
    user.mark()
    log = Visitor(page.context.new_page(), user.look)
    log.page.goto(page.url)
    watch_the_log_grow(log)
    log.page.close()
    expect(user.card("Trials").locator("tbody tr").first).to_be_visible(timeout=JOB_TIMEOUT)
    expect(page.locator("ty-curves .ty-chart-note").first).to_have_text(OF_SOME_POINTS, timeout=JOB_TIMEOUT)
    user.assert_not_reloaded()


def watch_the_log_grow(user: Visitor) -> None:
    count = user.page.locator("ty-log [data-count]")
    user.tab("Logs")
    user.mark()
    expect(count).to_have_text(SOME, timeout=JOB_TIMEOUT)
    count_before = count.inner_text()
    expect(count).not_to_have_text(count_before, timeout=JOB_TIMEOUT)
    user.assert_not_reloaded()
    user.check_page("job-logs")


def watch_it_end(user: Visitor) -> None:
    page = user.page
    user.mark()
    expect(page.locator(".ty-job-line .ty-state")).to_have_text("completed", timeout=JOB_TIMEOUT)
    expect(user.card("Candidates").locator("tbody tr")).not_to_have_count(0)
    expect(user.card("Trials").locator("tbody tr")).to_have_count(4)
    user.assert_not_reloaded()
    user.check_page("job")


def look_at_the_job(user: Visitor) -> None:
    page = user.page
    overview = page.url
    for tab in ("Trials", "Charts", "Evaluation", "System", "Artifacts", "Attempts", "Spec"):
        user.tab(tab)
        user.until_drawn()
        if tab not in LOOKED_AT_ELSEWHERE:
            user.check_page(f"job-{tab.lower()}")
    page.goto(overview)
    user.follow(user.card("Trials").locator("a[data-open]").first)
    expect(page.locator("ty-curves .ty-chart-note").first).to_have_text(OF_SOME_POINTS)
    user.check_page("trial")
    user.go("Jobs")
    user.check_page("jobs")


def look_at_the_experiment(user: Visitor) -> None:
    user.go("Experiments")
    user.check_page("experiments")
    user.go("Experiments", "Flowers by hand")
    user.check_page("experiment")
