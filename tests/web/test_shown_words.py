"""Kinds, states, gates and audited actions have words; a test in a browser looks for them on all pages."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from jobs.actions.registry.releases import Change
from jobs.actions.runs.control import VERBS
from jobs.kinds import KINDS, titles_by_public_name
from jobs.messages.environments import EnvironmentState
from jobs.models import DatasetVersion, Deletion, ModelVersion, PromotionRequest, Worker
from jobs.queries.registry.gates import gate_title
from jobs.states import AttemptState, JobState, Outcome, TrialState
from tests.people import browser_of
from tests.web.long_contents import METRICS, MODEL, make_long_contents
from tests.web.test_stranger import body_of
from webapp.templatetags.audit_words import ACTION_WORDS, DELETION_VERBS
from webapp.templatetags.states import LOOKS

ROOT = Path(__file__).resolve().parents[2]
CODE = {"code", "pre", "script", "style", "template", "textarea", "kbd"}
"""Elements whose text may be code."""
EMPTY = {"area", "br", "col", "hr", "img", "input", "link", "meta", "source", "wbr"}
NAME_OF_CODE = re.compile(r"[A-Za-z0-9]+(?:_[A-Za-z0-9]+)+")
NAMES_OF_PEOPLE = {MODEL, *METRICS}
NAMES_OF_LIBRARIES = re.compile(r"(val|sparse|categorical|build|learning|mixed|batch_size|load_data)_?")


class ShownText(HTMLParser):
    """Collects a page's texts and labels outside elements of code."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in EMPTY:
            self.open.append(tag)
        self.texts += [text for name, text in attrs if name in ("aria-label", "placeholder") and text]

    def handle_endtag(self, tag: str) -> None:
        while tag in self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if not CODE.intersection(self.open):
            self.texts.append(data)


def names_of_code(page: str) -> set[str]:
    """Return the words with an underscore that a page shows, but for names that people gave."""
    text = " ".join(ShownText(page).texts)
    for name in sorted(NAMES_OF_PEOPLE, key=len, reverse=True):
        text = text.replace(name, "")
    return {word for word in NAME_OF_CODE.findall(text) if not NAMES_OF_LIBRARIES.match(word)}


def test_a_shown_name_of_code_is_found() -> None:
    assert names_of_code("<p>split_overview <code>a_b</code></p><input aria-label='dry_run'>") == {
        "split_overview",
        "dry_run",
    }


def test_kinds_with_one_name_in_rest_have_one_title() -> None:
    titles = titles_by_public_name()
    assert {titles[facts.public_name] for facts in KINDS.values()} == {
        facts.title for facts in KINDS.values()
    }
    assert not [title for title in titles.values() if "_" in title]


def test_every_state_has_an_icon_a_colour_and_a_word() -> None:
    states = (JobState, TrialState, AttemptState, Outcome, EnvironmentState)
    of_rows = (DatasetVersion.State, ModelVersion.State, PromotionRequest.State, Worker.State)
    assert not {str(state) for known in (*states, *of_rows) for state in known} - LOOKS.keys()
    assert not [look.word for look in LOOKS.values() if "_" in look.word]


def test_every_gate_has_a_title() -> None:
    source = (ROOT / "workers/engine/tasks/gate.py").read_text()
    named = re.search(r"AFTER_LOADING = \((.*?)\)", source)
    assert named is not None
    names = [*re.findall(r'"(\w+)"', named[1]), "loads", "digest", "floor:f1_macro", "slice:city:Rome"]
    assert not [name for name in names if gate_title(name) == name]


def test_every_action_of_the_audit_log_has_words() -> None:
    recorded = re.compile(r'(?:audit\.record\(\s*|audited_as=|_record_outcome\(\w+, )"([a-z_.]+)"')
    actions = {
        action
        for folder in ("jobs", "webapp", "workers")
        for file in (ROOT / folder).rglob("*.py")
        for action in recorded.findall(file.read_text())
    }
    assert len(actions) > 60
    actions |= {f"job.{verb}" for verb in VERBS.values()}
    actions |= {f"release.{kind}" for kind in Change.__annotations__["kind"].__args__}
    actions |= {f"{kind}.{verb}" for kind in Deletion.Kind for verb in DELETION_VERBS}
    assert not actions - ACTION_WORDS.keys()


@pytest.mark.django_db
def test_the_audit_log_is_filtered_by_actions_in_words() -> None:
    contents = make_long_contents()
    browser = browser_of(contents.people.administrator)
    page = body_of(browser.get("/audit", {"action": "experiment.mesh_estimate"}))
    assert page.count("<td title=") == page.count('<td title="experiment.mesh_estimate"') == 1
    assert re.search(r'value="experiment.mesh_estimate"\s+selected', page)
    assert re.search(r'value="worker."\s+selected', body_of(browser.get("/audit", {"action": "worker."})))
    # An address with another beginning keeps it.
    assert re.search(r'value="wor"\s+selected', body_of(browser.get("/audit", {"action": "wor"})))
