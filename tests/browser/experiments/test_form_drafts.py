"""Drafts that the browser keeps of the forms of scripts and of *Find a good model*."""

from collections.abc import Callable

from django.core.files.uploadedfile import SimpleUploadedFile
from playwright.sync_api import Page, expect

from jobs.models import CodeVersion, Experiment, Job
from tests.browser.looking import Look
from tests.code.making import zipped
from tests.datasets.making import bundle
from tests.people import People, browser_of
from tests.present import present

Open = Callable[..., Page]
SCRIPT = """import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--optimizer", choices=["sgd", "adam"], default="sgd")
parser.parse_args()
x = {number}
"""
KEPT = "Object.keys(localStorage).filter(key => key.startsWith('trainyard-draft'))"


def code_version(people: People, number: int) -> str:
    """Store a version of code with a script, and return the address of the form that runs it."""
    file = SimpleUploadedFile("net.zip", zipped({"train.py": SCRIPT.format(number=number)}))
    browser_of(people.trainer).post("/code/new", {"project": "yard", "file": file})
    version = CodeVersion.objects.latest("pk")
    return f"/p/yard/code/{version.digest}/run?entry=train.py"


def kept_after_typing(page: Page) -> None:
    """Reload the page once the browser has kept a draft, and confirm that entries would be lost."""
    page.wait_for_function(f"() => {KEPT}.length")
    page.reload()


def test_the_form_of_a_script_is_restored_with_its_added_rows_for_the_same_code_alone(
    people: People, open_as: Open, look: Look
) -> None:
    first, other = code_version(people, 1), code_version(people, 2)
    page = open_as(people.trainer, first)
    page.on("dialog", lambda dialog: dialog.accept())
    row = page.get_by_role("group", name="Argument 1, optimizer")
    row.get_by_label("Use").select_option(label="one value")
    row.get_by_label("Value", exact=True).select_option("adam")
    page.get_by_role("button", name="Add argument").click()
    added = page.get_by_role("group", name="Argument 2")
    added.get_by_label("Argument", exact=True).fill("rate")
    kept_after_typing(page)
    offer = page.locator("[data-draft-note]")
    expect(offer).to_contain_text("a draft of this form from just now")
    look(page, "script-form-draft")
    page.goto(other)
    expect(page.get_by_role("button", name="Add argument")).to_be_visible()
    expect(offer).to_be_hidden()
    page.goto(first)
    page.get_by_role("button", name="Restore the draft").click()
    expect(row.get_by_label("Value", exact=True)).to_have_value("adam")
    expect(added.get_by_label("Argument", exact=True)).to_have_value("rate")
    page.get_by_role("button", name="Save draft").click()
    page.wait_for_url("**/edit")
    assert page.evaluate(KEPT) == []
    draft = present(Experiment.objects.get().draft)
    assert draft["model"]["args"] == {"optimizer": "adam"}


def test_find_a_good_model_is_restored_with_the_objective_of_its_data(
    people: People, open_as: Open, look: Look
) -> None:
    bundle()
    page = open_as(people.owner, "/p/yard/find-model?dataset=digits&version=1")
    page.on("dialog", lambda dialog: dialog.accept())
    objective = page.get_by_label("Objective")
    expect(objective).to_have_value("val_accuracy")
    page.get_by_label("Data set").select_option("diabetes:1")
    expect(objective).to_have_value("val_loss")
    objective.select_option("val_r2")
    page.get_by_label("Register as").fill("sugar")
    kept_after_typing(page)
    expect(objective).to_have_value("val_accuracy")
    look(page, "find-model-draft")
    page.get_by_role("button", name="Restore the draft").click()
    expect(page.get_by_label("Data set")).to_have_value("diabetes:1")
    expect(objective).to_have_value("val_r2")
    page.get_by_role("button", name="Find a good model").click()
    page.wait_for_url("**/jobs/*")
    assert page.evaluate(KEPT) == []
    spec = present(Job.objects.get(kind="search").revision).spec
    assert present(spec.search).objective.metric == "val_r2"
    assert present(spec.after.register_).model == "sugar"
