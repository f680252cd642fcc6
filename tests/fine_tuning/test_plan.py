"""A fine-tuning before it runs: who may start it, whether the version fits, and which layers are frozen."""

from typing import Any

import pytest

from jobs.actions.experiments import experiments
from jobs.actions.storage import artifacts, deletions
from jobs.errors import BadSpec, TrainyardError
from jobs.models import Alias, ModelVersion, Project
from jobs.queries.experiments import plan
from tests.datasets.making import bundle
from tests.fine_tuning.making import DIGITS, chain, make_version, node, tuned
from tests.people import People


@pytest.fixture
def version(people: People) -> ModelVersion:
    bundle()
    return make_version(project=people.project, by=people.owner)


def wrong(people: People, body: dict[str, Any], project: Project | None = None) -> dict[str, str]:
    checked = plan.validate_spec(project or people.project, body, by=people.member)
    return {problem.pointer.removeprefix("/spec"): problem.message for problem in checked.problems}


def test_the_plan_names_the_frozen_layers_and_counts_what_is_trained(
    people: People, version: ModelVersion
) -> None:
    checked = plan.validate_spec(people.project, tuned(args={"freeze_to": "norm_1"}), by=people.member)
    assert checked.problems == []
    assert checked.plan is not None
    tuning = checked.plan.fine_tuning
    assert tuning is not None
    assert (tuning.version, tuning.digest, tuning.head) == ("digits/1", version.artifact_id, "keep")
    assert [(layer.path, layer.frozen, layer.head) for layer in tuning.layers] == [
        ("normalize", True, False), ("dense_1", True, False), ("norm_1", True, False),
        ("dense_2", False, False), ("output", False, True),
    ]  # fmt: skip
    assert (tuning.parameters, tuning.trainable) == (2080 + 128 + 528 + 170, 528 + 170)
    assert checked.plan.parameters == tuning.trainable


@pytest.mark.parametrize(("args", "trainable"), [
    ({}, 2080 + 64 + 528 + 170),
    ({"freeze_to": "all"}, 170),
    ({"freeze_to": "all", "head": "new"}, 17 * 10),
    ({"freeze_to": "all", "head": "on_top"}, 11 * 10),
])  # fmt: skip
def test_each_head_has_its_parameters(
    people: People, version: ModelVersion, args: dict[str, Any], trainable: int
) -> None:
    spec_plan = plan.validate_spec(people.project, tuned(args=args), by=people.member).plan
    assert spec_plan is not None
    assert spec_plan.fine_tuning is not None
    assert spec_plan.fine_tuning.trainable == trainable


def test_layers_of_models_inside_are_in_their_place(people: People) -> None:
    bundle()
    graph = (
        node("input", "InputLayer"),
        node("body", "Functional", parameters=30, is_model=True, inputs=[0]),
        node("top", parameters=170, width=10, inputs=[1]),
        node("body/low", parameters=10, parent=1),
        node("body/high", parameters=20, parent=1, inputs=[3]),
    )
    make_version(project=people.project, by=people.owner, graph=graph)
    spec_plan = plan.validate_spec(people.project, tuned(args={"freeze_to": "body"}), by=people.member).plan
    assert spec_plan is not None
    assert spec_plan.fine_tuning is not None
    assert [(layer.path, layer.frozen) for layer in spec_plan.fine_tuning.layers] == [
        ("body/low", True), ("body/high", True), ("top", False),
    ]  # fmt: skip


@pytest.mark.parametrize(("args", "pointer", "message"), [
    ({"freeze_to": "dense_9"}, "/model/args/freeze_to",
     "digits/1 has no layer 'dense_9' before its head; they are normalize, dense_1, norm_1, dense_2"),
    ({"freeze_to": "output"}, "/model/args/freeze_to", "digits/1 has no layer 'output' before its head"),
])  # fmt: skip
def test_a_layer_that_is_not_there_is_named_with_those_that_are(
    people: People, version: ModelVersion, args: dict[str, Any], pointer: str, message: str
) -> None:
    assert wrong(people, tuned(args=args))[pointer].startswith(message)


