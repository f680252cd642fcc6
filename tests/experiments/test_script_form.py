"""The form of a script's experiment: from the arguments that its code declares to a spec, and back."""

import json
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from jobs.actions.experiments import experiments
from jobs.models import CodeVersion, Experiment, Job, Revision, Trial
from jobs.spec.sections.pruning import MedianPruner
from jobs.spec.space.search_space import ChoiceParameter, FloatParameter, When
from tests.code.making import zipped
from tests.datasets.making import bundle
from tests.factories import make_trials
from tests.markup import squeezed, text_of
from tests.people import People, browser_of
from tests.present import present
from webapp.forms.experiments.script.values import read_value, shown_value

TRAIN = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--rate", type=float, default=0.1, help="of the steps")
parser.add_argument("--epochs", type=int, required=True)
parser.add_argument("--optimizer", choices=["sgd", "adam"], default="sgd")
parser.add_argument("--fast", action="store_true")
parser.add_argument("folder", nargs="?")
args = parser.parse_args()
MODEL = "model.keras"
"""


@pytest.fixture
def browser(people: People) -> Client:
    bundle()
    return browser_of(people.trainer)


@pytest.fixture
def code(browser: Client) -> CodeVersion:
    file = SimpleUploadedFile("net.zip", zipped({"train.py": TRAIN, "other.py": "x = 1\n"}))
    assert browser.post("/code/new", {"project": "yard", "file": file}).status_code == 303
    return CodeVersion.objects.get()


def address(code: CodeVersion) -> str:
    return f"/p/yard/code/{code.digest}/run?entry=train.py"


def entries(page: Any) -> dict[str, Any]:
    """Return the fields that a browser would send for a page without a change."""
    form, rows = page.context["form"], page.context["arguments"]
    fields = {**{f"{field.html_name}": field.value() for field in form}}
    for row in rows:
        fields |= {field.html_name: field.value() for field in row}
    fields |= {field.html_name: field.value() for field in rows.management_form}
    return {name: "" if value is None else value for name, value in fields.items()}


def test_a_script_that_is_run_again_gets_another_name(browser: Client, code: CodeVersion) -> None:
    proposed = entries(browser.get(address(code)))["name"]
    browser.post(address(code), entries(browser.get(address(code))) | {"do": "draft"})
    assert (proposed, entries(browser.get(address(code)))["name"]) == ("train", "train 2")


def test_tags_and_notes_are_kept_beside_the_spec(browser: Client, code: CodeVersion) -> None:
    entered = {"tags": "slow, ours", "notes": "with the new loss", "do": "save"}
    browser.post(address(code), {**entries(browser.get(address(code))), **entered})
    experiment = Experiment.objects.get()
    assert (experiment.tags, experiment.notes) == (["slow", "ours"], "with the new loss")


def row_of(fields: dict[str, Any], argument: str) -> str:
    """Return the prefix for an argument's fields."""
    name = next(name for name, value in fields.items() if name.endswith("-name") and value == argument)
    return name.removesuffix("name")


def with_rows(fields: dict[str, Any], **rows: dict[str, Any]) -> dict[str, Any]:
    for argument, changes in rows.items():
        prefix = row_of(fields, argument)
        fields |= {f"{prefix}{name}": value for name, value in changes.items()}
    return fields


def test_the_page_of_the_code_leads_to_the_form_with_the_declared_arguments(
    browser: Client, code: CodeVersion, people: People
) -> None:
    page = squeezed(browser.get(f"/code/{code.digest}?project=yard").content.decode())
    assert f'href="{address(code)}"' in page
    answer = browser.get(address(code))
    rows = [form.initial for form in answer.context["arguments"]]
    assert [(row["name"], row["use"]) for row in rows] == [
        ("rate", "omit"), ("epochs", "set"), ("optimizer", "omit"), ("fast", "omit"), ("folder", "omit"),
    ]  # fmt: skip
    assert (rows[0]["text"], rows[2]["text"], rows[3]["text"]) == ("0.1", "sgd", "false")
    assert browser_of(people.member).get(address(code)).status_code == 403


