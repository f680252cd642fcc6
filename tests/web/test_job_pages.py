"""A job's page and its tabs, without a browser."""

import re

import pytest
from django.test import Client
from django.utils.html import escape

from jobs.kinds import KINDS
from jobs.models import Job, MetricSeries
from tests.factories import (
    SEARCH,
    make_attempt,
    make_experiment,
    make_job,
    make_trials,
    make_worker,
)
from tests.markup import text_of
from tests.people import People, browser_of
from tests.present import present


@pytest.mark.parametrize("tab", [*KINDS["search"].tabs, "nonsense"])
def test_every_tab_is_shown_and_an_unknown_one_shows_the_overview(
    browser: Client, search: Job, tab: str
) -> None:
    assert browser.get(f"/jobs/{search.pk}", {"tab": tab}).status_code == 200


def test_a_step_that_does_not_train_has_no_empty_chart(browser: Client, people: People) -> None:
    experiment = make_experiment(project=people.project, by=people.owner)
    pages = {}
    for kind in ("train", "ensemble"):
        step = make_job(experiment=experiment, by=people.owner, kind=kind, state="completed")
        pages[kind] = browser.get(f"/jobs/{step.pk}").content.decode()
    assert [("<ty-curves" in page) for page in pages.values()] == [True, False]
    assert re.search(r"<ty-curves[^>]* final", pages["train"]), "nothing is awaited"


def test_a_button_that_is_refused_shows_the_reason_on_its_page(browser: Client, search: Job) -> None:
    Job.objects.filter(pk=search.pk).update(state="completed", desired="running")
    here = f"/jobs/{search.pk}/trials/1"
    answer = browser.post(f"{here}/again", headers={"referer": f"http://testserver{here}"})
    assert (answer.status_code, answer["Location"]) == (303, here)
    assert 'data-level="error"' in browser.get(here).content.decode()
    assert browser.post(f"{here}/again").status_code == 409, "without a page to return to"


def test_a_queued_search_shows_what_it_waits_for_and_no_empty_charts(people: People) -> None:
    experiment = make_experiment(project=people.project, by=people.owner)
    make_job(experiment=experiment, by=people.owner)
    search = make_job(experiment=experiment, by=people.owner, why_waiting="No worker runs in pool default.")
    browser = browser_of(people.owner)
    pages = {tab: browser.get(f"/jobs/{search.pk}", {"tab": tab}) for tab in ("overview", "charts")}
    assert "Number 2 in the queue : No worker runs in pool default." in text_of(pages["overview"])
    charts = ("<ty-history", "<ty-curves", "<ty-charts")
    assert not [chart for page in pages.values() for chart in charts if chart in page.content.decode()]
    make_trials(search, 1)
    pages = {tab: browser.get(f"/jobs/{search.pk}", {"tab": tab}) for tab in ("overview", "charts")}
    assert "<ty-history" in pages["overview"].content.decode()
    assert "<ty-charts" in pages["charts"].content.decode()


def test_a_paused_job_names_the_button_that_resumes_it(browser: Client, search: Job) -> None:
    search.trials.update(state="paused")
    Job.objects.filter(pk=search.pk).update(state="paused", desired="paused")
    page = text_of(browser.get(f"/jobs/{search.pk}"))
    assert "2 trials wait. Paused at the newest checkpoint; Resume continues from there." in page
    assert "requested:" not in page, "a request that was carried out"
    Job.objects.filter(pk=search.pk).update(state="running", desired="paused")
    assert "requested: paused" in text_of(browser.get(f"/jobs/{search.pk}"))


def test_a_cursor_of_another_list_is_refused(browser: Client) -> None:
    assert browser.get("/jobs", {"cursor": "x"}).status_code == 422


def test_an_error_page_links_to_the_page_before(people: People) -> None:
    viewer, settings = browser_of(people.viewer), "/p/yard/settings"
    answer = viewer.post(
        settings, {"name": "Mine"}, headers={"referer": "http://testserver/projects?a=1&b=2"}
    )
    assert answer.status_code == 403
    assert f'href="{escape("/projects?a=1&b=2")}"' in answer.content.decode()
    elsewhere = viewer.post(settings, {"name": "Mine"}, headers={"referer": "https://example.org/x"})
    assert "example.org" not in elsewhere.content.decode()


