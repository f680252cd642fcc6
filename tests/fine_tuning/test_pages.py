"""The form and the pages for fine-tuning."""

import json
import re
from typing import Any

import pytest

from jobs.models import ModelVersion, Project
from jobs.spec.experiment import ExperimentSpec
from tests.datasets.making import bundle
from tests.fine_tuning.making import DIGITS, make_version, tuned
from tests.markup import text_of
from tests.people import People, browser_of


@pytest.fixture
def version(people: People) -> ModelVersion:
    bundle()
    return make_version(project=people.project, by=people.owner)


def form(people: People, address: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a form's spec and context."""
    page = browser_of(people.member).get(address).content.decode()
    spec = re.search(r'name="spec"[^>]*>(.*?)</textarea>', page, re.DOTALL)
    context = re.search(r'id="form-context"[^>]*>(.*?)</script>', page, re.DOTALL)
    assert spec is not None
    assert context is not None
    return json.loads(spec.group(1).replace("&quot;", '"')), json.loads(context.group(1))


def test_the_page_of_a_version_leads_to_a_form_that_begins_with_it(
    people: People, version: ModelVersion
) -> None:
    page = browser_of(people.member).get("/models/digits/versions/1").content.decode()
    address = "/p/yard/experiments/new?base=digits%2F1"
    assert f'href="{address}#model"' in page
    assert "Fine-tune" not in browser_of(people.viewer).get("/models/digits/versions/1").content.decode()
    spec, _ = form(people, address)
    assert spec["model"]["model"] == "digits"
    assert spec["model"]["args"] == {"freeze_to": "none", "head": "keep", "learning_rate_factor": 0.1}
    assert [row["name"] for row in spec["search"]["space"]] == ["learning_rate_factor", "learning_rate"]
    assert ExperimentSpec.model_validate(spec)


def test_data_with_other_classes_begin_with_a_new_head_that_alone_is_trained(
    people: People, version: ModelVersion
) -> None:
    ModelVersion.objects.update(class_labels=["cat", "dog"])
    spec, _ = form(people, "/p/yard/experiments/new?base=digits/1")
    assert spec["model"]["args"] == {"freeze_to": "all", "head": "new", "learning_rate_factor": 0.1}


def test_the_form_offers_the_versions_that_the_user_may_see(people: People, version: ModelVersion) -> None:
    make_version(project=Project.objects.get(slug="elsewhere"), by=people.stranger, name="secret")
    _, context = form(people, "/p/yard/experiments/new")
    assert [base["name"] for base in context["baseVersions"]] == ["digits/1"]
    assert context["variants"]["/model/template"]["kinds"]["version"]["freeze_to"] == "none"
    spec, _ = form(people, "/p/yard/experiments/new?base=secret/1")
    assert spec["model"]["kind"] == "template"


def test_both_versions_name_each_other(people: People, version: ModelVersion) -> None:
    birds = make_version(project=people.project, by=people.owner, name="birds")
    source = {"model": "digits", "number": 1, "args": {"freeze_to": "dense_1", "head": "new"}}
    ModelVersion.objects.filter(pk=birds.pk).update(lineage={"fine_tuned_from": source})
    browser = browser_of(people.member)
    page = browser.get("/models/birds/versions/1")
    assert "fine-tuned from digits v1 frozen up to dense_1, new head" in text_of(page)
    assert b'href="/models/digits/versions/1"' in page.content
    assert "Fine-tuned from this version: birds v1" in text_of(browser.get("/models/digits/versions/1"))
    card = text_of(browser.get("/models/birds/versions/1?tab=card"))
    assert "Fine-tuned from digits v1 : frozen up to dense_1, new head." in card


def test_a_base_that_the_reader_may_not_see_has_no_link(people: People, version: ModelVersion) -> None:
    make_version(project=Project.objects.get(slug="elsewhere"), by=people.stranger, name="secret")
    source = {"model": "secret", "number": 1, "args": {}}
    ModelVersion.objects.filter(pk=version.pk).update(lineage={"fine_tuned_from": source})
    page = browser_of(people.member).get("/models/digits/versions/1")
    assert b'href="/models/secret/versions/1"' not in page.content


def test_the_layers_of_a_version_show_which_are_frozen(people: People, version: ModelVersion) -> None:
    frozen = tuple(layer.model_copy(update={"frozen": layer.name == "dense_1"}) for layer in DIGITS)
    make_version(project=people.project, by=people.owner, name="birds", graph=frozen)
    page = browser_of(people.member).get("/models/birds/versions/1?tab=model").content.decode()
    assert page.count("· frozen") == 1
    assert len(re.findall(r"dense_1\s+<span class=\"ty-tag\">frozen</span>", page)) == 1


def test_the_api_returns_the_lineage_and_the_plan(people: People, version: ModelVersion) -> None:
    browser = browser_of(people.member)
    body = {"project": "yard", "spec": tuned(args={"freeze_to": "all"})}
    answer = browser.post("/api/v1/experiments/validate", json.dumps(body), "application/json").json()
    assert answer["errors"] == []
    plan = answer["plan"]["fine_tuning"]
    assert (plan["version"], plan["trainable"]) == ("digits/1", 170)
    assert [layer["path"] for layer in plan["layers"] if layer["frozen"]] == [
        "normalize", "dense_1", "norm_1", "dense_2",
    ]  # fmt: skip