def test_a_single_run_is_submitted(browser: Client, code: CodeVersion) -> None:
    fields = with_rows(
        entries(browser.get(address(code))), epochs={"text": "3"}, fast={"use": "set", "text": "true"}
    )
    answer = browser.post(address(code), {**fields, "variables": "MODE=quick", "do": "submit"})
    assert answer.status_code == 303, answer.content.decode()[:5000]
    job = Job.objects.get(kind="train")
    spec = present(job.revision).spec_json
    assert spec["model"] == {
        "kind": "script", "digest": code.digest, "entry": "train.py",
        "args": {"epochs": 3, "fast": True}, "env": {"MODE": "quick"},
    }  # fmt: skip
    assert "data" not in spec
    assert job.payload.dataset_version is None


def test_a_search_over_arguments_is_submitted_with_data(browser: Client, code: CodeVersion) -> None:
    fields = with_rows(
        entries(browser.get(address(code))),
        rate={"use": "range", "low": "1e-4", "high": "0.1", "scale": "log"},
        epochs={"text": "3"},
        optimizer={"use": "values"},
    )
    fields |= {"dataset": "digits:", "metric": "accuracy", "direction": "max", "max_trials": 5}
    fields["pruner"] = "median"
    answer = browser.post(address(code), {**fields, "register": "net", "do": "submit"})
    assert answer.status_code == 303, answer.content.decode()[:5000]
    spec = present(Job.objects.get(kind="search").revision).spec
    assert [row.name for row in present(spec.search).space] == ["rate", "optimizer"]
    searched = present(spec.search)
    rate, optimizer = searched.space
    assert isinstance(rate, FloatParameter) and isinstance(optimizer, ChoiceParameter)
    assert (rate.sampling, optimizer.values) == ("log", ("sgd", "adam"))
    assert searched.objective.model_dump() == {"metric": "accuracy", "direction": "max"}
    assert isinstance(searched.pruner, MedianPruner) and searched.max_trials == 5
    assert (present(spec.data).dataset, present(spec.after.register_).model) == ("digits", "net")


def test_a_model_is_registered_only_if_something_names_its_file(browser: Client) -> None:
    file = SimpleUploadedFile("quiet.py", b"import sys\nif __name__ == '__main__':\n    print(sys.argv)\n")
    browser.post("/code/new", {"project": "yard", "file": file})
    code = CodeVersion.objects.get(name="quiet")
    page = f"/p/yard/code/{code.digest}/run?entry=quiet.py"
    fields = entries(browser.get(page)) | {"register": "net", "do": "submit"}
    refused = browser.post(page, fields)
    assert refused.status_code == 422
    assert "names a .keras file: let the script save its model as model.keras" in refused.content.decode()
    assert 'href="#id_register"' in refused.content.decode()
    named = browser.post(page, fields | {"variables": "MODEL=out/model.keras"})
    assert named.status_code == 303, named.content.decode()[:5000]


def test_what_is_missing_or_wrong_is_named_at_its_field(browser: Client, code: CodeVersion) -> None:
    fields = with_rows(
        entries(browser.get(address(code))),
        rate={"use": "range", "low": "x", "high": "1"},
        epochs={"text": "3"},
    )
    page = browser.post(address(code), {**fields, "do": "submit"})
    assert page.status_code == 422
    assert "Enter a number." in page.content.decode()
    fields = with_rows(fields, rate={"low": "0"})
    page = browser.post(address(code), {**fields, "do": "submit"})
    assert page.context["form"].errors == {
        "metric": ["Enter the metric that ranks the trials."],
        "direction": ["Choose whether higher or lower values are better."],
    }
    fields["direction"] = "min"
    page = browser.post(address(code), {**fields, "metric": "a", "entry": "trian.py", "do": "submit"})
    assert "has no file &#x27;trian.py&#x27;; it has train.py" in page.content.decode()
    page = browser.post(address(code), {**fields, "metric": "a", "variables": "PATH=/tmp", "do": "submit"})
    assert page.context["form"].errors["variables"] == ["PATH is set by Trainyard and cannot be changed"]
    assert not Experiment.objects.exists()


