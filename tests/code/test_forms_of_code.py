"""The initial entries of the form for an experiment with code, and the texts on the page of the code."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from django.test import Client

from jobs.messages.code import CodeSearch
from tests.code.dry_builds import stored
from tests.factories import make_dataset, make_experiment
from tests.people import People, browser_of
from webapp.forms.experiments.described_search import with_search
from webapp.forms.experiments.experiment import start

BUILDER = "def build_model(hp):\n    return hp.Int('units', 1, 4)\n"


def form_of(browser: Client, **query: str) -> tuple[dict[str, Any], bool]:
    """Return the spec with which the form begins, and whether a person has chosen its data set."""
    context = browser.get("/p/yard/experiments/new", query).context
    return json.loads(context["entries"]["spec"]), context["browser_context"]["isDataChosen"]


def words_of(browser: Client, digest: str) -> str:
    return " ".join(browser.get(f"/code/{digest}?project=yard").content.decode().split())


def test_code_begins_without_data_that_nobody_has_chosen(people: People) -> None:
    browser = browser_of(people.trainer)
    make_dataset("digits", by=people.owner)
    make_dataset("flowers", project=people.project, by=people.member)
    make_dataset("animals", project=people.project, by=people.member)
    query = {"code": stored(browser, BUILDER), "entry": "build_model"}
    spec, is_chosen = form_of(browser, **query)
    # Any data set would be a guess, and the build for it fails.
    assert "dataset" not in spec["data"] and not is_chosen
    spec, is_chosen = form_of(browser, **query, dataset="flowers")
    assert (spec["data"]["dataset"], is_chosen) == ("flowers", True)
    assert "dataset" not in form_of(browser, **query, dataset="deleted")[0]["data"]
    # A template takes them as they are; code that is chosen in the form asks again.
    spec, is_chosen = form_of(browser)
    assert (spec["data"]["dataset"], is_chosen) == ("animals", False)


def test_code_begins_with_the_data_of_its_last_experiment_and_says_so(people: People) -> None:
    browser = browser_of(people.trainer)
    make_dataset("flowers", project=people.project, by=people.member)
    make_dataset("animals", project=people.project, by=people.member)
    used = stored(browser, BUILDER)
    model = {"kind": "code", "digest": used, "entry": "build_model"}
    spec = {"data": {"dataset": "flowers"}, "model": model}
    make_experiment(project=people.project, by=people.trainer, spec=spec)
    newer = stored(browser, BUILDER + "\nSIZE = 3\n")
    for digest in (used, newer):
        page = browser.get("/p/yard/experiments/new", {"code": digest, "entry": "build_model"}).context
        data = json.loads(page["entries"]["spec"])["data"]
        found = page["browser_context"]["lastUsed"], page["browser_context"]["isDataChosen"]
        assert (data["dataset"], *found) == ("flowers", "flowers", True)
    query = {"code": newer, "entry": "build_model", "dataset": "animals"}
    page = browser.get("/p/yard/experiments/new", query).context
    assert page["browser_context"]["lastUsed"] == ""


def test_the_form_says_that_code_gets_rows_as_they_are_unless_they_are_normalized(people: People) -> None:
    page = " ".join(browser_of(people.trainer).get("/p/yard/experiments/new").content.decode().split())
    assert "Off: the code gets the rows as they are, not normalized." in page
    assert 'id="at/spec/model/normalize"' in page


@pytest.mark.parametrize(
    ("given", "trials"),
    [
        ({"max_epochs": 10, "factor": 3}, 9 + 5 + 3),
        ({"max_epochs": 4, "factor": 2, "iterations": 2}, 2 * (4 + 3 + 3)),
        ({"max_epochs": 10, "factor": 3, "max_trials": 5}, 5),
        ({"factor": 1}, 10),
    ],
)
def test_a_hyperband_without_a_maximum_runs_all_its_brackets(given: Mapping[str, Any], trials: int) -> None:
    search = CodeSearch(path="model.py", line=1, tuner="Hyperband", **given)
    assert with_search(start.starting_spec("", None, None), search)["search"]["max_trials"] == trials


def test_a_file_with_a_syntax_error_is_not_said_to_have_nothing(people: People) -> None:
    browser = browser_of(people.trainer)
    page = words_of(browser, stored(browser, "def build_model(hp)\n    ...\n"))
    assert "The file could not be read as Python" in page and "Nothing that Trainyard knows" not in page
    assert "nothing that Trainyard" not in " ".join(browser.get("/code").content.decode().split())
    page = words_of(browser, stored(browser, "SIZE = 3\n"))
    assert "Nothing that Trainyard knows" in page


def test_a_search_names_the_button_only_where_it_is(people: People) -> None:
    text = f"!ls\n{BUILDER}tuner = kt.RandomSearch(build_model, 'val_loss', max_trials=4)\ntuner.search()\n"
    browser = browser_of(people.trainer)
    digest = stored(browser, text)
    # A line of a notebook prevents the use of the file before the definitions are kept.
    assert "<em>Start an experiment</em>" not in words_of(browser, digest)
    browser.post(f"/code/{digest}/definitions?project=yard")
    kept = browser.get("/code").context["rows"][0][0]
    assert "<em>Start an experiment</em>" in words_of(browser, kept.digest)
    assert "<em>Start an experiment</em>" not in words_of(browser_of(people.viewer), kept.digest)


def test_lines_that_compute_with_the_data_are_named_too(people: People) -> None:
    text = f"df = pd.read_csv('a.csv')\nX = df.drop(columns='kind')\ny = df['kind']\nSIZE = 3\n{BUILDER}"
    page = words_of(browser_of(people.trainer), stored(browser_of(people.trainer), text))
    for line in ("df = pd.read_csv(", "X = df.drop(", "y = df["):
        assert f'<code class="ty-grow">{line}' in page
    assert '<code class="ty-grow">SIZE' not in page
