"""Plans and refusals for text templates."""

import pytest

from jobs.messages.task import DatasetFile
from jobs.spec.checks import data as data_checks
from jobs.spec.data.file_limits import FileLimits
from jobs.spec.data.profile import Profile
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.plan import find_model
from jobs.spec.plan.plan import Situation
from jobs.spec.plan.planning import make_plan
from jobs.spec.sections.resources import WorkerSize
from jobs.spec.space.values import apply_values
from tests.engine.models.test_texts import built, loaded, spec_for, with_options
from tests.engine.processes.conftest import set_cost  # noqa: F401
from tests.engine.processes.test_lockstep import assert_alike, task_of, trained  # noqa: F401
from tests.engine.texts import reviews
from tests.present import present


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> DatasetFile:
    return reviews(tmp_path_factory.mktemp("reviews"))


def problems(spec: ExperimentSpec, profile: Profile) -> dict[str, str]:
    return {problem.pointer: problem.message for problem in data_checks.problems(spec, profile)}


@pytest.mark.parametrize(
    ("options", "features", "message"),
    [
        ({"review": "words", "title": "words"}, None, "no text is encoded as tokens"),
        ({}, ["city", "price"], "needs texts, but the data are vectors; use mlp or trees or linear"),
    ],
)
def test_a_template_without_the_texts_that_it_needs_is_refused_before_it_runs(
    file: DatasetFile, options: dict[str, str], features: list[str] | None, message: str
) -> None:
    spec = with_options(spec_for("text_transformer"), **{n: {"encode": e} for n, e in options.items()})
    data = present(spec.data).model_copy(update={"features": tuple(features) if features else None})
    spec = spec.model_copy(update={"data": data})
    assert message in problems(spec, Profile.model_validate(file.profile))["/model/template"]


def test_the_plan_shows_the_size_and_memory_of_a_template_for_texts(file: DatasetFile) -> None:
    profile = Profile.model_validate(file.profile)
    longer = with_options(spec_for("text_transformer"), review={"encode": "tokens", "length": 200})
    plans = [
        make_plan(spec, profile, Situation(1, (WorkerSize(1),)), ["train"])
        for spec in (spec_for("text_transformer"), longer)
    ]
    assert problems(longer, profile) == {}
    (short, long) = plans
    assert short.parameters is not None and long.parameters is not None
    # A vector of 8 numbers for each further position.
    assert long.parameters - short.parameters == 190 * 8
    assert short.memory is not None and long.memory is not None
    assert long.memory.activations > 10 * short.memory.activations


def test_the_plan_describes_other_features_of_a_table(file: DatasetFile) -> None:
    profile = Profile.model_validate(file.profile)
    spec = spec_for("text_transformer")
    spec = spec.model_copy(
        update={"data": present(spec.data).model_copy(update={"features": ("title", "price")})}
    )
    assert problems(spec, profile) == {}
    plan = make_plan(spec, profile, Situation(1, (WorkerSize(1),)), ["train"])
    assert plan.parameters == built(spec, loaded(file, spec)).count_params()
    assert not [warning for warning in plan.warnings if warning.pointer == "/data"]


def test_an_encoding_that_makes_the_input_too_large_is_refused_before_it_runs(
    monkeypatch: pytest.MonkeyPatch, file: DatasetFile
) -> None:
    monkeypatch.setattr("jobs.spec.data.encoding.DEFAULT_LIMITS", FileLimits(table_bytes=1))
    profile = Profile.model_validate(file.profile)
    assert problems(spec_for("mlp"), profile) == {}
    assert "choose" in problems(spec_for("text_bow"), profile)["/data/preprocessing"]


def test_trials_of_several_templates_have_the_encoding_of_the_first(file: DatasetFile) -> None:
    names = ["text_bow", "mlp", "trees"]
    search = {"space": [{"name": "template", "kind": "choice", "values": names}], "max_trials": 3}
    spec = spec_for("text_bow", args={}, search=search)
    assert problems(spec, Profile.model_validate(file.profile)) == {}
    inputs = [loaded(file, apply_values(spec, {"template": name})).x for name in names]
    assert len({x[:].tobytes() for x in inputs}) == 1
    assert present(apply_values(spec, {"template": "mlp"}).data).texts == "words_and_characters"
    # Equal encodings leave the spec as it is.
    assert present(apply_values(spec_for("mlp"), {"template": "linear"}).data).texts is None


@pytest.mark.parametrize(
    ("texts", "names", "message"),
    [
        (None, ["text_bow", "text_transformer"], "text_transformer reads the words of a text in their order"),
        ("tokens", ["text_bow", "trees"], "trees cannot use the words of 'review' in their order"),
        ("tokens", ["text_bow", "text_transformer"], None),
    ],
)
def test_searched_templates_must_take_the_encoding_of_the_experiment(
    file: DatasetFile, texts: str | None, names: list[str], message: str | None
) -> None:
    search = {"space": [{"name": "template", "kind": "choice", "values": names}], "max_trials": 2}
    body = spec_for("text_bow", args={}, search=search).to_json()
    body["data"] |= {"texts": texts}
    errors = problems(ExperimentSpec.model_validate(body), Profile.model_validate(file.profile))
    assert errors.keys() == ({"/search/space/0"} if message else set())
    assert (message or "") in errors.get("/search/space/0", "")


def test_the_search_for_a_good_model_has_templates_that_take_the_same_texts(file: DatasetFile) -> None:
    profile = Profile.model_validate(file.profile)
    names = [info.name for info in find_model.suitable(profile)]
    assert "text_bow" in names
    assert "text_transformer" not in names
    body = find_model.spec_for("reviews", 1, profile, find_model.Budget(trials=20))
    assert problems(ExperimentSpec.model_validate(body), profile) == {}