def test_a_draft_is_saved_and_edited_in_the_same_form(browser: Client, code: CodeVersion) -> None:
    fields = with_rows(
        entries(browser.get(address(code))),
        rate={"use": "range", "low": "0.0", "high": "1"},
        epochs={"text": "7"},
    )
    objective = {"metric": "accuracy", "direction": "min"}
    answer = browser.post(address(code), {**fields, **objective, "do": "save"})
    experiment = Experiment.objects.get()
    assert answer["Location"] == f"/p/yard/experiments/{experiment.pk}/edit"
    page = browser.get(answer["Location"])
    again = entries(page)
    assert {name: again[name] for name in objective} == objective
    assert again[row_of(again, "epochs") + "text"] == "7"
    assert [again[row_of(again, "rate") + part] for part in ("use", "low", "high")] == ["range", "0.0", "1.0"]
    answer = browser.post(answer["Location"], {**again, "do": "submit"})
    assert answer.status_code == 303
    assert Job.objects.get(kind="search").experiment == experiment
    assert "train.py" in browser.get(f"/p/yard/experiments/{experiment.pk}").content.decode()


SWITCHES = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("data")
parser.add_argument("--cache", action=argparse.BooleanOptionalAction, default=True)
parser.add_argument("--no-shuffle", dest="shuffle", action="store_false")
parser.add_argument("--fast", action="store_true", default=True)
parser.add_argument("--layers", type=int, nargs="+", default=[64, 32])
args = parser.parse_args()
"""


@pytest.mark.parametrize(
    ("entered", "gpu"),
    [
        (
            {"gpu_model": "H200", "gpu_memory": "100", "gpus": "2"},
            {"name": "H200", "memory_gb": 100.0, "count": 2},
        ),
        ({"gpus": "1"}, {"count": 1}),
        ({}, None),
    ],
)
def test_the_gpus_of_a_script_are_kept_in_its_spec_and_in_its_form(
    browser: Client, code: CodeVersion, entered: dict[str, str], gpu: dict[str, Any] | None
) -> None:
    fields = with_rows(entries(browser.get(address(code))), epochs={"use": "set", "text": "3"})
    answer = browser.post(address(code), {**fields, "slots": 2, **entered, "do": "submit"})
    assert answer.status_code == 303, answer.content.decode()
    revision = Revision.objects.get()
    assert revision.spec_json["resources"].get("gpu") == gpu
    shown = entries(browser.get(f"/p/yard/experiments/{revision.experiment_id}/edit"))
    assert {name: shown[name] for name in ("gpu_model", "gpu_memory", "gpus")} == {
        "gpu_model": entered.get("gpu_model", ""),
        "gpu_memory": (gpu or {}).get("memory_gb", ""),
        "gpus": (gpu or {}).get("count", ""),
    }


def test_a_script_that_asks_for_more_gpus_than_slots_is_refused_at_the_field(
    browser: Client, code: CodeVersion
) -> None:
    fields = with_rows(entries(browser.get(address(code))), epochs={"use": "set", "text": "3"})
    page = browser.post(address(code), {**fields, "gpus": "2", "do": "submit"})
    assert page.status_code == 422
    assert "2 GPUs need 2 slots" in str(page.context["form"].errors["gpus"])


def test_each_row_names_how_its_value_is_passed_and_lists_are_read(browser: Client) -> None:
    file = SimpleUploadedFile("train.py", SWITCHES.encode())
    assert browser.post("/code/new", {"project": "yard", "file": file}).status_code == 303
    where = address(CodeVersion.objects.get())
    page = browser.get(where)
    hows = {row.initial["name"]: row.initial["how"] for row in page.context["arguments"]}
    assert hows == {
        "data": "", "cache": "true passes --cache, false passes --no-cache",
        "shuffle": "false passes --no-shuffle, true passes nothing",
        "fast": "true passes --fast, false cannot be passed",
        "layers": "several values, separated by spaces or commas",
    }  # fmt: skip
    assert "false passes --no-cache" in page.content.decode()
    fields = with_rows(
        entries(page),
        data={"use": "set", "text": "rows.csv"},
        cache={"use": "set", "text": "false"},
        shuffle={"use": "values"},
        layers={"use": "set", "text": "8 4"},
    )
    fields |= {"metric": "loss", "direction": "min"}
    refused = browser.post(
        where, with_rows(dict(fields), fast={"use": "set", "text": "false"}) | {"do": "submit"}
    )
    assert refused.status_code == 422
    assert "can only make it true" in refused.content.decode()
    assert browser.post(where, {**fields, "do": "submit"}).status_code == 303
    job = Job.objects.get(kind="search")
    spec = present(job.revision).spec
    assert spec.model.args == {"data": "rows.csv", "cache": False, "layers": [8, 4]}
    (trial,) = make_trials(job, 1)
    Trial.objects.filter(pk=trial.pk).update(values={"shuffle": False})
    shown = browser.get(f"/jobs/{job.pk}/trials/1").content.decode()
    assert "train.py rows.csv --no-cache --layers 8 4 --no-shuffle" in shown


LISTS = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--names", nargs="+")
args = parser.parse_args()
"""


