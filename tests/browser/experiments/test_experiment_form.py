"""The experiment form by mouse and keyboard: fields and JSON stay in sync, errors are at their fields."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, Response, expect

from jobs.models import DatasetVersion, Job, Membership
from jobs.spec.experiment import ExperimentSpec
from tests import own_code
from tests.browser.conftest import Watch
from tests.browser.looking import Look
from tests.datasets.making import bundle
from tests.factories import SEARCH, make_dataset, make_experiment, make_job, make_worker
from tests.people import People, browser_of

Open = Callable[..., Page]
FORM = "/p/yard/experiments/new"


@pytest.fixture
def data(people: People) -> dict[str, DatasetVersion]:
    return bundle()


@pytest.fixture
def form(people: People, data: dict[str, DatasetVersion], open_as: Open) -> Page:
    page = open_as(people.owner, FORM)
    settled(page, "ok")
    return page


def settled(page: Page, verdict: str) -> None:
    """Wait until the present spec has been validated."""
    expect(page.locator(f"#experiment-form[data-verdict={verdict}]")).to_be_attached()


def at(page: Page, pointer: str) -> Any:
    return page.locator(f'[id="at/spec{pointer}"]')


def spec(page: Page) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(page.locator(".ef-text").input_value())
    return body


def step(page: Page, name: str) -> None:
    page.get_by_role("navigation", name="Steps").get_by_role("link", name=name).click()


def add_hyperparameter(page: Page, name: str) -> None:
    """Add a row by typing its name, and wait until its values can be typed."""
    page.get_by_label("Add a hyperparameter").fill(name)
    page.locator(f'#add-names [data-name="{name}"]').click()
    expect(page.get_by_label("Add a hyperparameter")).to_have_value("")


def row(page: Page, place: int) -> Any:
    return at(page, f"/search/space/{place}")


def open_row(page: Page, place: int) -> Any:
    """Show the further fields of a hyperparameter."""
    row(page, place).get_by_role("button", name="More", exact=True).click()
    return row(page, place)


def test_a_warning_is_at_its_field_and_counted_in_the_bar_and_at_its_step(
    people: People, data: dict[str, DatasetVersion], open_as: Open, look: Look
) -> None:
    make_worker()  # its absence would be a warning, too
    page = open_as(people.owner, FORM)
    settled(page, "ok")
    expect(page.locator("[data-warning-list]")).to_be_hidden()
    at(page, "/search/executions_per_trial").evaluate("field => field.value = '1'")
    at(page, "/search/executions_per_trial").dispatch_event("input")
    bar = page.locator("[data-warning-list] summary")
    expect(bar).to_have_text("1 warning")
    expect(page.get_by_label("1 warning", exact=True)).to_be_visible()
    bar.click()
    page.locator("[data-warning-list] a").click()
    field = at(page, "/search/executions_per_trial")
    expect(field).to_be_focused()
    message = page.locator(f"[id='{field.get_attribute('aria-describedby')}']")
    expect(message).to_contain_text("a lucky seed can make a trial the best")
    assert field.get_attribute("aria-invalid") is None, "it may be submitted"
    look(page, "experiment-form-warning")
    field.fill("2")
    expect(page.locator("[data-warning-list]")).to_be_hidden()
    expect(message).to_have_count(0)


def test_a_check_that_met_a_busy_database_is_repeated_without_a_problem(form: Page, watch: Watch) -> None:
    page = form
    body = {"detail": "The database is busy or unreachable. Try again in a moment."}
    page.route(
        "**/api/v1/experiments/validate",
        lambda route: route.fulfill(status=503, headers={"Retry-After": "1"}, json=body),
        times=1,
    )
    step(page, "Training")
    with page.expect_response(lambda answer: answer.url.endswith("/validate") and answer.status == 200):
        at(page, "/fit/epochs").fill("7")
    settled(page, "ok")
    expect(page.locator("[data-problem-list]")).to_be_hidden()
    assert len(watch.errors) == 1, "it was refused once"
    watch.ignore("503")


def test_own_code_is_asked_for_only_where_it_is_the_template(form: Page) -> None:
    form.get_by_role("link", name="Model", exact=True).click()
    expect(form.get_by_role("group", name="Arguments")).to_be_visible()
    expect(form.locator("[data-own-code]")).to_be_hidden()
    proposed = spec(form)["data"]
    template = at(form, "/model/template")
    before = template.input_value()
    template.select_option(label="Own code")
    expect(form.locator("[data-own-code]")).to_be_visible()
    expect(form.get_by_role("group", name="Arguments")).to_be_hidden()
    assert "dataset" not in spec(form)["data"], "no person has chosen the one that is proposed for templates"
    step(form, "Data")
    expect(at(form, "/data/dataset").locator("option:checked")).to_have_text("Choose a data set")
    step(form, "Model")
    template.select_option(value=before)
    assert spec(form)["data"] == proposed
    step(form, "Data")
    at(form, "/data/dataset").select_option(label="iris")
    step(form, "Model")
    template.select_option(label="Own code")
    assert spec(form)["data"]["dataset"] == "iris"


def test_code_is_built_once_its_data_are_chosen_and_again_for_normalized_rows(
    people: People, data: dict[str, DatasetVersion], open_as: Open, look: Look
) -> None:
    api = browser_of(people.trainer)
    body = {"project": "yard", "files": [{"path": "model.py", "text": own_code.NOT_COMPILED}]}
    digest = api.post("/api/v1/code", body, content_type="application/json").json()["digest"]
    page = open_as(people.trainer, f"{FORM}?code={digest}&entry=build_model")
    settled(page, "bad")
    expect(page.locator("[data-problem-list]")).to_contain_text("1 problem to fix")
    step(page, "Model")
    expect(page.locator("[data-own-state]")).to_have_text(
        "The model is built once a data set is chosen, in the step Data."
    )
    look(page, "experiment-own-code")
    step(page, "Data")
    with page.expect_response("**/dry-builds") as first:
        at(page, "/data/dataset").select_option(label="digits")
    step(page, "Model")

    def is_normalized(answer: Response) -> bool:
        # The request for the first model is repeated until it is built.
        return answer.url.endswith("/dry-builds") and '"normalize":true' in (answer.request.post_data or "")

    with page.expect_response(is_normalized) as second:
        at(page, "/model/normalize").check()
    assert spec(page)["model"]["normalize"] is True
    assert first.value.json()["job"] != second.value.json()["job"]
    at(page, "/model/normalize").uncheck()
    assert "normalize" not in spec(page)["model"]


def test_overrides_are_not_offered_for_own_code_which_names_its_layers_itself(form: Page) -> None:
    overrides = form.get_by_role("group", name="Overrides")
    step(form, "Precision")
    expect(overrides).to_be_visible()
    overrides.get_by_role("button", name="Add override").click()
    assert len(spec(form)["precision"]["overrides"]) == 1
    step(form, "Model")
    at(form, "/model/template").select_option(label="Own code")
    assert "overrides" not in spec(form).get("precision", {}), "they would be refused"
    step(form, "Precision")
    expect(at(form, "/precision/policy")).to_be_visible()
    expect(overrides).to_be_hidden()


def test_a_failed_dry_build_is_named_at_its_entry_and_a_refusal_is_shown_on_a_narrow_screen(
    people: People, open_as: Open, watch: Watch, look: Look
) -> None:
    make_dataset("flowers", project=people.project, by=people.member)
    api = browser_of(people.trainer)
    files = [{"path": "model.py", "text": own_code.NOT_COMPILED}]
    body = {"project": "yard", "files": files}
    digest = api.post("/api/v1/code", body, content_type="application/json").json()["digest"]
    request = {"entry": "build_model", "data": {"dataset": "flowers"}}
    address = f"/api/v1/code/{digest}/dry-builds"
    build = Job.objects.filter(pk=api.post(address, request, content_type="application/json").json()["job"])
    build.update(state="failed", error={"code": "code_build", "message": "it returned nothing"})
    page = open_as(people.trainer, f"{FORM}?dataset=flowers&code={digest}&entry=build_model")
    settled(page, "bad")
    step(page, "Model")
    entry = at(page, "/model/entry").locator("..")
    expect(entry).to_contain_text("the dry build of this code failed: it returned nothing")
    expect(entry.get_by_role("link", name="Job")).to_have_attribute("href", f"/jobs/{build.get().pk}")
    look(page, "experiment-failed-build")
    # The role is taken away, and the cause of the failure was another one, while the form is open.
    build.update(state="stopped")
    page.set_viewport_size({"width": 390, "height": 844})
    at(page, "/fit/epochs").evaluate("e => e.dispatchEvent(new Event('input', {bubbles: true}))")
    settled(page, "ok")
    Membership.objects.filter(user=people.trainer).update(role="member")
    page.get_by_role("button", name="Submit").click()
    expect(page.get_by_role("alert")).to_be_in_viewport()
    expect(page.get_by_role("alert")).to_contain_text("takes one of these roles")
    watch.ignore("403")


def test_the_demo_search_is_built_and_submitted(form: Page, people: People) -> None:
    page = form
    page.locator("[name=name]").fill("digits by hand")
    step(page, "Model")
    at(page, "/model/args/layers").fill("2")
    step(page, "Training")
    at(page, "/fit/early_stopping/patience").fill("5")
    step(page, "Search space")
    at(page, "/search/algorithm").select_option(label="Bayesian optimization (Gaussian process)")
    at(page, "/search/max_trials").fill("12")
    add_hyperparameter(page, "optimizer")
    at(page, "/search/space/3/values").fill("rmsprop, adam")
    # by keyboard: the new row goes up to the first place, so that dropout may depend on it
    open_row(page, 3).get_by_role("button", name="Move up").focus()
    for _ in range(3):
        page.keyboard.press("Enter")
    assert spec(page)["search"]["space"][0]["name"] == "optimizer"
    open_row(page, 2).get_by_role("button", name="Add a condition").click()
    add_hyperparameter(page, "optimizer_args/momentum")
    momentum = open_row(page, 4)
    momentum.get_by_role("button", name="Add a condition").click()
    fitting = {"name": "optimizer", "in": ["rmsprop"]}
    assert spec(page)["search"]["space"][4]["when"] == fitting, "adam has no momentum"
    widths = [page.locator(part).bounding_box() for part in (".ef-fields", ".ef-json")]
    assert widths[0] and widths[1] and widths[0]["width"] > 1.5 * widths[1]["width"], "names are not cut"
    momentum.get_by_role("button", name="Remove", exact=True).click()
    at(page, "/search/space/2/when/name").select_option(label="optimizer")
    at(page, "/search/space/2/when/in").fill("adam")
    step(page, "Afterwards")
    page.get_by_label("Quantize", exact=True).check()
    page.get_by_label("Register versions").check()
    at(page, "/after/register/model").fill("digits")
    step(page, "Review")
    settled(page, "ok")
    facts = page.locator("[data-review=facts]")
    expect(facts).to_contain_text("search → train → ensemble → quantize → register")
    expect(facts).to_contain_text("continuous in learning_rate; a grid over it would use 560 points")
    built = spec(page)
    assert built["search"]["space"][2]["when"] == {"name": "optimizer", "in": ["adam"]}
    page.get_by_role("button", name="Submit").click()
    page.wait_for_url("**/jobs/*")
    job = Job.objects.get(kind="search")
    assert job.revision is not None
    assert job.revision.spec == ExperimentSpec.model_validate(built)
    assert job.experiment is not None
    assert job.experiment.name == "digits by hand"


def test_an_error_is_shown_at_its_field_in_the_json_and_in_the_summary(form: Page) -> None:
    page = form
    step(page, "Search space")
    field = at(page, "/search/space/0/range")
    for text, message in (
        ("512 … 128 step 16", "min 512 is above max 128"),
        ("16 … 12x", "max '12x' is not a number"),
    ):
        field.fill(text)
        expect(row(page, 0)).to_contain_text(message)
        expect(field).to_have_attribute("aria-invalid", "true")
        expect(field).to_have_value(text)
        expect(page.locator("#json-problems")).to_contain_text(message)
        expect(page.locator(".ef-gutter b")).to_have_count(1)
    assert spec(page)["search"]["space"][0]["range"] == "16 … 12x", "a draft keeps the typed text"
    step(page, "Data")
    page.get_by_role("button", name="Submit").click()
    expect(field).to_be_focused()
    page.get_by_text("1 problem to fix").click()
    page.get_by_role("link", name="search › space › 0 › range").first.click()
    field.fill("16..128 step 16")
    settled(page, "ok")
    expect(page.locator("#json-problems li")).to_have_count(0)
    page.keyboard.press("Tab")
    expect(field).to_have_value("16 … 128 step 16")
    fields = {"min": 16, "max": 128, "step": 16}
    assert spec(page)["search"]["space"][0] == {"name": "units", "kind": "int", **fields}


def test_seven_hyperparameters_fit_on_one_screen_and_are_added_by_keyboard(form: Page) -> None:
    page = form
    page.set_viewport_size({"width": 1280, "height": 900})
    step(page, "Search space")
    add = page.get_by_label("Add a hyperparameter")
    for name in ("batch_s", "optimizer", "clipno", "shuf"):
        add.focus()
        page.keyboard.type(name)
        page.keyboard.press("Enter")
    rows = spec(page)["search"]["space"]
    assert [each["name"] for each in rows[3:]] == ["batch_size", "optimizer", "clipnorm", "shuffle"]
    settled(page, "ok")
    assert page.locator(".es-table").evaluate("e => e.offsetHeight") <= 310
    add.fill("nothing like it")
    page.keyboard.press("Enter")
    expect(page.get_by_text("No hyperparameter of this model has such a name.")).to_be_visible()
    expect(add).to_have_value("nothing like it")


def test_a_switch_beside_a_field_searches_it_and_the_field_shows_the_range(form: Page) -> None:
    page = form
    step(page, "Training")
    field = page.locator("[data-field]", has=at(page, "/fit/batch_size"))
    switch = field.get_by_role("switch")
    switch.check()
    searched = field.get_by_role("link")
    expect(searched).to_have_text("32, 64, 128")
    expect(at(page, "/fit/batch_size")).to_be_hidden()
    assert spec(page)["search"]["space"][-1]["name"] == "batch_size"
    searched.click()
    expect(row(page, 3)).to_be_visible()
    at(page, "/search/space/3/values").fill("16, 32")
    step(page, "Training")
    expect(searched).to_have_text("16, 32")
    switch.uncheck()
    expect(at(page, "/fit/batch_size")).to_have_value("128")
    assert [each["name"] for each in spec(page)["search"]["space"]] == ["units", "dropout", "learning_rate"]
    settled(page, "ok")


def test_a_range_to_widen_is_marked(form: Page, people: People) -> None:
    experiment = make_experiment(project=people.project, by=people.owner, spec=SEARCH)
    form.goto(f"{form.url.partition('/p/')[0]}/p/yard/experiments/{experiment.pk}/edit?widen=units#search")
    expect(at(form, "/search/space/0/range")).to_be_focused()
    expect(row(form, 0)).to_contain_text("The best value was at a bound of this range")
    expect(form.locator(".es-marked")).to_have_count(1)


def test_fields_follow_the_json(form: Page) -> None:
    page = form
    body = spec(page)
    body["fit"]["epochs"] = 7
    body["search"]["space"] = [{"name": "shuffle", "kind": "boolean"}]
    del body["after"]
    page.locator(".ef-text").fill(json.dumps(body))
    settled(page, "ok")
    step(page, "Training")
    expect(at(page, "/fit/epochs")).to_have_value("7")
    step(page, "Search space")
    expect(page.locator('[data-row-of="space"]')).to_have_count(1)
    step(page, "Afterwards")
    expect(page.get_by_label("Retrain the best")).not_to_be_checked()


def test_a_search_learns_from_one_with_the_same_objective(
    people: People, data: dict[str, DatasetVersion], open_as: Open
) -> None:
    searches = [
        make_job(
            by=people.owner,
            experiment=make_experiment(
                project=people.project,
                by=people.owner,
                spec={
                    **SEARCH,
                    "search": {**SEARCH["search"], "objective": {"metric": metric, "direction": way}},
                },
            ),
        )
        for metric, way in (("val_accuracy", "max"), ("val_loss", "min"))
    ]
    page = open_as(people.owner, FORM)
    settled(page, "ok")
    step(page, "Search space")
    at(page, "/search/objective/metric").select_option(label="val_loss")
    page.get_by_text("More settings").click()
    options = at(page, "/search/warm_start").locator("option")
    expect(options).to_have_text(["none", re.compile(f"job {searches[1].pk}: ")])
    at(page, "/search/algorithm").select_option(label="Bayesian optimization (Gaussian process)")
    at(page, "/search/warm_start").select_option(index=1)
    assert spec(page)["search"]["warm_start"] == searches[1].pk
    settled(page, "ok")


def test_invalid_json_is_reported_with_its_line_and_keeps_the_fields(form: Page) -> None:
    page = form
    page.locator(".ef-text").fill('{"version": 1,\n "data": }')
    settled(page, "bad")
    expect(page.locator("#json-problems")).to_contain_text("line 2")
    step(page, "Training")
    expect(at(page, "/fit/epochs")).to_have_value("100")


def test_every_step_is_readable_in_both_themes_and_widths(form: Page, look: Look) -> None:
    # Data and the model are looked at in other tests, with more fields.
    for name in ("Search space", "Precision", "Review"):
        step(form, name)
        look(form, f"experiment-form-{name.lower().replace(' ', '-')}")


def test_a_policy_is_chosen_cast_and_compared_on_its_card(form: Page, look: Look) -> None:
    step(form, "Precision")
    card = form.get_by_role("article", name="mixed_bfloat16")
    card.get_by_role("button", name="Choose").click()
    assert spec(form)["precision"]["policy"] == "mixed_bfloat16"
    expect(card).to_have_class(re.compile("np-chosen"))
    expect(form.get_by_role("article", name="float16", exact=True).get_by_role("button")).to_have_count(1)
    form.get_by_role("article", name="float16", exact=True).get_by_role("button").click()
    assert spec(form)["after"]["quantize"] == {"mode": "float16"}
    settled(form, "ok")
    card.get_by_role("button", name="Compare with float32").click()
    expect(card.locator("[data-dry-run]")).to_contain_text("Comparing (job")
    look(form, "experiment-precision")
    job = Job.objects.get(title="Dry run in mixed_bfloat16")
    Job.objects.filter(pk=job.pk).update(state="failed", error={"code": "x", "message": "no rows"})
    expect(card.locator("[data-dry-run]")).to_contain_text("failed: no rows")