def test_searched_layers_and_heads_are_checked_too(people: People, version: ModelVersion) -> None:
    space: list[dict[str, Any]] = [
        {"name": "freeze_to", "kind": "choice", "values": ["none", "dense_1", "nowhere"]},
        {"name": "learning_rate_factor", "kind": "float", "min": 0.01, "max": 1.0, "sampling": "log"},
    ]
    messages = wrong(people, tuned(search={"space": space}))
    assert [*messages] == ["/search/space/0"]
    assert "nowhere" in messages["/search/space/0"]
    space[0]["values"] = ["none", "dense_1"]
    assert wrong(people, tuned(search={"space": space})) == {}


@pytest.mark.parametrize(("fields", "message"), [
    ({"signature": {"inputs": [{"name": "x", "dtype": "float32", "shape": [28, 28, 1]}],
                    "outputs": [{"name": "y", "dtype": "float32", "shape": [10]}]}},
     "digits/1 takes rows of shape 28 × 28 × 1, but these data have 8 × 8 × 1"),
    ({"signature": {"inputs": [{"name": "a", "dtype": "float32", "shape": [8, 8, 1]}] * 2,
                    "outputs": [{"name": "y", "dtype": "float32", "shape": [10]}]}},
     "digits/1 has 2 inputs and 1 outputs"),
    ({"signature": {}}, "digits/1 was not validated"),
])  # fmt: skip
def test_inputs_that_differ_are_refused(people: People, fields: dict[str, Any], message: str) -> None:
    bundle()
    make_version(project=people.project, by=people.owner, **fields)
    assert wrong(people, tuned())["/model/model"].startswith(message)


def test_other_classes_need_a_new_head(people: People, version: ModelVersion) -> None:
    ModelVersion.objects.update(class_labels=["b", "a"])
    message = wrong(people, tuned())["/model/args/head"]
    assert message.startswith("digits/1 has the classes b, a, and these data have 0, 1")
    assert message.endswith("; use head new")
    assert wrong(people, tuned(args={"head": "new"})) == {}


def test_a_table_needs_the_columns_of_the_version(people: People) -> None:
    bundle()
    columns = [{"name": "sepal_length", "type": "number"}, {"name": "petals", "type": "number"}]
    signature = {
        "inputs": [{"name": "input", "dtype": "float32", "shape": [2]}],
        "outputs": [{"name": "output", "dtype": "float32", "shape": [10]}],
        "columns": columns,
    }
    make_version(project=people.project, by=people.owner, signature=signature)
    assert "takes the column 'petals', which these data lack" in wrong(people, tuned())["/data/dataset"]
    body = tuned()
    body["data"]["features"] = ["sepal_length"]
    assert "has no effect" in wrong(people, body)["/data/features"]


def test_quantized_weights_are_refused(people: People) -> None:
    bundle()
    graph = chain(*DIGITS[:-1], node("output", parameters=170, width=10, dtypes=["int8", "float32"]))
    make_version(project=people.project, by=people.owner, graph=graph)
    assert "is quantized" in wrong(people, tuned())["/model/model"]


def test_a_version_that_needs_code_to_be_loaded_is_refused(people: People, version: ModelVersion) -> None:
    ModelVersion.objects.update(needs_code=True)
    assert "needs code of its own" in wrong(people, tuned())["/model/number"]


def test_a_policy_is_accepted_if_it_trains_and_other_templates_are_refused(
    people: People, version: ModelVersion
) -> None:
    assert wrong(people, tuned(precision={"policy": "mixed_bfloat16"})) == {}
    assert "/precision/policy" in wrong(people, tuned(precision={"policy": "bfloat16"}))
    space: list[dict[str, Any]] = [{"name": "template", "kind": "choice", "values": ["mlp", "linear"]}]
    assert "/search/space/0/name" in wrong(people, tuned(search={"space": space}))


