"""Jobs with code of users: who may run them, where they run, and the sandbox that is recorded."""

from types import SimpleNamespace
from typing import Any

import pytest

from jobs.actions.code import own_code
from jobs.actions.experiments import experiments
from jobs.actions.runs import control, submit
from jobs.actions.search import trials
from jobs.errors import BadSpec, Forbidden
from jobs.kinds.train.payload import TrainPayload
from jobs.models import (
    CodeVersion,
    Job,
    Membership,
    Project,
    User,
)
from jobs.queries.code import dry_builds
from tests.factories import make_trials
from tests.jobs.code.conftest import DIGEST
from tests.jobs.yard import Yard
from tests.markup import text_of
from tests.people import browser_of

MODEL = {"kind": "code", "digest": DIGEST, "entry": "build_model"}


@pytest.fixture
def member(installation: Yard) -> User:
    user = User.objects.create(username="max")
    Membership.objects.create(project=installation.project, user=user, role="member")
    return user


def submitted(installation: Yard, **parts: Any) -> Job:
    return installation.submit(model=MODEL, **parts)


@pytest.mark.usefixtures("code")
def test_a_member_may_not_run_code_and_is_told_which_role_may(installation: Yard, member: User) -> None:
    revision = installation.revision(model=MODEL)
    with pytest.raises(Forbidden, match="one of these roles: trainer, admin"):
        submit.submit(revision, by=member)
    assert not Job.objects.exists()
    submit.submit(installation.revision(), by=member)
    Membership.objects.filter(user=member).update(role="trainer")
    assert submit.submit(revision, by=member).created_by == member


@pytest.mark.usefixtures("code")
def test_a_member_can_neither_repeat_nor_resume_a_job_with_code_but_can_stop_it(
    installation: Yard, member: User
) -> None:
    job = submitted(installation)
    Job.objects.filter(pk=job.pk).update(state="paused", desired="paused")
    job.refresh_from_db()
    for act in (control.resume, submit.resubmit, submit.clone):
        with pytest.raises(Forbidden):
            act(job, by=member)
    control.stop(job, by=member)
    job.refresh_from_db()
    with pytest.raises(Forbidden):
        control.retry(job, by=member)
    control.retry(job, by=installation.owner)


@pytest.mark.usefixtures("code")
def test_a_member_queues_no_trials_of_a_search_with_code(installation: Yard, member: User) -> None:
    space = [{"name": "units", "kind": "int", "min": 1, "max": 4}]
    search = submitted(installation, search={"algorithm": "random", "max_trials": 1, "space": space})
    with pytest.raises(Forbidden):
        trials.queue_by_hand(search, {"units": 2}, by=member)


def test_a_copy_in_a_project_without_the_code_is_refused(installation: Yard, code: CodeVersion) -> None:
    other = Project.objects.create(slug="other", name="Other", created_by=installation.owner)
    Membership.objects.create(project=other, user=installation.owner, role="admin")
    copy = experiments.clone(
        installation.revision(model=MODEL).experiment, by=installation.owner, project=other
    )
    revision = copy.revisions.first()
    assert revision is not None
    with pytest.raises(BadSpec) as refused:
        submit.submit(revision, by=installation.owner)
    assert refused.value.problems[0].pointer == "/spec/model/digest"
    assert code.project == installation.project


@pytest.mark.usefixtures("code")
def test_a_page_offers_to_run_code_again_only_to_those_who_may(installation: Yard, member: User) -> None:
    job = submitted(installation)
    Job.objects.filter(pk=job.pk).update(
        state="failed",
        sandbox_json={"level": "landlock", "network": False},
        error={"code": "x", "message": "y"},
    )
    pages = {
        user.username: " ".join(browser_of(user).get(f"/jobs/{job.pk}").content.decode().split())
        for user in (member, installation.owner)
    }
    assert ("Run again" in pages["max"], "Run again" in pages["olga"]) == (False, True)
    assert "in the sandbox landlock, without network" in pages["max"]
    assert browser_of(member).post(f"/jobs/{job.pk}/retry").status_code == 403


