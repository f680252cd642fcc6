"""Search spaces from other tools that are refused, merged or too large."""
# ruff: noqa: E501  one case per line: the input, the pointer, the message

import json
import time
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from jobs.spec.formats.importing import READERS, read
from jobs.spec.formats.reading import FormatError
from jobs.spec.space.search_space import Space
from jobs.spec.space.size import grid_size
from tests.contracts.test_formats import FILES, VERTEX, Json, katib, optuna, vertex, wandb


def refused(body: Any, format: Any = None) -> dict[str, str]:  # noqa: A002
    """Return the problems in a text or value by pointer."""
    with pytest.raises(FormatError) as caught:
        read(body if isinstance(body, str) else json.dumps(body), format)
    return {problem.pointer: problem.message for problem in caught.value.problems}


FLOAT = {"name": "x", "min_value": 0.0, "max_value": 1.0, "conditions": []}


def kt(kind: str = "Float", **config: Any) -> Json:
    return {"space": [{"class_name": kind, "config": {**FLOAT, **config}}], "values": {}}


REFUSALS: list[tuple[Any, str, str]] = [
    # KerasTuner
    (kt("Layer"), "/space/0/class_name", "expected one of Int, Float, Boolean, Choice, Fixed, got 'Layer'"),
    (kt(min_value=2.0), "/space/0", "min 2.0 is above max 1.0"),
    (kt(min_value="low"), "/space/0/config/min_value", "expected a finite number, got 'low'"),
    (kt("Int", min_value=0.5), "/space/0/config/min_value", "expected an integer, got 0.5"),
    (kt(sampling="cubic"), "/space/0/config/sampling", "expected one of linear, log, reverse_log, got 'cubic'"),
    (kt(default=7.0), "/space/0", "outside 0.0 to 1.0"),
    (kt(distribution="normal"), "/space/0/config/distribution", "'distribution' is not supported"),
    (kt(name="my rate"), "/space/0", "'my rate' is not a valid name"),
    (kt(conditions=[{"class_name": "Child", "config": {}}]), "/space/0/config/conditions/0/class_name", "Parent"),
    (kt(conditions=[{"class_name": "Parent", "config": {"name": "y", "values": [1]}}]), "/space/0", "'x' depends on 'y'"),
    ({**kt(), "version": 2}, "/version", "not supported"),
    ({"space": kt()["space"] * 2, "values": {}}, "/space/1", "'x' is used twice"),
    ({"space": [], "values": {}}, "", "no hyperparameters found"),
    # Vertex AI
    (vertex({**VERTEX, "scaleType": "UNIT_LOG_SCALE"}), "/parameters/0", "min 0.0 must be above 0"),
    (vertex({**VERTEX, "integerValueSpec": {}}), "/parameters/0", "exactly one of doubleValueSpec"),
    (vertex({"parameterId": "x", "doubleValueSpec": {"minValue": "a", "maxValue": 1}}), "/parameters/0/doubleValueSpec/minValue", "number"),
    (vertex({"parameter_id": "x", "discrete_value_spec": {"values": [1, 2]}, "scale_type": "UNIT_LOG_SCALE"}), "/parameters/0/scale_type", "not supported for a list of values"),
    (vertex(max_trial_count=1, max_trialCount=2), "/max_trialCount", "'max_trial_count' is given, too"),
    (vertex(algorithm="BANDIT"), "/algorithm", "expected one of"),
    (vertex(metrics=[{"metricId": "a"}, {"metricId": "b"}]), "/metrics", "2 metrics given; exactly one objective"),
    (vertex(observationNoise="HIGH"), "/observationNoise", "executions_per_trial"),
    (vertex(measurementSelectionType="LAST_MEASUREMENT"), "/measurementSelectionType", "best epoch"),
    (vertex(medianAutomatedStoppingSpec={}), "/medianAutomatedStoppingSpec", "not supported"),
    (vertex(metrics=[{"metricId": "val_loss", "safetyConfig": {"safetyThreshold": 1}}]), "/metrics/0/safetyConfig", "not supported"),
    (
        vertex({"parameterId": "x", "integerValueSpec": {"minValue": 1, "maxValue": 2}, "conditionalParameterSpecs": [
            {"parentIntValues": {"values": [3]}, "parameterSpec": {**VERTEX, "parameterId": "y"}}]}),
        "/parameters/0/conditionalParameterSpecs/0/parameterSpec", "'x' never has the value 3; its values are integers from 1 to 2",
    ),
    (vertex({**VERTEX, "conditionalParameterSpecs": [{"parameterSpec": VERTEX}]}), "/parameters/0/conditionalParameterSpecs/0", "as the condition"),
    ({"studySpec": vertex(), "maxTrialCount": 0}, "/maxTrialCount", "greater than or equal to 1"),
    # Katib
    (katib({"distribution": "normal"}), "/spec/parameters/0/feasibleSpace/distribution", "'normal' is not supported"),
    (katib({"distribution": "logNormal"}), "/spec/parameters/0/feasibleSpace/distribution", "not supported"),
    (katib({"distribution": "logUniform", "step": "0.1"}), "/spec/parameters/0/feasibleSpace/step", "multiplies by it"),
    (katib({"list": ["a"]}), "/spec/parameters/0/feasibleSpace/list", "not supported"),
    (katib(kind="unknown"), "/spec/parameters/0/parameterType", "expected one of int, double"),
    (katib(algorithm={"algorithmName": "cmaes"}), "/spec/algorithm/algorithmName", "expected one of random, grid"),
    (katib(algorithm={"algorithmName": "random", "algorithmSettings": [{"name": "n_jobs", "value": "2"}]}), "/spec/algorithm/algorithmSettings/0", "n_jobs"),
    (katib(objective={"type": "minimize", "objectiveMetricName": "val_loss", "goal": 0.01}), "/spec/objective/goal", "does not stop at a goal"),
    (katib(objective={"type": "minimize", "objectiveMetricName": "val_loss", "metricStrategies": [{"name": "val_loss", "value": "latest"}]}), "/spec/objective/metricStrategies/0/value", "best epoch"),
    (katib(maxFailedTrialCount=3), "/spec/maxFailedTrialCount", "max_consecutive_failures"),
    (katib(earlyStopping={"algorithmName": "medianstop"}), "/spec/earlyStopping", "search.pruner"),
    (katib(nasConfig={"graphConfig": {}}), "/spec/nasConfig", "not supported"),
    # Weights & Biases
    (wandb({"distribution": "normal", "mu": 0, "sigma": 1}), "/parameters/x/distribution", "'normal' is not supported"),
    (wandb({"distribution": "q_log_uniform_values", "min": 1, "max": 8}), "/parameters/x/distribution", "not supported"),
    (wandb({"values": [1, 2], "probabilities": [0.1, 0.9]}), "/parameters/x/probabilities", "equally likely"),
    (wandb({"values": [1, "a"]}), "/parameters/x/values", "mixes types"),
    (wandb({"values": [[1], [2]]}), "/parameters/x/values/0", "expected a string, a number, true or false"),
    (wandb({"values": [None]}), "/parameters/x/values/0", "expected a string, a number, true or false"),
    (wandb({"distribution": "q_uniform", "min": 1, "max": 9, "q": 2}), "/parameters/x/min", "not a multiple of q = 2"),
    (wandb({"distribution": "q_uniform", "min": 0, "max": 8, "q": 0}), "/parameters/x/q", "q must be above 0"),
    (wandb({"distribution": "log_uniform", "min": -9, "max": 900}), "/parameters/x/max", "an exponent of e"),
    (wandb({"min": 1}), "/parameters/x", "'max' is missing"),
    (wandb(early_terminate={"type": "hyperband", "min_iter": 3}), "/early_terminate", "search.pruner"),
    (wandb(metric={"name": "val_loss", "target": 0.1}), "/metric/target", "does not stop at a target"),
    (wandb(metric={"name": "val_loss", "impute": "best"}), "/metric/impute", "not supported"),
    (wandb(method="custom"), "/method", "expected one of random, grid, bayes, got 'custom'"),
    (wandb(scheduler={"engine": "ax"}), "/scheduler", "not supported"),
    (wandb(run_cap=10**9), "/run_cap", "less than or equal to"),
    # Optuna
    (optuna("NormalDistribution"), "/x/name", "expected one of FloatDistribution"),
    (optuna(log=True, step=0.1), "/x/attributes/step", "step together with log"),
    (optuna("IntDistribution", low=1, high=8, log=True, step=2), "/x/attributes/step", "only step 1"),
    (optuna(q=3), "/x/attributes/q", "not supported"),
    ({"x": {"name": "CategoricalDistribution", "attributes": {"choices": [None, 1]}}}, "/x/attributes/choices/0", "expected a string, a number"),
    ({"x": '{"name": "FloatDistribution", "attributes": '}, "/x", "not valid JSON"),
    # none of them, or no text to speak of
    ({"a": 1}, "", "the format is not recognized as KerasTuner, Katib"),
    ({"a": {"type": []}}, "", "the format is not recognized as KerasTuner, Katib"),
    ([1, 2], "", "expected an object"),
    ("", "", "the text is empty"),
    ("{", "", "not valid JSON: line 1"),
    ('{"a": 1, "a": 2}', "", "'a' is used twice"),
    ('{"a": NaN}', "", "NaN is not a JSON number"),
    ('{"a": "\\u0000"}', "/a", "NUL"),
    ("method: random\nparameters: {x: {values: [1]}, x: {values: [2]}}", "/parameters/x", "the key is used twice"),
    ("a: [1\nb: 2", "", "not valid YAML: line 2"),
    ("a: !!python/object/apply:os.system [ls]", "", "not valid YAML"),
    ("method: random\nparameters: {x: {value: 2020-01-01}}", "/parameters/x/value", "date values are not supported"),
    *((f"a: !!{tag} x", "", "does not match its tag") for tag in ("bool", "timestamp", "int", "float")),
    ("\x1b", "", "not valid YAML"),
    ("x" * 100_001, "", "the text has 100001 characters"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "pointer", "message"), REFUSALS)
