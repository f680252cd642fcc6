"""The answer on a search's page: its best trial, its models, and the next step."""

import re
from typing import Any

import pytest
from django.test import Client

from jobs.messages.reports.ensemble import EnsembleReport
from jobs.models import Analysis, Job
from jobs.queries import home
from jobs.spec.space.search_space import IntParameter
from tests.factories import (
    SEARCH,
    make_dataset,
    make_experiment,
    make_job,
    make_job_artifact,
    make_model,
    make_promotion,
    make_trials,
)
from tests.markup import one_line, text_of
from tests.people import People, browser_of
from tests.present import present
from tests.reports import ensemble_report, store_report
from tests.web.searches import markup_of


def test_the_home_page_has_the_best_score_of_all_trials(
    people: People, search: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(home, "SPARK_POINTS", 1)
    search.trials.filter(number=1).update(score=0.99)
    (running,) = home.home_page(people.owner).running
    assert running.best == 0.99


def test_a_search_with_several_objectives_names_them_and_its_front(people: People) -> None:
    objectives = [{"metric": "val_accuracy", "direction": "max"}, {"metric": "val_loss", "direction": "max"}]
    search = {"space": SEARCH["search"]["space"], "objectives": objectives}
    experiment = make_experiment(project=people.project, by=people.owner, spec={**SEARCH, "search": search})
    job = make_job(experiment=experiment, by=people.owner, state="running")
    make_trials(job, 2)
    browser = browser_of(people.owner)
    page = " ".join(browser.get(f"/jobs/{job.pk}").content.decode().split())
    assert "one of 2 trials on the Pareto front" in page
    assert ">val_accuracy</span>" in page and ">val_loss</span>" in page
    columns = browser.get(f"/api/v1/jobs/{job.pk}/trials/columns").json()
    assert columns["objectives"] == objectives


@pytest.mark.parametrize("state", ["running", "completed"])
def test_a_hyperparameter_may_have_the_name_of_a_method(
    browser: Client, search: Job, people: People, state: str
) -> None:
    named = {"items": 8, "values": 0.5}
    search.trials.update(values=named)
    Job.objects.filter(pk=search.pk).update(state=state)
    assert search.experiment is not None
    experiment = f"/p/yard/experiments/{search.experiment.pk}"
    for path in (f"/jobs/{search.pk}", f"/jobs/{search.pk}/trials/2", experiment):
        page = text_of(browser.get(path))
        assert "items" in page and "values" in page, path
    training = make_job(
        by=people.owner,
        kind="train",
        state="running",
        project=people.project,
        payload={"values": named},
        results={"metrics": {"reported": {"items": 0.75}}},
    )
    page = text_of(browser.get(f"/jobs/{training.pk}"))
    assert "items 8 values 0.5" in page and "items 0.75" in page


def test_the_best_trial_names_others_with_the_same_score(browser: Client, search: Job) -> None:
    assert "Same score as" not in text_of(browser.get(f"/jobs/{search.pk}"))
    search.trials.update(score=0.97, std=0.0)
    page = text_of(browser.get(f"/jobs/{search.pk}"))
    assert (
        "mean of 2 trainings, all with this score Same score as trial 2 (the first of them is shown)." in page
    )


def test_only_an_unfinished_search_has_a_best_so_far(browser: Client, search: Job) -> None:
    search.trials.update(std=0.0)
    pages = (f"/jobs/{search.pk}", f"/jobs/{search.pk}/trials/2")
    running = [text_of(browser.get(path)) for path in pages]
    Job.objects.filter(pk=search.pk).update(state="completed")
    completed = [text_of(browser.get(path)) for path in pages]
    assert "Best so far best: highest val_accuracy on" in running[0]
    assert "Answer best: highest val_accuracy on" in completed[0] and "Best so far" not in completed[0]
    assert " best so far" in running[1] and " best " in completed[1] and " best so far" not in completed[1]
    assert not any(" ± " in page for page in (*running, *completed)), "a standard deviation of 0 is not shown"


def test_an_ensemble_of_chosen_trials_is_one_of_its_candidates_once(
    browser: Client, search: Job, people: People
) -> None:
    chosen = {"search": search.pk, "chosen": [{"trial": n, "values": {"units": 16 * n}} for n in (1, 2)]}
    measured = {"metrics": {"test": {"accuracy": 0.98}}}
    root = make_job(
        experiment=search.experiment, by=people.owner, kind="chosen_ensemble", state="completed",
        payload=chosen, results=measured, title="Ensemble of trials 1, 2",
    )  # fmt: skip
    for kind, title in (("train", "Retrain trial 1"), ("ensemble", "Ensemble")):
        results = {**measured, "test_rows": 360}
        make_job(
            experiment=search.experiment, by=people.owner, kind=kind, state="completed",
            parent=root, root=root, results=results, title=title,
        )  # fmt: skip
    page = browser.get(f"/jobs/{root.pk}")
    assert {row.label for row in page.context["candidates"]} == {"Retrain trial 1", "Ensemble"}


def test_candidates_are_sorted_by_the_objective_with_one_recommended_above_them(people: People) -> None:
    steps = {"retrain": {"top": 3}, "register": {"model": "digits"}}
    experiment = make_experiment(project=people.project, by=people.owner, spec={**SEARCH, "after": steps})
    root = make_job(experiment=experiment, by=people.owner, state="completed")
    make_trials(root, 3)
    best = present(root.trials.scored().order_by("-score").first()).number
    for number, accuracy in ((1, 0.91), (2, 0.95), (3, 0.93)):
        interval = {"metric": "val_accuracy", "value": accuracy, "low": 0.9, "high": 0.97, "rows": 360}
        test = {"log_loss": 0.1, "accuracy": 0.98 - number / 100}
        training = make_job(
            experiment=experiment, by=people.owner, kind="train", state="completed", parent=root, root=root,
            payload={"trial": number, "values": {"units": 16}}, ordinal=number,
            title=f"Retrain trial {number}",
            results={
                "metrics": {"test": test, "validation": {"accuracy": accuracy}},
                "measured": {"validation": interval}, "test_rows": 360,
            },
        )  # fmt: skip
        make_job_artifact(training, role="model")
    page = browser_of(people.owner).get(f"/jobs/{root.pk}")
    assert [row.label for row in page.context["candidates"]] == [f"Retrain trial {n}" for n in (2, 3, 1)]
    assert [row.is_recommended for row in page.context["candidates"]] == [True, False, False]
    assert [row.label for row in page.context["candidates"] if row.is_best_trial] == [f"Retrain trial {best}"]
    text = text_of(page)
    assert text.index("Serve this") < text.index("Retrain trial 2") < text.index("Answer best:")
    assert "Validation 0.9500 0.9000 to 0.9700 Test accuracy 0.9600 Size" in text
    assert "Register" in text and "registered as" not in text, "no version was made"


def test_the_shares_of_importance_are_explained(browser: Client, search: Job) -> None:
    Job.objects.filter(pk=search.pk).update(state="completed")
    influence = {"verdict": "unclear", "trials": 12}
    importance = {
        "used": 12,
        "importances": [
            {"name": "units", "alone": 0.68, "chance": 0.01, "influence": influence},
            {"name": "rate", "alone": 0.32, "chance": 0.3, "influence": influence},
        ],
    }
    trials = search.trials.scored().count()
    Analysis.objects.create(job=search, kind=Analysis.Kind.IMPORTANCE, trials=trials, result=importance)
    page = text_of(browser.get(f"/jobs/{search.pk}"))
    assert page.index("68 %") < page.index("the shares add up to 100 %, even if none matters")
    assert "share may be chance; no clear tendency" in page


def test_shares_that_are_all_chance_are_a_sentence_without_bars(browser: Client, search: Job) -> None:
    Job.objects.filter(pk=search.pk).update(state="completed")
    influence = {"verdict": "unclear", "trials": 12}
    entry = {"name": "units", "alone": 1.0, "chance": 0.3, "influence": influence}
    result = {"used": 12, "importances": [entry]}
    trials = search.trials.scored().count()
    Analysis.objects.create(job=search, kind=Analysis.Kind.IMPORTANCE, trials=trials, result=result)
    page = browser.get(f"/jobs/{search.pk}")
    assert "No share is beyond chance" in text_of(page)
    assert "<meter" not in page.content.decode()


def test_the_range_is_widened_in_the_search_space_of_the_form(browser: Client, search: Job) -> None:
    best = present(search.trials.scored().order_by("-score").first())
    space = SEARCH["search"]["space"]
    edge = {"name": "units", "kind": "int", "min": 8, "max": best.values["units"]}
    spec = {**SEARCH, "search": {**SEARCH["search"], "space": [edge, *space[1:]]}}
    present(search.experiment).revisions.update(spec_json=spec)
    Job.objects.filter(pk=search.pk).update(state="completed")
    page = browser.get(f"/jobs/{search.pk}").content.decode()
    assert re.search(rf'href="[^"]*/edit\?job={search.pk}&amp;widen=units#search"', page)


def test_the_answer_starts_what_follows_in_one_click_each(
    browser: Client, search: Job, people: People
) -> None:
    make_dataset("digits", by=people.owner)
    wide = {
        **SEARCH["search"],
        "algorithm": "random",
        "space": [{**SEARCH["search"]["space"][0], "max": 512}],
    }
    present(search.experiment).revisions.update(spec_json={**SEARCH, "search": wide})
    Job.objects.filter(pk=search.pk).update(state="completed")
    page = text_of(browser.get(f"/jobs/{search.pk}"))
    for label in ("Retrain", "Register", "Train the best two again", "Search a smaller range"):
        assert label in page
    for path in ("repeat", "narrow", "trials/2/register"):
        assert browser.post(f"/jobs/{search.pk}/{path}").status_code == 303
    registered, narrower, repeated = Job.objects.order_by("-pk")[:3]
    assert present(present(registered.revision).spec.after.register_).model
    units = present(present(narrower.revision).spec.search).space[0]
    assert isinstance(units, IntParameter) and units.max < 512
    assert repeated.trials.count() == 2
    viewer = browser_of(people.viewer)
    assert "Train the best two again" not in text_of(viewer.get(f"/jobs/{search.pk}"))
    assert viewer.post(f"/jobs/{search.pk}/repeat").status_code == 403


def test_the_model_that_gets_the_best_trial_is_shown_and_chosen_before_the_click(
    browser: Client, search: Job, people: People
) -> None:
    make_dataset("digits", by=people.owner)
    make_model("churn", project=people.project, by=people.owner)
    Job.objects.filter(pk=search.pk).update(state="completed")
    page = browser.get(f"/jobs/{search.pk}").content.decode()
    form = page.partition("/trials/2/register")[2].partition("</form>")[0]
    proposed, other = re.findall(r'<option\s+value="([^"]+)"', form)
    assert proposed != other == "churn"
    refused = browser.post(f"/jobs/{search.pk}/trials/2/register", {"model": "never-shown"})
    assert refused.status_code == 409 and "proposed now" in text_of(refused)
    assert browser.post(f"/jobs/{search.pk}/trials/2/register", {"model": "churn"}).status_code == 303
    training = Job.objects.latest("pk")
    assert present(present(training.revision).spec.after.register_).model == "churn"


def test_one_training_of_each_shows_nothing_about_the_lead(browser: Client, search: Job) -> None:
    for trial in search.trials.all():
        trial.executions.filter(number=2).delete()
    Job.objects.filter(pk=search.pk).update(state="completed")
    page = text_of(browser.get(f"/jobs/{search.pk}"))
    assert "That is not known yet. Each of the two was trained once." in page
    assert "To find out, train both again with new seeds." in page


def test_the_page_of_a_search_leads_to_the_versions_that_it_registered(
    browser: Client, search: Job, people: People
) -> None:
    done = {"metrics": {"test": {"accuracy": 0.98}}, "test_rows": 360}
    trained, registering = (
        make_job(
            experiment=search.experiment,
            by=people.owner,
            kind=kind,
            state="completed",
            parent=search,
            root=search,
            results=results,
            payload=payload,
        )
        for kind, results, payload in (("train", done, {}), ("register", {}, {"version": 0}))
    )
    version = make_model("flowers", project=people.project, by=people.owner).versions.get()
    version.source_job = trained
    version.save()
    Job.objects.filter(pk=registering.pk).update(payload_json={"version": version.pk})
    Job.objects.filter(pk=search.pk).update(state="completed")
    search.trials.update(state="completed", score=0.9)
    link, request = 'href="/models/flowers/versions/1"', "Request the promotion of"
    page = markup_of(browser, search)
    assert "registered as" in page
    assert page.count(link) == 3, "above, in the table and in the request"
    assert request in page
    assert link in markup_of(browser, registering)
    make_promotion(version, by=people.owner)
    page = markup_of(browser, search)
    assert page.count(link) == 2
    assert request not in page


DOUBT = [{"code": "worse_than_trial", "message": "Clearly worse than its trial. Do not promote it."}]
SURE, UNSURE = (0.01, 0.02), (-0.01, 0.02)


@pytest.mark.parametrize(
    ("doubted", "gain", "title", "why"),
    [
        ((), SURE, "Ensemble", "On validation rows it clearly beats its best single model."),
        ((), UNSURE, "Retrain trial 1", "Of 2 retrained models it has the best accuracy"),
        ((), UNSURE, "Retrain trial 1", "The ensemble is not recommended: it is not clearly better."),
        ((), None, "Retrain trial 1", "The ensemble is not recommended: its report, which compares it"),
        ((1,), SURE, "Retrain trial 2", "The ensemble is not recommended: it contains Retrain trial 1."),
        ((1,), UNSURE, "Retrain trial 2", "Of 2 retrained models only it is not clearly worse"),
        ((1, 2), SURE, "", "Retrain trial 1, Retrain trial 2 are clearly worse than the trial"),
    ],
)
def test_one_model_is_recommended_and_none_that_a_warning_tells_not_to_promote(
    people: People, doubted: tuple[int, ...], gain: tuple[float, float] | None, title: str, why: str
) -> None:
    steps = {"retrain": {"top": 2}, "ensemble": {}, "register": {"model": "digits"}}
    experiment = make_experiment(project=people.project, by=people.owner, spec={**SEARCH, "after": steps})
    root = make_job(experiment=experiment, by=people.owner, state="completed")
    make_trials(root, 2)
    trained = [
        make_job(
            experiment=experiment, by=people.owner, kind="train", state="completed", parent=root, root=root,
            payload={"trial": number, "values": {"units": 16 * number}}, ordinal=number,
            title=f"Retrain trial {number}",
            results={
                "metrics": {"test": {"accuracy": 0.9}, "validation": {"accuracy": 0.9 - number / 10}},
                "test_rows": 360,
            },
        )
        for number in (1, 2)
    ]  # fmt: skip
    weights = [{"member": f"m{job.pk}", "weight": 0.5} for job in trained]
    pooled = make_job(
        experiment=experiment, by=people.owner, kind="ensemble", state="completed", parent=root, root=root,
        title="Ensemble", payload={"members": [job.pk for job in trained]}, results={"weights": weights},
    )  # fmt: skip
    for number in doubted:
        Job.objects.filter(pk=trained[number - 1].pk).update(warnings=DOUBT)
    if gain is not None:
        # An earlier release may have stored no warning for it: the report decides.
        store_report(pooled, gained(ensemble_report((2.0, 2.0, 2.0)), *gain))
    browser = browser_of(people.owner)
    recommended = browser.get(f"/api/v1/jobs/{root.pk}/answer").json()["recommended"]
    assert recommended["title"] == title and why in recommended["why"]
    text = text_of(browser.get(f"/jobs/{root.pk}"))
    assert recommended["why"].replace(" (fit.seed)", "") in text and "fit.seed" not in text
    assert ("may be luck" in text) is (gain == UNSURE)
    advised = (f"{title} Recommended model." in text, f"Recommended model: {title} ." in text)
    assert any(advised) if title else ("No model is recommended." in text)
    assert ("Do not promote it before you know why" in text) is (1 in doubted)


def gained(report: EnsembleReport, low: float, high: float) -> EnsembleReport:
    gain = present(report.fit.gain).model_copy(update={"low": low, "high": high})
    return report.model_copy(update={"fit": report.fit.model_copy(update={"gain": gain})})


def with_constant(search: Job, score: float, **fields: Any) -> None:
    known = {"metric": "val_accuracy", "score": score, "constant": {"kind": "class", "value": "no"}, **fields}
    Job.objects.filter(pk=search.pk).update(payload_json={**search.payload_json, "baselines": [known]})


@pytest.mark.parametrize("state", ["running", "completed"])
def test_a_search_that_learned_nothing_has_no_trophy_and_no_advice_to_go_on_with_it(
    browser: Client, search: Job, state: str
) -> None:
    Job.objects.filter(pk=search.pk).update(state=state)
    pages = (f"/jobs/{search.pk}", f"/jobs/{search.pk}/trials/2")
    assert all("#trophy" in markup_at(browser, path) for path in pages)
    with_constant(search, 0.951)
    markup, text = markup_at(browser, pages[0]), text_of(browser.get(pages[0]))
    sentence = (
        "No trial beats the constant prediction: always 'no' gives val_accuracy 0.951, the best trial 0.92."
    )
    assert sentence in text
    for advice in ("Search a smaller range", "Widen the range", "Train the best two again", "more than luck"):
        assert advice not in text
    assert "#trophy" not in markup
    if state == "completed":
        assert "Look at the findings about the target" in text and "Change the experiment…" in text
    of_trial = browser.get(pages[1])
    assert "#trophy" not in markup_at(browser, pages[1])
    assert "by val_accuracy, but not better than the constant prediction" in text_of(of_trial)
    assert sentence in text_of(of_trial)


def test_a_score_stands_beside_that_of_the_constant_prediction(browser: Client, search: Job) -> None:
    Job.objects.filter(pk=search.pk).update(state="completed")
    with_constant(search, 0.62)
    page = f"/jobs/{search.pk}"
    assert "Constant prediction: 0.62 (always 'no')." in text_of(browser.get(page))
    assert "#trophy" in markup_at(browser, page)
    baseline = browser.get(f"/api/v1{page}/answer").json()["baseline"]
    assert (baseline["value"], baseline["beaten"], baseline["remedy"]) == (0.62, True, "")


def test_a_model_of_a_search_that_learned_nothing_is_not_recommended(
    browser: Client, search: Job, people: People
) -> None:
    Job.objects.filter(pk=search.pk).update(state="completed")
    training = make_job(
        experiment=search.experiment, project=people.project, by=people.owner, kind="train",
        state="completed", parent=search, root=search, payload={"trial": 2, "values": {"units": 32}},
        title="Retrain trial 2", results={"metrics": {"validation": {"accuracy": 0.92}}},
    )  # fmt: skip
    make_job_artifact(training, role="model")
    page, page_of_training = f"/jobs/{search.pk}", f"/jobs/{training.pk}"
    assert "Recommended model: Retrain trial 2 ." in text_of(browser.get(page))
    primary = 'class="btn btn-primary btn-sm" title="Becomes version 1 of the new model'
    assert all(primary in one_line(browser.get(path)) for path in (page, page_of_training))
    with_constant(search, 0.951)
    assert not any(primary in one_line(browser.get(path)) for path in (page, page_of_training))
    assert "Register as…" in text_of(browser.get(page_of_training)), "it is still possible"
    text = text_of(browser.get(page))
    assert "No model is recommended." in text and "Recommended model" not in text
    recommended = browser.get(f"/api/v1{page}/answer").json()["recommended"]
    assert recommended["job"] is None and "No trial beats the constant prediction" in recommended["why"]


def test_a_trial_of_a_search_that_learned_nothing_is_not_advised_once_it_is_retrained(
    browser: Client, search: Job, people: People
) -> None:
    Job.objects.filter(pk=search.pk).update(state="completed")
    retrained = make_job(
        experiment=search.experiment, project=people.project, by=people.owner, kind="train",
        state="completed", payload={"source": {"search": search.pk, "trial": 2}},
        results={"metrics": {"test": {"accuracy": 0.92}, "validation": {"accuracy": 0.92}}, "test_rows": 360},
    )  # fmt: skip
    make_job_artifact(retrained, role="model")
    page = f"/jobs/{retrained.pk}"
    primary = 'class="btn btn-primary btn-sm" title="Becomes version 1 of the new model'
    assert primary in one_line(browser.get(page))
    with_constant(search, 0.951)
    assert primary not in one_line(browser.get(page))
    assert "Register as…" in text_of(browser.get(page)), "it is still possible"
    assert "No model is recommended. No trial beats the constant" in text_of(browser.get(page))
    with_constant(search, 0.62)
    assert primary in one_line(browser.get(page))
    assert "No model is recommended" not in text_of(browser.get(page))


def markup_at(browser: Client, path: str) -> str:
    return browser.get(path).content.decode()