def test_attention_in_float16_on_cpu_devices_is_refused_with_the_layers(people: People) -> None:
    bundle()
    attention: dict[str, Any] = {"kind": "MultiHeadAttention", "parameters": 64, "width": 32}
    graph = chain(
        *DIGITS[:-1],
        node("in_one", needs_gpu_in_float16=True, **attention), node("in_steps", **attention), DIGITS[-1],
    )  # fmt: skip
    make_version(project=people.project, by=people.owner, graph=graph)
    half = {"policy": "mixed_float16"}
    mesh = {"shape": [2], "axis_names": ["data"], "simulate": 2}
    message = wrong(people, tuned(precision=half, mesh=mesh))["/precision/policy"]
    assert "in float16 (in_one), and the mesh has CPU devices" in message
    accepted: list[dict[str, Any]] = [
        {"policy": "mixed_bfloat16"},
        {**half, "overrides": [{"match": "in_one", "policy": "float32"}]},
    ]
    for precision in accepted:
        assert wrong(people, tuned(precision=precision, mesh=mesh)) == {}
    assert wrong(people, tuned(precision=half)) == {}


def test_a_version_of_a_project_that_the_user_cannot_see_does_not_exist(people: People) -> None:
    bundle()
    elsewhere = Project.objects.get(slug="elsewhere")
    make_version(project=elsewhere, by=people.stranger)
    expected = {"/model/model": "there is no registered model 'digits' with a version"}
    assert wrong(people, tuned()) == expected
    mine = plan.validate_spec(elsewhere, tuned(), by=people.stranger)
    assert mine.problems == []
    with pytest.raises(BadSpec):
        experiments.create(people.project, name="x", spec=tuned(), by=people.member)


@pytest.mark.parametrize(("section", "pointer"), [
    ({"number": 7}, "/model/number"), ({"alias": "champion", "number": None}, "/model/alias"),
    ({"digest": "0" * 64}, "/model/digest"), ({"model": "nothing"}, "/model/model"),
])  # fmt: skip
def test_a_version_that_does_not_exist_is_refused_at_its_field(
    people: People, version: ModelVersion, section: dict[str, Any], pointer: str
) -> None:
    body = tuned()
    body["model"] |= section
    body["model"] = {name: value for name, value in body["model"].items() if value is not None}
    assert [*wrong(people, body)] == [pointer]


def test_a_revision_keeps_the_version_that_its_alias_named(people: People, version: ModelVersion) -> None:
    alias = Alias.objects.create(model=version.model, name="champion", version=version)
    body = tuned()
    del body["model"]["number"]
    experiment = experiments.create(
        people.project,
        name="x",
        spec={**body, "model": {**body["model"], "alias": "champion"}},
        by=people.member,
    )
    revision = experiment.revisions.get()
    assert revision.spec_json["model"] == {
        "kind": "version", "model": "digits", "number": 1, "digest": version.artifact_id, "args": {},
    }  # fmt: skip
    alias.delete()
    job = experiments.submit(experiment, by=people.member)
    assert job.revision == revision, "the revision is pinned, so it is submitted as it is"


def test_a_version_that_an_experiment_starts_from_is_kept(people: People, version: ModelVersion) -> None:
    experiments.create(people.project, name="Further", spec=tuned(), by=people.member)
    with pytest.raises(TrainyardError, match="Further"):
        deletions.delete(version, by=people.owner)
    assert ModelVersion.objects.filter(pk=version.pk).exists()


def test_the_task_names_the_file_of_the_version_and_whether_it_came_from_outside(
    people: People, version: ModelVersion
) -> None:
    from jobs.actions.runs.tasks import base_model_of
    from jobs.store import store

    artifact = artifacts.adopt(store().put_blocks([b"weights"]))
    ModelVersion.objects.filter(pk=version.pk).update(artifact=artifact)
    spec = plan.require_valid_spec(people.project, tuned(), by=people.member)
    file = base_model_of(spec)
    assert file is not None
    assert (file.path, file.digest) == (str(store().path(artifact.digest)), artifact.digest)
    assert file.foreign