def test_searched_lists_of_texts_arrive_as_several_arguments(browser: Client) -> None:
    file = SimpleUploadedFile("train.py", LISTS.encode())
    assert browser.post("/code/new", {"project": "yard", "file": file}).status_code == 303
    where = address(CodeVersion.objects.get())
    fields = with_rows(entries(browser.get(where)), names={"use": "values", "values": "a b, c"})
    sent = {**fields, "metric": "loss", "direction": "min", "do": "submit"}
    assert browser.post(where, sent).status_code == 303
    job = Job.objects.get(kind="search")
    (row,) = present(present(job.revision).spec.search).space
    assert isinstance(row, ChoiceParameter) and row.values == ('["a", "b"]', '["c"]')
    (trial,) = make_trials(job, 1)
    Trial.objects.filter(pk=trial.pk).update(values={"names": row.values[0]})
    assert "train.py --names a b" in browser.get(f"/jobs/{job.pk}/trials/1").content.decode()
    again = entries(browser.get(f"/p/yard/experiments/{present(job.revision).experiment_id}/edit"))
    assert again[f"{row_of(again, 'names')}values"] == '["a", "b"], ["c"]'
    edited = f"/p/yard/experiments/{present(job.revision).experiment_id}/edit"
    assert browser.post(edited, {**again, "do": "draft"}).status_code == 303


