"""Scripts as a spec's model: their arguments, what has no effect on them, and data that may be missing."""

from typing import Any

import pytest
from pydantic import ValidationError

from jobs.messages.script_command import command_of
from jobs.spec.checks import settings as spec_checks
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.problems import Problem, problems
from jobs.spec.sections.script_model import ScriptModel
from jobs.spec.space.values import apply_values
from tests.present import present

DIGEST = "a" * 64
SPACE = [{"name": "rate", "kind": "float", "min": 0.1, "max": 1.0}]


def body(
    search: dict[str, Any] | None = None, model: dict[str, Any] | None = None, **parts: Any
) -> dict[str, Any]:
    fields = {"model": {"kind": "script", "digest": DIGEST, "entry": "train.py", **(model or {})}, **parts}
    return fields if search is None else {**fields, "search": {"space": SPACE, **search}}


def refused(sent: dict[str, Any]) -> list[Problem]:
    """Return the problems in a spec that cannot be parsed."""
    with pytest.raises(ValidationError) as error:
        ExperimentSpec.model_validate(sent)
    return problems(error.value, sent, "/spec")


def checked(sent: dict[str, Any]) -> dict[str, str]:
    """Return the problems in a spec that can be parsed, by pointer."""
    spec_problems = spec_checks.problems(ExperimentSpec.model_validate(sent))
    return {problem.pointer: problem.message for problem in spec_problems}


def test_a_script_needs_no_data_but_a_template_does() -> None:
    spec = ExperimentSpec.model_validate(body())
    assert (spec.data, "data" in spec.to_json()) == (None, False)
    with pytest.raises(ValueError, match="has no data"):
        _ = spec.required_data
    template = {"model": {"kind": "template", "template": "mlp"}}
    assert refused(template) == [Problem("/spec/data", "Field required")]


def command(spec: ExperimentSpec) -> list[str]:
    assert isinstance(spec.model, ScriptModel)
    return command_of(spec.model, ())


def test_the_values_of_a_trial_are_arguments() -> None:
    spec = ExperimentSpec.model_validate(body({}, model={"args": {"epochs": 3, "rate": 0.1, "fast": True}}))
    assert command(apply_values(spec, {"rate": 0.5})) == [
        "train.py", "--epochs", "3", "--rate", "0.5", "--fast"
    ]  # fmt: skip
    module = ExperimentSpec.model_validate(
        body(model={"entry": "-m shop.train", "args": {"shift": -1e-5, "slow": False}})
    )
    assert command(module) == ["-m", "shop.train", "--shift=-1e-05"]


@pytest.mark.parametrize(
    ("model", "pointer", "message"),
    [
        ({"entry": "../train.py"}, "/spec/model/entry", "'../train.py' is no script"),
        ({"entry": "notes.txt"}, "/spec/model/entry", "give the path of a .py file"),
        ({"entry": "-m shop/train"}, "/spec/model/entry", "names no module"),
        ({"args": {"--rate": 1}}, "/spec/model/args", "leave out the dashes"),
        ({"args": {"rate": [[1]]}}, "/spec/model/args/rate/0", "a number, a text, true or false"),
        ({"args": {"rate": "a\0b"}}, "/spec/model/args/rate", "the character NUL"),
        ({"env": {"PYTHONPATH": "x"}}, "/spec/model/env/PYTHONPATH", "is set by Trainyard"),
        ({"env": {"WANDB_API_KEY": "x"}}, "/spec/model/env/WANDB_API_KEY", "seems to be a secret"),
        ({"digest": "short"}, "/spec/model/digest", "match pattern"),
    ],
)
def test_what_a_script_cannot_get_is_refused_at_its_place(
    model: dict[str, Any], pointer: str, message: str
) -> None:
    (problem,) = refused(body(model=model))
    assert problem.pointer == pointer
    assert message in problem.message


def test_neighbouring_fields_of_wrong_types_are_each_named() -> None:
    sent = {
        "model": {"kind": "template", "template": "mlp"},
        "data": {"dataset": 1},
        "fit": {"epochs": "x", "shuffle": "maybe", "batch_size": "y"},
    }
    found = {problem.pointer for problem in refused(sent)}
    assert {"/spec/fit/epochs", "/spec/fit/shuffle", "/spec/fit/batch_size"} <= found
    items = refused(body(model={"args": {"rates": [[1], [2]], "other": [[3]]}}))
    assert [problem.pointer.rpartition("args/")[2] for problem in items] == ["rates/0", "rates/1", "other/0"]
    assert all("a number" in problem.message and "true or false" in problem.message for problem in items)


def test_any_metric_can_be_the_objective_of_a_script_alone() -> None:
    objective = {"objective": {"metric": "reward", "direction": "max"}}
    assert present(ExperimentSpec.model_validate(body(objective)).search).objective.metric == "reward"
    space = [{"name": "units", "kind": "int", "min": 1, "max": 2}]
    sent = {
        "data": {"dataset": "iris"},
        "model": {"kind": "template", "template": "mlp"},
        "search": {**objective, "space": space},
    }
    assert refused(sent) == [
        Problem(
            "/spec/search/objective/metric",
            "'reward' is not a validation metric; give one that begins with val_",
        )
    ]


def test_fields_and_steps_without_effect_on_scripts_are_refused_with_the_reason() -> None:
    messages = checked(
        body(
            {"evaluation": {"kind": "k_fold", "folds": 3}},
            fit={"epochs": 3, "seed": 1, "learning_rate": 0.5, "early_stopping": {"patience": 3}},
            precision={"policy": "mixed_bfloat16"},
            after={"retrain": {"top": 1}, "register": {"model": "net"}},
        )
    )
    assert messages.keys() == {
        "/search/evaluation", "/fit/learning_rate", "/fit/early_stopping", "/precision", "/after/retrain"
    }  # fmt: skip
    assert messages["/fit/learning_rate"].endswith("pass it as an argument; leave it out")


def test_an_algorithm_with_rungs_is_refused_and_a_pruner_is_not() -> None:
    (message,) = checked(body({"algorithm": "hyperband"})).values()
    assert message.startswith("hyperband cannot search over scripts, since a script cannot continue")
    assert not checked(body({"pruner": {"kind": "asha"}}))
