"""The dialog before work starts: its plan, what repeats, and the registration, which is off for repeats."""

from typing import Any

import pytest
from django.contrib.messages import get_messages
from django.test import Client

from jobs.models import Experiment, Job
from jobs.queries.runs import steps
from tests.factories import SEARCH, make_dataset, make_experiment, make_job, make_trials
from tests.markup import text_of
from tests.people import People, browser_of
from tests.present import present

WIDE = [{"name": "units", "kind": "int", "min": 16, "max": 256, "step": 16}]
REGISTERED: dict[str, Any] = SEARCH | {
    "search": SEARCH["search"] | {"space": WIDE},
    "after": {"retrain": {}, "register": {"model": "digits"}},
}
HX = {"HX-Request": "true"}


@pytest.fixture
def ended(people: People) -> Job:
    """A completed search whose experiment registers its best model."""
    make_dataset("digits", by=people.owner)
    experiment = make_experiment(project=people.project, by=people.owner, spec=REGISTERED)
    job = make_job(experiment=experiment, by=people.owner, state="completed")
    make_trials(job, 4)
    return job


@pytest.fixture
def browser(people: People) -> Client:
    return browser_of(people.owner)


def test_run_again_first_says_what_would_run(browser: Client, ended: Job) -> None:
    page = browser.get(f"/jobs/{ended.pk}/clone")
    words = text_of(page)
    assert "4 trials × 2 trainings" in words and "one retraining" in words
    assert "Expected time" in words and "free)" in words
    assert f"Same seeds and data as job {ended.pk}: the same result." in words
    assert Job.objects.count() == 1, "nothing has started"


def test_the_dialog_is_the_middle_of_the_page(browser: Client, ended: Job) -> None:
    dialog = browser.get(f"/jobs/{ended.pk}/clone", headers=HX).content.decode()
    assert 'id="start-title"' in dialog and "<html" not in dialog
    assert (
        f'href="/p/{present(ended.project).slug}/experiments/{ended.experiment_id}/edit?job={ended.pk}"'
        in dialog
    )


@pytest.mark.parametrize(
    ("entries", "registers"), [({"asked": "1"}, False), ({"asked": "1", "register": "on"}, True)]
)
def test_a_repeat_registers_only_if_it_is_asked_to(
    browser: Client, ended: Job, entries: dict[str, str], registers: bool
) -> None:
    page = browser.get(f"/jobs/{ended.pk}/clone").content.decode()
    assert 'name="register" checked' not in " ".join(page.split())
    browser.post(f"/jobs/{ended.pk}/clone", entries)
    again = Job.objects.latest("pk")
    assert again.revision == ended.revision
    assert ("register" in steps.steps_of(again)) == registers


def test_the_first_run_of_an_experiment_registers_what_it_says(browser: Client, people: People) -> None:
    make_dataset("digits", by=people.owner)
    experiment = make_experiment(project=people.project, by=people.owner, spec=REGISTERED)
    address = f"/p/{people.project.slug}/experiments/{experiment.pk}/submit"
    page = browser.get(address)
    assert page.context["is_registered"] and not page.context["sameness"]
    browser.post(address)
    assert "register" in steps.steps_of(Job.objects.latest("pk"))
    assert not browser.get(address).context["is_registered"], "it would be a repeat now"


def test_newer_data_are_not_called_the_same(browser: Client, ended: Job, people: People) -> None:
    spec = REGISTERED | {"data": {"dataset": "digits"}}
    present(ended.experiment).revisions.update(spec_json=spec)
    older = make_dataset("other", by=people.owner).versions.get()
    Job.objects.filter(pk=ended.pk).update(payload_json={"dataset_version": older.pk})
    page = browser.get(f"/jobs/{ended.pk}/clone")
    assert "Other data: it reads digits v1" in page.context["sameness"]
    assert not page.context["is_same"]


def test_the_best_two_are_trained_again_after_their_plan_was_seen(browser: Client, ended: Job) -> None:
    page = browser.get(f"/jobs/{ended.pk}/repeat")
    assert page.context["sameness"].startswith("New seeds")
    assert dict(page.context["figures"])["Runs"].startswith("2 trials ×")
    assert not page.context["model"], "it registers nothing"


def test_a_smaller_range_can_be_edited_first(browser: Client, ended: Job) -> None:
    page = browser.get(f"/jobs/{ended.pk}/narrow")
    assert page.context["may_draft"] and page.context["model"] == "digits"
    answer = browser.post(f"/jobs/{ended.pk}/narrow", {"do": "draft"})
    draft = Experiment.objects.latest("pk")
    assert answer["Location"].endswith(f"/experiments/{draft.pk}/edit")
    assert draft.draft is not None and not draft.jobs.exists()


def test_an_ensemble_names_its_trials_before_it_trains_them(browser: Client, ended: Job) -> None:
    page = browser.get(f"/jobs/{ended.pk}/ensemble?trials=1,2")
    assert dict(page.context["figures"])["Runs"] == "2 retrainings, then one ensemble"
    assert page.context["fields"] == {"trials": ["1", "2"]}


def test_a_refused_choice_is_said_on_the_page_of_its_address(browser: Client, ended: Job) -> None:
    assert browser.get(f"/jobs/{ended.pk}/ensemble?trials=1").status_code == 422


def test_a_refused_choice_leads_back_to_its_field(browser: Client, ended: Job) -> None:
    page = f"http://testserver/jobs/{ended.pk}?tab=trials"
    answer = browser.get(f"/jobs/{ended.pk}/ensemble?trials=1", headers={"Referer": page})
    assert (answer.status_code, answer["Location"]) == (303, f"/jobs/{ended.pk}?tab=trials")
    assert browser.get(f"/jobs/{ended.pk}/ensemble?trials=1", headers=HX).status_code == 204, "no dialog"
    (message,) = get_messages(answer.wsgi_request)
    assert message.extra_tags.startswith(f"/jobs/{ended.pk}/ensemble#trials")


def test_settings_with_a_problem_cannot_be_started(browser: Client, ended: Job) -> None:
    spec = REGISTERED | {"data": {"dataset": "gone"}}
    present(ended.experiment).revisions.update(spec_json=spec)
    page = browser.get(f"/jobs/{ended.pk}/clone").content.decode()
    assert "gone" in page and "disabled" in page


def test_a_retraining_that_was_done_before_is_named(browser: Client, ended: Job) -> None:
    address = f"/jobs/{ended.pk}/trials/2/train"
    assert not browser.get(address).context["sameness"]
    browser.post(address)
    done = Job.objects.latest("pk")
    Job.objects.filter(pk=done.pk).update(state="completed")
    assert (
        browser.get(address).context["sameness"] == f"Same seeds and data as job {done.pk}: the same result."
    )


def test_the_form_opens_with_the_settings_of_a_job(browser: Client, ended: Job) -> None:
    experiment = present(ended.experiment)
    experiment.draft = {"fit": {"epochs": 77}}
    experiment.save(update_fields=["draft"])
    address = f"/p/{experiment.project.slug}/experiments/{experiment.pk}/edit"
    assert "77" in browser.get(address).context["entries"]["spec"]
    page = browser.get(f"{address}?job={ended.pk}")
    assert "77" not in page.context["entries"]["spec"]
    assert f"These are the settings of job {ended.pk} (revision 1)." in text_of(page)
    assert "There is also an unsubmitted draft , which saving replaces." in text_of(page)
