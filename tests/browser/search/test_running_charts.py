"""The charts and the table of a search follow its running trials."""

from typing import Any

from playwright.sync_api import Locator, expect

from jobs.actions.runs import events
from jobs.models import Job, MetricSeries
from tests.browser.search.test_search_charts import Open, charts_of
from tests.people import People
from tests.seeded import seed_search


def running_row(people: People, open_as: Open) -> tuple[Job, Locator]:
    """Return a search whose second trial has trained two of five epochs, and that trial's row."""
    search = seed_search(people.project, by=people.owner, trials=2, executions=2, state="running")
    trial = search.trials.get(number=2)
    search.trials.filter(pk=trial.pk).update(state="running", score=None, finished=None)
    trial.executions.update(state="running", epochs=0, score=None)
    trial.series.update(last_x=2, attempt=trial.attempt)
    row = charts_of(search, people, open_as).locator("tr[data-trial='2']")
    expect(row).to_contain_text("epoch 2 of 5")
    return search, row


def append_epoch(search: Job, epoch: int) -> None:
    """Append a metric event for one epoch in the trial's first execution."""
    fields: dict[str, Any] = {"execution": 1, "x": "epoch", "points": [["val_loss", epoch, 0.2, 0.0]]}
    events.append(search.pk, [events.event("metric", search, trial=2, **fields)])


def test_the_table_follows_the_executions_of_a_running_trial_epoch_by_epoch(
    people: People, open_as: Open
) -> None:
    search, row = running_row(people, open_as)
    append_epoch(search, 4)
    expect(row).to_contain_text("2 at epochs 2 to 4 of 5")


def test_the_curves_of_a_trial_appear_with_its_first_epoch(people: People, open_as: Open) -> None:
    search = seed_search(people.project, by=people.owner, trials=2, state="running")
    trial = search.trials.get(number=2)
    search.trials.filter(pk=trial.pk).update(state="running", score=None, finished=None)
    series = list(trial.series.all())
    trial.series.all().delete()
    page = open_as(people.owner, f"/jobs/{search.pk}/trials/2")
    expect(page.get_by_text("No curves yet")).to_be_visible()
    MetricSeries.objects.bulk_create(series)
    events.append(search.pk, [events.event("execution", search, trial=2, execution=1, state="running")])
    expect(page.locator("ty-curves").first).to_be_attached()
    expect(page.get_by_text("No curves yet")).to_have_count(0)