CHOICES = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--level", type=int, choices=[1, 2, 3], required=True, help="of compression")
parser.add_argument("--sizes", type=int, nargs="+", default=[16, 8])
parser.add_argument("--cache", action=argparse.BooleanOptionalAction, default=True)
parser.add_argument("--mode", choices=["set", "values"], default="set")
parser.add_argument("--rate", type=float, default=0.1)
args = parser.parse_args()
"""


@pytest.fixture
def choices(browser: Client) -> str:
    """The address of a form of a script whose arguments have choices."""
    browser.post("/code/new", {"project": "yard", "file": SimpleUploadedFile("train.py", CHOICES.encode())})
    return address(CodeVersion.objects.get())


def test_choices_are_offered_and_each_argument_has_its_help(browser: Client, choices: str) -> None:
    page = browser.get(choices)
    text = squeezed(page.content.decode())
    assert "of compression. One of 1, 2, 3. Required." in text
    assert "Default: [16, 8]." in text
    fields = entries(page)
    level = row_of(fields, "level")
    assert f'<select name="{level}text"' in text
    assert '<option value="2">2</option>' in text
    assert [fields[f"{row_of(fields, name)}text"] for name in ("level", "cache", "mode")] == [
        "",
        "true",
        "set",
    ]
    refused = browser.post(choices, {**fields, "do": "submit"})
    assert f'<a href="#id_{level}text">level</a>: Enter a value' in squeezed(refused.content.decode())
    assert browser.post(choices, with_rows(fields, level={"text": "2"}) | {"do": "submit"}).status_code == 303
    assert present(Job.objects.get(kind="train").revision).spec.model.args == {"level": 2}


def test_searched_values_begin_with_texts_that_are_accepted(browser: Client, choices: str) -> None:
    fields = entries(browser.get(choices))
    shown = {name: fields[f"{row_of(fields, name)}values"] for name in ("level", "sizes", "cache", "mode")}
    assert shown == {"level": "1, 2, 3", "sizes": "16 8", "cache": "true, false", "mode": "set, values"}
    searched = {name: {"use": "values"} for name in shown}
    fields = with_rows(fields, **searched) | {"metric": "loss", "direction": "min", "do": "submit"}
    refused = squeezed(browser.post(choices, fields).content.decode())
    assert "the parts of one list by blanks, such as 64 32, 128 64" in refused
    for written in ("16 8, 32 16", "[16, 8], [32, 16]"):
        assert browser.post(choices, with_rows(fields, sizes={"values": written})).status_code == 303
        space = present(present(Job.objects.filter(kind="search").latest("pk").revision).spec.search).space
        values = {row.name: row.values for row in space if isinstance(row, ChoiceParameter)}
        assert values == {
            "level": (1, 2, 3), "sizes": ("16 8", "32 16"), "cache": (True, False), "mode": ("set", "values"),
        }  # fmt: skip


def test_problems_of_arguments_are_listed_at_the_top_with_links_to_their_fields(
    browser: Client, choices: str
) -> None:
    fields = with_rows(
        entries(browser.get(choices)),
        level={"text": "2"},
        sizes={"use": "set", "text": "big"},
        rate={"use": "range", "low": "x", "high": "1"},
    )
    page = squeezed(browser.post(choices, {**fields, "do": "submit"}).content.decode())
    assert "data-problems" in page
    assert f'<a href="#id_{row_of(fields, "rate")}low">rate, from</a>: Enter a number.' in page
    # The checks of the spec find it, since the form accepts any text.
    fields = with_rows(fields, rate={"use": "omit"})
    page = squeezed(browser.post(choices, {**fields, "do": "submit"}).content.decode())
    assert f'<a href="#id_{row_of(fields, "sizes")}text">sizes</a>:' in page
    assert "it takes a whole number" in page
    assert "/model/args" not in page


@pytest.mark.parametrize(
    ("args", "pointer", "reason"),
    [
        ({}, "/spec/model/args", "needs the argument 'data'"),
        ({"data": "a", "cashe": True}, "/spec/model/args/cashe", "did you mean 'cache'?"),
        ({"data": "a", "fast": False}, "/spec/model/args/fast", "the script cannot get false"),
        ({"data": "a", "layers": "big"}, "/spec/model/args/layers", "takes a whole number, not 'big'"),
    ],
)
def test_a_spec_is_refused_if_the_script_would_get_something_else(
    browser: Client, args: dict[str, Any], pointer: str, reason: str
) -> None:
    browser.post("/code/new", {"project": "yard", "file": SimpleUploadedFile("train.py", SWITCHES.encode())})
    model = {"kind": "script", "digest": CodeVersion.objects.get().digest, "entry": "train.py", "args": args}
    body = {"project": "yard", "spec": {"version": 1, "model": model}}
    answer = browser.post("/api/v1/experiments/validate", json.dumps(body), content_type="application/json")
    (problem,) = answer.json()["errors"]
    assert (problem["pointer"], reason in problem["message"]) == (pointer, True), problem


def test_code_without_arguments_begins_with_one_empty_row(browser: Client, code: CodeVersion) -> None:
    page = browser.get(address(code).replace("train.py", "other.py"))
    assert [row.initial for row in page.context["arguments"]] == [{}]


def test_two_people_who_edit_a_script_choose_between_their_versions(
    browser: Client, code: CodeVersion, people: People
) -> None:
    fields = with_rows(entries(browser.get(address(code))), epochs={"text": "7"})
    where = browser.post(address(code), {**fields, "do": "save"})["Location"]
    mine = {**entries(browser.get(where)), "seed": "5", "do": "save"}
    other = browser_of(people.owner)
    theirs = with_rows(entries(other.get(where)), epochs={"text": "9"})
    assert other.post(where, {**theirs, "steps": "3", "do": "save"}).status_code == 303
    page = browser.post(where, mine)
    assert page.status_code == 409
    assert {change.path for change in page.context["changes"]} == {
        "fit.epochs",
        "fit.seed",
        "model.args.epochs",
    }
    chosen = {**page.context["entries"], "overwrites": page.context["experiment"].version}
    again = entries(browser.post(where, {**chosen, "do": "edit"}))
    assert (again["seed"], again[row_of(again, "epochs") + "text"]) == (5, "7")
    assert browser.post(where, {**again, "do": "save"}).status_code == 409, "it is compared again"
    assert browser.post(where, {**chosen, "do": "draft"}).status_code == 303
    draft = present(Experiment.objects.get().draft)
    assert (present(draft["fit"])["seed"], draft["model"]["args"]) == (5, {"epochs": 7})


def test_a_field_that_the_form_does_not_show_is_kept(
    browser: Client, code: CodeVersion, people: People
) -> None:
    spec = {
        "version": 1,
        "model": {"kind": "script", "digest": code.digest, "entry": "train.py", "args": {"epochs": 3}},
        "data": {"dataset": "digits", "split": {"test": 0.1}},
        "search": {
            "objective": {"metric": "accuracy", "direction": "max"},
            "seed": 4,
            "space": [
                {"name": "optimizer", "kind": "choice", "values": ["sgd", "adam"]},
                {"name": "rate", "kind": "float", "min": 0.1, "max": 1.0, "default": 0.5,
                 "when": {"name": "optimizer", "in": ["sgd"]}},
            ],
        },
    }  # fmt: skip
    body = {"project": "yard", "name": "by REST", "spec": spec}
    answer_of_api = browser.post("/api/v1/experiments", json.dumps(body), content_type="application/json")
    assert answer_of_api.status_code == 201, answer_of_api.content
    where = f"/p/yard/experiments/{answer_of_api.json()['id']}/edit"
    answer = browser.post(where, {**entries(browser.get(where)), "do": "submit"})
    assert answer.status_code == 303, (answer.context["form"].errors, answer.context["arguments"].errors)
    submitted_spec = present(Job.objects.get(kind="search").revision).spec
    assert present(submitted_spec.data).split.test == 0.1
    searched = present(submitted_spec.search)
    conditional = searched.space[1]
    assert isinstance(conditional, FloatParameter) and isinstance(conditional.when, When)
    assert (searched.seed, conditional.when.name, conditional.default) == (4, "optimizer", 0.5)


def test_the_settings_of_an_older_run_are_opened_with_what_the_form_does_not_show(
    browser: Client, code: CodeVersion, people: People
) -> None:
    fields = with_rows(entries(browser.get(address(code))), epochs={"text": "7"})
    browser.post(address(code), {**fields, "do": "submit"})
    job = Job.objects.latest("pk")
    revision = present(job.revision)
    hidden = {**revision.spec_json, "data": {"dataset": "digits", "split": {"test": 0.1}}}
    Revision.objects.filter(pk=revision.pk).update(spec_json=hidden)
    newer = {**revision.spec_json, "fit": {**revision.spec_json["fit"], "seed": 9}}
    experiments.change(revision.experiment, spec=newer, by=people.owner)
    where = browser.get(f"/jobs/{job.pk}").context["edit_url"]
    page = browser.get(where)
    assert f"These are the settings of job {job.pk} (revision 1)." in text_of(page)
    assert entries(page)["seed"] != 9 and page.context["is_unsaved"]
    assert browser.post(where, {**entries(page), "do": "submit"}).status_code == 303
    again = present(Job.objects.latest("pk").revision)
    assert (again.number, present(again.spec.data).split.test) == (3, 0.1)


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [("3", "", 3), ("3", "float", 3.0), ("3", "str", "3"), ('"3"', "", "3"), ("1e-3", "", 0.001),
     ("true", "", True), ("nan", "", "nan"), ("1_0", "", "1_0"), ("adam", "", "adam")],
)  # fmt: skip
def test_a_text_means_a_number_a_flag_or_a_text(text: str, kind: str, value: Any) -> None:
    value_read = read_value(text, kind)
    assert (value_read, type(value_read)) == (value, type(value))
    assert read_value(shown_value(value_read), "") == value_read


def test_the_helper_can_be_downloaded(browser: Client) -> None:
    answer = browser.get("/help/trainyard_report.py")
    assert answer["Content-Disposition"] == 'attachment; filename="trainyard_report.py"'
    assert b"def report(step" in answer.content


UNFOUND = """
import argparse, json
parser = argparse.ArgumentParser()
parser.add_argument("--k", type=int, choices=range(1, 4), default=1)
for name, value in json.load(open("settings.json")).items():
    parser.add_argument("--" + name, type=type(value), default=value)