def test_an_unsupported_setting_is_an_error_with_a_pointer(body: Any, pointer: str, message: str) -> None:
    errors = refused(body)
    assert message in errors[pointer], errors


def test_the_objective_may_be_a_metric_that_only_a_script_reports() -> None:
    imported = read(json.dumps(wandb(metric={"name": "reward", "goal": "maximize"})))
    assert imported.search["objective"] == {"metric": "reward", "direction": "max"}


def test_all_problems_are_reported_together() -> None:
    body = wandb(
        {"distribution": "beta"}, early_terminate={"type": "hyperband"}, metric={"name": "loss", "target": 1}
    )
    assert set(refused(body)) == {"/parameters/x/distribution", "/early_terminate", "/metric/target"}


def test_equal_conditional_parameters_are_merged() -> None:
    child = {**VERTEX, "parameterId": "y"}
    under = [{"parentIntValues": {"values": [v]}, "parameterSpec": child} for v in (1, 2)]
    parent = {"parameterId": "x", "integerValueSpec": {"minValue": 1, "maxValue": 3}}
    space = read(json.dumps(vertex({**parent, "conditionalParameterSpecs": under}))).search["space"]
    assert space[1]["when"] == {"name": "x", "in": [1, 2]}


def test_the_values_of_a_trial_are_ignored_with_a_note() -> None:
    assert "values: ignored for x" in read(json.dumps(kt() | {"values": {"x": 0.7}})).notes[0]


BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    "text",
    [BOMB, "a: &a [*a]", "[" * 5000, "{a: " * 5000, "- " * 5000, '{"a":' * 50_000, "a: " + "9" * 50_000],
)
def test_too_large_texts_are_rejected_quickly(text: str) -> None:
    began = time.process_time()
    assert refused(text)
    assert time.process_time() - began < 2


def test_huge_ranges_are_imported_quickly() -> None:
    body = wandb({"min": 0, "max": 2**53 - 1}, method="random")
    space = TypeAdapter(Space).validate_python(read(json.dumps(body)).search["space"])
    assert grid_size(space, 10**18) == 2**53


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


SAMPLES = [
    yaml.safe_load(path.read_text()) if path.suffix == ".yaml" else json.loads(path.read_text())
    for path in sorted(FILES.iterdir())
]


def places(value: Any) -> list[tuple[Any, Any]]:
    """List every container in a value with each key."""
    if isinstance(value, dict | list):
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        return [(value, key) for key in keys] + [place for key in keys for place in places(value[key])]
    return []


@given(st.sampled_from(SAMPLES), st.integers(0, 10**6), JSON_VALUES)
@settings(max_examples=150, deadline=None)
def test_a_random_value_anywhere_in_a_file_is_imported_or_rejected(
    sample: Any, where: int, value: Any
) -> None:
    body = json.loads(json.dumps(sample))
    all_places = places(body)
    container, key = all_places[where % len(all_places)]
    container[key] = value
    _imported_or_rejected(json.dumps(body))


@given(st.text(max_size=60), st.sampled_from([None, *READERS]))
@settings(max_examples=150, deadline=None)
def test_any_text_is_imported_or_rejected(text: str, format: Any) -> None:  # noqa: A002
    _imported_or_rejected(text, format)


def _imported_or_rejected(text: str, format: Any = None) -> None:  # noqa: A002
    try:
        json.dumps(read(text, format).search, allow_nan=False)
    except FormatError as refused:
        assert refused.problems
        assert all(p.pointer == "" or p.pointer.startswith("/") for p in refused.problems)
