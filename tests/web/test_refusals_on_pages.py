"""A refusal stays on the page with its reason, in the words of the page."""

import importlib.util
import json
from typing import Any

import pytest
from django.test import Client

from jobs.errors import BadInput, Conflict
from jobs.models import Job
from jobs.spec.problems import Problem
from tests.markup import text_of
from tests.people import People, browser_of
from tests.present import present
from webapp.templatetags import problem_labels
from webapp.templatetags.problem_labels import message_of, plain_message

pytestmark = pytest.mark.django_db


def parts(page: str) -> tuple[str, str]:
    """Return the refusals and the notices of a page; scripts make more of the template."""
    refusals = page.split('<div id="refusals"')[1].split("<template>")[0]
    return refusals, page.split('<div id="toasts"')[1].split("</body>")[0]


def refused(browser: Client, address: str, entries: dict[str, Any], page: str) -> tuple[str, str]:
    answer = browser.post(address, entries, follow=True, HTTP_REFERER=f"http://testserver{page}")
    return parts(answer.content.decode())


def test_a_refused_button_leaves_its_reason_on_the_page(browser: Client, search: Job) -> None:
    refusals, toasts = refused(browser, f"/jobs/{search.pk}/retry", {}, f"/jobs/{search.pk}")
    assert "running; only a final one can be retried" in refusals
    assert 'role="alert"' in refusals and 'tabindex="-1"' in refusals and "data-dismiss" in refusals
    assert f'data-at="/jobs/{search.pk}/retry#"' in refusals
    assert 'class="ty-toast"' not in toasts


def test_a_refused_field_is_named_with_its_reason(browser: Client, search: Job) -> None:
    refusals, _ = refused(browser, f"/queue/{search.pk}/change", {"priority": "1000"}, "/queue")
    assert "Priority: " in refusals and "100" in refusals
    assert "The input is invalid" not in refusals
    assert f'data-at="/queue/{search.pk}/change#priority"' in refusals


def test_a_success_is_a_notice_that_vanishes(browser: Client, search: Job) -> None:
    refusals, toasts = refused(browser, f"/queue/{search.pk}/change", {"priority": "60"}, "/queue")
    assert 'class="ty-toast"' in toasts
    assert "priority 50" in toasts and "priority 50" not in refusals


def test_a_refused_change_of_a_part_has_the_words_of_the_page(people: People, search: Job) -> None:
    answer = browser_of(people.owner).post(
        f"/queue/{search.pk}/change", {"priority": "1000"}, headers={"HX-Request": "true"}
    )
    [notice] = json.loads(answer["HX-Trigger"])["toast"]
    assert answer.status_code == 422
    assert notice["level"] == "error" and notice["text"].startswith("Priority: ")


def test_an_error_page_has_no_code(browser: Client) -> None:
    answer = browser.get("/jobs/123456")
    assert answer.status_code == 404
    assert "There is no job 123456." in text_of(answer)
    assert "not_found" not in text_of(answer)


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("Raise max_trials, or wait", "Raise “Trials, at most”, or wait"),
        ("Raise after.retrain.epochs_cap", "Raise “epochs, at most”"),
        ("fit.batch_size 5 does not divide", "“Batch size” 5 does not divide"),
        ("Raise resources.memory_gib.", "Raise “Memory cap (GiB)”."),
        ("column 'max_trials' has no value", "column 'max_trials' has no value"),
        ("val_loss is infinite", "val_loss is infinite"),
        ("fit() got batch_size", "fit() got batch_size"),
        ("train.py has no main", "train.py has no main"),
        ("use another seed (fit.seed), or", "use another seed, or"),
    ],
)
def test_a_message_has_labels_for_the_names_of_fields(message: str, shown: str) -> None:
    assert plain_message(message) == shown


def test_the_labels_do_not_depend_on_who_imported_the_form() -> None:
    spec = present(importlib.util.find_spec(problem_labels.__name__))
    fresh = importlib.util.module_from_spec(spec)
    present(spec.loader).exec_module(fresh)
    assert fresh.plain_message("Raise max_trials") == "Raise “Trials, at most”"


def test_a_refusal_names_the_labels_of_its_fields() -> None:
    several = [Problem("/spec/fit/epochs", "is 0"), Problem("/spec/fit/seed", "is 1.5")]
    error = BadInput("/spec/fit/epochs: is 0; and 1 more", several)
    assert message_of(error) == "Epochs: is 0; and 1 more"
    assert message_of(Conflict("job 5 is running")) == "Job 5 is running"