def test_the_system_tab_names_its_charts_in_words(people: People, search: Job, browser: Client) -> None:
    of_gpus = ("system/gpu1_memory_gib", "system/gpu0.1_load_percent", "system/gpu1_temperature_celsius")
    for name in ("system/cpu_percent", "system/data_wait_percent", "system/other", *of_gpus):
        MetricSeries.objects.create(job=search, attempt=1, name=name, x="second", count=0)
    text = text_of(browser.get(f"/jobs/{search.pk}", {"tab": "system"}))
    assert "CPU runner and its children; 100 % is one core; by seconds since the start" in text
    assert "Waiting for data percent of the time of an epoch's steps" in text
    assert "Memory of GPU 1 GiB in use, by anyone; by seconds since the start" in text
    assert "Load of GPU 0.1 percent" in text
    assert "Temperature of GPU 1 degrees Celsius" in text
    assert "system/cpu_percent" not in text
    assert "system/gpu1" not in text
    assert "system/other" in text


def test_the_record_of_an_attempt_is_shown_in_words(people: People, search: Job, browser: Client) -> None:
    attempt = make_attempt(search, make_worker())
    attempt.record = {"packages": {"jax": "0.12.0", "keras": "3.15.1"}, "devices": [{"id": 0, "kind": "cpu"}]}
    attempt.save()
    page = browser.get(f"/jobs/{search.pk}", {"tab": "attempts"})
    assert "jax 0.12.0, keras 3.15.1" in text_of(page)
    assert "{&#x27;" not in page.content.decode()


def test_finish_stop_and_pause_say_what_they_do(browser: Client, search: Job, people: People) -> None:
    present(search.experiment).revisions.update(
        spec_json=SEARCH | {"after": {"retrain": {"top": 2}, "quantize": {}}}
    )
    page = text_of(browser.get(f"/jobs/{search.pk}"))
    markup = browser.get(f"/jobs/{search.pk}").content.decode()
    assert "Finish with what we have" in page
    assert "the steps after the search run with the best trials so far: training, quantization." in markup
    assert "The later steps do not run: training, quantization." in markup
    assert "Runners write checkpoints and free their slots; Resume continues from there." in markup
    assert "Finish with what we have" not in text_of(browser_of(people.viewer).get(f"/jobs/{search.pk}"))
    answer = browser.post(f"/jobs/{search.pk}/finish")
    assert answer.status_code == 303
    search.refresh_from_db()
    assert search.payload.finishing
    assert "Finish with what we have" not in text_of(browser.get(f"/jobs/{search.pk}"))


def test_a_search_without_a_score_offers_no_finish(browser: Client, search: Job) -> None:
    search.trials.update(state="running", score=None)
    page = text_of(browser.get(f"/jobs/{search.pk}"))
    assert "Finish with what we have" not in page and "Best so far" not in page


def test_a_warning_begins_with_a_capital_letter_and_other_tabs_link_to_it(
    browser: Client, search: Job
) -> None:
    warnings = [{"code": "x", "message": "a long warning"}]
    Job.objects.filter(pk=search.pk).update(warnings=warnings)
    assert "A long warning" in text_of(browser.get(f"/jobs/{search.pk}"))
    logs = text_of(browser.get(f"/jobs/{search.pk}", {"tab": "logs"}))
    assert "long warning" not in logs and "1 note" in logs


def test_the_steps_of_one_kind_are_one_entry_with_a_link_to_each(people: People) -> None:
    after = {"retrain": {"top": 3}, "ensemble": {}, "register": {"model": "digits"}}
    experiment = make_experiment(project=people.project, by=people.owner, spec=SEARCH | {"after": after})
    search = make_job(experiment=experiment, by=people.owner, state="running")
    states = {"6": "completed", "12": "completed", "2": "running"}
    for ordinal, (number, state) in enumerate(states.items()):
        make_job(
            kind="train", parent=search, ordinal=ordinal, state=state, title=f"Retrain trial {number}",
            by=people.owner, project=people.project,
        )  # fmt: skip
    page = browser_of(people.owner).get(f"/jobs/{search.pk}")
    steps = text_of(page).split("Search completed")[1]
    assert (
        steps.split("Trials")[0].strip().startswith("Retrain trial 6 , 12 , 2 completed 2 running 1 Ensemble")
    )
    assert 'aria-label="Retrain trial 12"' in page.content.decode()


