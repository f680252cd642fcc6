"""The forms on a search's page: configurations that are queued by hand, and changes while it runs."""

import re

import pytest
from django.test import Client
from django.utils.html import escape

from jobs.models import Job
from tests.factories import (
    make_trials,
)
from tests.people import People
from tests.web.searches import DROPOUT, OPTIMIZER, searching


@pytest.mark.parametrize("value", ["32", "many"])
def test_queueing_into_a_search_that_has_ended_leads_back_to_its_trials(
    browser: Client, search: Job, value: str
) -> None:
    Job.objects.filter(pk=search.pk).update(state="completed")
    answer = browser.post(f"/jobs/{search.pk}/trials", {"value-units": value}, follow=True)
    assert answer.redirect_chain == [(f"/jobs/{search.pk}?tab=trials", 303)]
    assert 'data-level="error"' in answer.content.decode()


def test_a_change_to_a_search_that_has_ended_leads_back_to_its_page(
    browser: Client, wide_search: Job
) -> None:
    typed = REVISED | {"revise-revision": "1", "revise-max_trials": "9"}
    Job.objects.filter(pk=wide_search.pk).update(state="completed")
    answer = browser.post(f"/jobs/{wide_search.pk}/revise", typed, follow=True)
    assert answer.redirect_chain == [(f"/jobs/{wide_search.pk}", 303)]
    assert 'data-level="error"' in answer.content.decode()


def test_a_configuration_is_queued_by_hand(browser: Client, search: Job) -> None:
    answer = browser.post(f"/jobs/{search.pk}/trials", {"value-units": "48"})
    assert (answer.status_code, answer["Location"]) == (303, f"/jobs/{search.pk}?tab=trials")
    assert search.trials.get(number=3).values == {"units": 48}


def test_an_invalid_configuration_is_shown_again_with_every_error_at_its_field(
    browser: Client, wide_search: Job
) -> None:
    typed = {"value-units": "abc", "value-dropout": "9", "value-optimizer": "sgd"}
    answer = browser.post(f"/jobs/{wide_search.pk}/trials", typed)
    form = answer.context["trial_form"]
    assert answer.status_code == 422
    assert form.errors == {
        "units": ["'abc' is not a whole number. Enter one from 16 to 64."],
        "dropout": ["9 is out of range. Enter a number from 0.0 to 0.5."],
    }
    page = answer.content.decode()
    assert all(escape(text) in page for texts in form.errors.values() for text in texts)
    assert 'value="abc"' in page
    assert 'value="9"' in page
    assert '<option value="sgd" selected>' in page
    assert not wide_search.trials.exists()


@pytest.mark.parametrize(
    ("name", "typed", "message"),
    [
        ("units", "", "Enter a whole number from 16 to 64."),
        ("units", "16.5", "'16.5' is not a whole number. Enter one from 16 to 64."),
        ("dropout", "nan", "nan is out of range. Enter a number from 0.0 to 0.5."),
        ("optimizer", "abacus", "'abacus' is not a value of this hyperparameter. Choose one of adam, sgd."),
    ],
)
def test_the_error_of_an_invalid_value_names_the_allowed_ones(
    browser: Client, wide_search: Job, name: str, typed: str, message: str
) -> None:
    good = {"value-units": "16", "value-dropout": "0.5", "value-optimizer": "adam"}
    answer = browser.post(f"/jobs/{wide_search.pk}/trials", good | {f"value-{name}": typed})
    assert answer.context["trial_form"].errors == {name: [message]}


def test_an_inactive_hyperparameter_is_ignored(browser: Client, people: People) -> None:
    child = {**DROPOUT, "when": {"name": "optimizer", "in": ["sgd"]}}
    job = searching(people, [OPTIMIZER, child])
    browser.post(f"/jobs/{job.pk}/trials", {"value-optimizer": "adam", "value-dropout": "9"})
    assert job.trials.get().values == {"optimizer": "adam"}


def test_reloading_an_invalid_configuration_redirects_to_the_trials(browser: Client, search: Job) -> None:
    answer = browser.get(f"/jobs/{search.pk}/trials", {"sort": "score"})
    assert (answer.status_code, answer["Location"]) == (303, f"/jobs/{search.pk}?tab=trials&sort=score")


CHANGED = {"revise-revision": "1", "revise-max_trials": "9", "revise-max_consecutive_failures": "3"}


REVISED = CHANGED | {
    "revise-units:min": "16",
    "revise-units:max": "64",
    "revise-dropout:min": "0.0",
    "revise-dropout:max": "0.5",
    "revise-optimizer:values": ["sgd", "adam"],
}


def test_a_search_is_changed_in_its_dialog(browser: Client, wide_search: Job) -> None:
    page = browser.get(f"/jobs/{wide_search.pk}").content.decode()
    assert 'data-dialog="revise"' in page and 'value="4"' in page, "it shows the present values"
    typed = CHANGED | {
        "revise-units:min": "16",
        "revise-units:max": "32",
        "revise-dropout:min": "0.0",
        "revise-dropout:max": "0.5",
        "revise-optimizer:values": ["sgd"],
        "revise-comment": "adam diverges",
    }
    preview = browser.post(f"/jobs/{wide_search.pk}/revise/preview", typed).content.decode()
    assert "Trials, at most: 9, previously 4" in preview and "optimizer takes &#x27;sgd&#x27;" in preview
    assert wide_search.experiment is not None and wide_search.experiment.revisions.count() == 1
    answer = browser.post(f"/jobs/{wide_search.pk}/revise", typed)
    assert (answer.status_code, answer["Location"]) == (303, f"/jobs/{wide_search.pk}")
    wide_search.refresh_from_db()
    assert wide_search.revision is not None and wide_search.revision.reason == "adam diverges"
    search = wide_search.revision.spec.search
    assert search is not None and [list(search.space[i].grid()) for i in (0, 2)] == [[16, 32], ["sgd"]]
    late = browser.post(f"/jobs/{wide_search.pk}/revise", typed | {"revise-max_trials": "12"})
    assert late.status_code == 409


def test_an_invalid_change_is_shown_again_in_the_dialog_at_its_field(browser: Client, search: Job) -> None:
    answer = browser.post(
        f"/jobs/{search.pk}/revise", CHANGED | {"revise-units:min": "0", "revise-units:max": "64"}
    )
    assert answer.status_code == 422 and "data-open-now" in answer.content.decode()
    assert list(answer.context["revise_form"].errors) == ["units:min"]


def test_all_problems_of_a_change_are_shown_with_the_name_of_their_hyperparameter(
    browser: Client, wide_search: Job
) -> None:
    make_trials(wide_search, 4)
    typed = {"revise-max_trials": "3", "revise-units:max": "400", "revise-dropout:max": "abc"}
    problems = [
        "Trials, at most: 4 trials have already been created: use at least this number",
        "units, to: 400 is above 64, the maximum of &#x27;units&#x27;",
        "dropout, to: Enter a number.",
    ]
    preview = browser.post(f"/jobs/{wide_search.pk}/revise/preview", REVISED | typed).content.decode()
    assert [line in preview for line in problems] == [True] * 3
    answer = browser.post(f"/jobs/{wide_search.pk}/revise", REVISED | typed)
    page = re.sub("<[^>]*>", "", answer.content.decode())
    assert [line in page for line in problems] == [True] * 3
    assert "3 problems to fix" in page and "Nothing has changed yet" in page