args, rest = parser.parse_known_args()
"""


def test_the_form_and_the_plan_tell_what_is_not_known_of_arguments(browser: Client) -> None:
    browser.post("/code/new", {"project": "yard", "file": SimpleUploadedFile("train.py", UNFOUND.encode())})
    version = CodeVersion.objects.get()
    text = squeezed(browser.get(address(version)).content.decode())
    assert "One of 1, 2, 3." in text
    assert "false is refused, since only the script knows which text it reads as false" in text
    model = {"kind": "script", "digest": version.digest, "entry": "train.py", "args": {"use_bias": "False"}}
    body = {"project": "yard", "spec": {"version": 1, "model": model}}
    answer = browser.post("/api/v1/experiments/validate", json.dumps(body), content_type="application/json")
    warnings = {each["message"] for each in answer.json()["plan"]["warnings"]}
    assert any("passes over arguments that it does not declare" in each for each in warnings)
    assert any("the text 'False'" in each and "counts as true" in each for each in warnings)
    model["args"] = {"k": 4}
    answer = browser.post("/api/v1/experiments/validate", json.dumps(body), content_type="application/json")
    assert "one of 1, 2, 3, not 4" in answer.json()["errors"][0]["message"]


@pytest.mark.parametrize(
    ("devices", "axes", "mesh"),
    [
        ("", "", None),
        ("simulated", "8", {"devices": "cpu", "simulate": 8, "shape": [8], "axis_names": ["data"]}),
        (
            "simulated",
            "data=2, model = 4",
            {"devices": "cpu", "simulate": 8, "shape": [2, 4], "axis_names": ["data", "model"]},
        ),
    ],
)
def test_a_script_gets_the_devices_of_a_mesh(
    browser: Client, code: CodeVersion, devices: str, axes: str, mesh: dict[str, Any] | None
) -> None:
    fields = with_rows(entries(browser.get(address(code))), epochs={"text": "3"})
    answer = browser.post(address(code), {**fields, "devices": devices, "axes": axes, "do": "submit"})
    assert answer.status_code == 303, answer.content.decode()[:5000]
    spec = present(Job.objects.get(kind="train").revision).spec_json
    expected = mesh and {**mesh, "batch_axis": "data", "layout": [], "preallocate": False}
    assert spec.get("mesh") == expected


@pytest.mark.parametrize(
    ("devices", "axes", "message"),
    [
        ("simulated", "", "Enter how many devices it gets"),
        ("", "data=2", "Choose the devices, or leave the axes empty."),
        ("gpu", "data", "&#x27;data&#x27; is no axis; write names and numbers, such as data=2, model=4."),
        ("gpu", "data=2, data=4", "is named twice"),
    ],
)
def test_devices_of_a_script_that_cannot_be_read_are_refused(
    browser: Client, code: CodeVersion, devices: str, axes: str, message: str
) -> None:
    fields = with_rows(entries(browser.get(address(code))), epochs={"text": "3"})
    page = browser.post(address(code), {**fields, "devices": devices, "axes": axes, "do": "submit"})
    assert page.status_code == 422
    assert message in squeezed(page.content.decode())