def test_waiting_is_one_line_that_is_always_there_and_no_notice(browser: Client, search: Job) -> None:
    address = f"/jobs/{search.pk}"
    cases = {
        ("queued", "queued"): "2 trials wait.",
        ("queued", "running"): "Trial 1 waits.",
        ("running", "running"): "Nothing waits.",
    }
    for states, words in cases.items():
        for number, state in enumerate(states, 1):
            search.trials.filter(number=number).update(state=state)
        page = browser.get(address)
        assert words in text_of(page)
        assert page.content.decode().count('<details class="ty-job-waits"') == 1
        assert "ty-note ty-job-why" not in page.content.decode()


def test_a_job_leads_to_its_project_and_experiment_on_every_tab_and_to_the_form(
    browser: Client, search: Job, people: People
) -> None:
    experiment = present(search.experiment)
    step = make_job(
        experiment=experiment, by=people.owner, kind="train", state="completed", parent=search,
        title="Retrain trial 1",
    )  # fmt: skip
    above = [people.project.name, experiment.name]
    for tab in ("overview", "trials", "logs", "attempts", "spec"):
        page = browser.get(f"/jobs/{search.pk}", {"tab": tab})
        assert [label for label, _ in page.context["crumbs"]] == [*above, f"Job {search.pk}"]
        assert f'href="/p/yard/experiments/{experiment.pk}/edit?job={search.pk}"' in page.content.decode()
    crumbs = browser.get(f"/jobs/{step.pk}").context["crumbs"]
    assert [label for label, _ in crumbs] == [*above, f"Job {search.pk}", "Retrain trial 1"]
    assert crumbs[1][1] == f"/p/yard/experiments/{experiment.pk}" and crumbs[2][1] == f"/jobs/{search.pk}"
    trial = browser.get(f"/jobs/{search.pk}/trials/1").context["crumbs"]
    assert [label for label, _ in trial] == [*above, f"Job {search.pk}", "Trial 1"]
    assert "Edit and run" not in text_of(browser_of(people.viewer).get(f"/jobs/{search.pk}"))


def test_the_spec_is_shown_in_words_before_its_json(browser: Client, search: Job) -> None:
    page = text_of(browser.get(f"/jobs/{search.pk}", {"tab": "spec"}))
    assert "Data dataset digits" in page and "Search space units" in page
    assert page.index("Search space") < page.index("The same as JSON")


def test_a_run_names_its_data_precision_and_mesh_on_the_pages_of_job_and_trial(people: People) -> None:
    mesh = {"shape": [2, 4], "axis_names": ["data", "model"], "simulate": 8}
    spec = {**SEARCH, "mesh": mesh, "precision": {"policy": "mixed_bfloat16"}}
    experiment = make_experiment("Meshed", project=people.project, by=people.owner, spec=spec)
    search = make_job(experiment=experiment, by=people.owner, state="running")
    make_trials(search, 1)
    training = make_job(experiment=experiment, by=people.owner, kind="train", state="completed")
    browser = browser_of(people.owner)
    for path in (f"/jobs/{search.pk}", f"/jobs/{search.pk}/trials/1", f"/jobs/{training.pk}"):
        page = text_of(browser.get(path))
        for words in ("Experiment Meshed, revision 1", "Data digits v1", "Precision mixed_bfloat16"):
            assert words in page, (path, words)
        assert "Mesh 2 × 4 (data × model), batches along data, 8 simulated devices" in page, path


def test_a_job_without_curves_has_no_tab_for_them(people: People) -> None:
    experiment = make_experiment(project=people.project, by=people.owner)
    has_tab = {}
    for kind in ("train", "ensemble", "register"):
        step = make_job(experiment=experiment, by=people.owner, kind=kind, state="completed")
        has_tab[kind] = "?tab=charts" in browser_of(people.owner).get(f"/jobs/{step.pk}").content.decode()
    assert has_tab == {"train": True, "ensemble": False, "register": False}


def test_the_head_of_the_overview_is_redrawn_with_its_steps(browser: Client, search: Job) -> None:
    part = {"part": "head", "tab": "overview"}
    head = browser.get(f"/jobs/{search.pk}", part, headers={"HX-Request": "true"}).content.decode()
    assert "ty-job-counts" in head and "<html" not in head