@pytest.mark.usefixtures("code")
def test_a_search_offers_what_runs_its_code_only_to_those_who_may(installation: Yard, member: User) -> None:
    space = [{"name": "units", "kind": "int", "min": 16, "max": 64}]
    objective = {"metric": "val_accuracy", "direction": "max"}
    search = submitted(installation, search={"max_trials": 9, "space": space, "objective": objective})
    Job.objects.filter(pk=search.pk).update(state="running", started=search.queued)
    make_trials(search, 2)
    place = f"/jobs/{search.pk}"
    offers = {
        place: ["Change…", "Retrain", "Register"],
        f"{place}?tab=trials": ["Queue a configuration by hand", f"{place}/ensemble"],
        f"{place}/trials/1": ["Queue these values again", "Retrain"],
        f"/p/{installation.project.slug}/experiments/{search.experiment_id}": ["Run again"],
    }
    for address, words in offers.items():
        pages = [browser_of(user).get(address).content.decode() for user in (member, installation.owner)]
        for word in words:
            assert [word in page for page in pages] == [False, True], (address, word)
    # Ending it takes no such right.
    assert "Finish with what we have" in browser_of(member).get(place).content.decode()


@pytest.mark.usefixtures("code")
def test_a_model_that_cannot_be_saved_says_so_on_the_page_and_offers_no_version(
    installation: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    reason = "the model cannot be saved: Scale ('scale'): add get_config"
    space = [{"name": "units", "kind": "int", "min": 16, "max": 64}]
    search = submitted(installation, search={"max_trials": 9, "space": space})
    Job.objects.filter(pk=search.pk).update(state="running", started=search.queued)
    make_trials(search, 2)
    built = SimpleNamespace(unsaved=reason, space=(), unused={}, one_call=False, unasked=())
    monkeypatch.setattr(dry_builds, "built_model", lambda _: built)
    address = f"/jobs/{search.pk}?part=body"
    page = " ".join(browser_of(installation.owner).get(address).content.decode().split())
    assert "No version can be made of this model: the model cannot be saved: Scale" in page
    assert "trials/1/register" not in page and "Retrain for the weights" in page
    # The buttons of a part that is loaded again return to the whole page; the frame's return to its address.
    part = page.partition("<main")[2]
    assert f'name="next" value="/jobs/{search.pk}"' in part
    assert f'name="next" value="/jobs/{search.pk}?' not in part
    owner = browser_of(installation.owner)
    trial = text_of(owner.get(f"/jobs/{search.pk}/trials/1"))
    assert "No version and no ensemble can be made of this model: the model cannot be saved: Scale" in trial
    assert "Retrain for the weights" in trial and "Add to ensemble" not in trial
    assert (
        f"{address.partition('?')[0]}/ensemble"
        not in owner.get(f"/jobs/{search.pk}?tab=trials").content.decode()
    )
    refused = owner.post(f"/jobs/{search.pk}/ensemble", {"trials": ["1", "2"]})
    assert refused.status_code == 409 and reason in text_of(refused)
    assert not Job.objects.filter(kind="chosen_ensemble").exists()


SEARCHED = {
    "algorithm": "random",
    "max_trials": 2,
    "space": [{"name": "units", "kind": "int", "min": 1, "max": 4}],
}


def test_a_search_of_an_earlier_release_trains_all_its_trials_without_a_batch_size(
    installation: Yard, code: CodeVersion
) -> None:
    entry = {"kind": "build_model", "name": "build_model", "path": "package/model.py", "line": 1}
    CodeVersion.objects.filter(pk=code.pk).update(found_json={"entries": [entry]})
    new, old = submitted(installation, search=SEARCHED), submitted(installation, search=SEARCHED)
    # Earlier releases have stored no such field.
    payload = {name: value for name, value in old.payload_json.items() if name != "passes_batch_size"}
    Job.objects.filter(pk=old.pk).update(payload_json=payload, state="paused", desired="paused")
    old.refresh_from_db()
    control.resume(old, by=installation.owner)
    old.refresh_from_db()
    assert [own_code.code_of_job(job).passes_batch_size for job in (new, old)] == [True, False]  # type: ignore[union-attr]
    step = submit.create_step(old, TrainPayload(trial=1, values={"units": 2}), 1, title="Retrain trial 1")
    assert own_code.code_of_job(step).passes_batch_size is False  # type: ignore[union-attr]
    (trial,) = make_trials(old, 1)
    again = trials.retrain(trial, by=installation.owner)
    assert own_code.code_of_job(again).passes_batch_size is False, "it repeats the trial"  # type: ignore[union-attr]
    assert own_code.code_of_job(submit.clone(old, by=installation.owner)).passes_batch_size  # type: ignore[union-attr]
