"""Every template in the table: its entry matches the model. A new template needs no new test here."""

import dataclasses
import functools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jobs.spec.checks.data import problems
from jobs.spec.data.encoding import encoded
from jobs.spec.data.profile import Profile
from jobs.spec.plan.variables import parameters, variables
from jobs.spec.templates import TEMPLATES
from jobs.spec.templates.info import TemplateInfo
from tests.engine.compiled.test_program import assert_equal, train
from tests.engine.helpers import profiled, spec_of
from tests.engine.sequences import waves
from tests.engine.texts import described, reviews
from workers.engine.data.dataset import Dataset
from workers.engine.training.prepare import Prepared

FIT = {"epochs": 3, "batch_size": 64, "learning_rate": 0.01}
OTHER_VALUES = {float: 0.3, int: 3}


def profile_for(info: TemplateInfo, task: str = "multiclass") -> Profile:
    if "text" in info.data_kinds:
        spec = spec_of("d", info.name)
        return encoded(spec, described(task))
    kinds: dict[str, dict[str, Any]] = {
        "image": {"kind": "image", "input_shape": (8, 8, 1)},
        "vector": {"kind": "vector", "input_shape": (5,)},
        "sequence": {"kind": "sequence", "input_shape": (5, 2)},
    }
    body = {
        "rows": 9, "task": task, "target": "y", "features": ("x",), "outputs": 10,
        "columns": (), "preview": (),
        **next(facts for kind, facts in kinds.items() if kind in info.data_kinds),
    }  # fmt: skip
    return Profile.model_validate(body)


def variants(info: TemplateInfo) -> list[dict[str, Any]]:
    """Return the defaults, and arguments with every number and switch at another value."""
    fields = info.arguments.model_fields.items()
    others = {name: OTHER_VALUES[f.annotation] for name, f in fields if f.annotation in OTHER_VALUES}
    if info.name == "sequence":  # only a convolution has `kernel_steps`
        recurrent = {name: value for name, value in others.items() if name != "kernel_steps"}
        return [{}, recurrent, {**others, "kind": "conv"}]
    return [{}, others | {name: not f.default for name, f in fields if f.annotation is bool}]


def sizes(info: TemplateInfo, args: dict[str, Any]) -> list[str]:
    """Return the names of a template's counts and widths."""
    without = {"kernel_steps"} if info.name == "sequence" and args.get("kind") != "conv" else set()
    fields = info.arguments.model_fields.items()
    return [name for name, field in fields if field.annotation is int and name not in without]


def switches(args: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in args.items() if type(value) is not int}


# Models of KerasTuner's hypermodels are large; see `test_hypermodels`.
NETWORKS = [info for info in TEMPLATES.values() if info.by_gradient and not info.is_hypermodel]
CASES = [(info, args) for info in NETWORKS for args in variants(info)]
IDS = [f"{info.name} {args}" for info, args in CASES]
GRU = pytest.param(TEMPLATES["sequence"], {"kind": "gru", "layers": 2}, id="gru")
TRAINED = [(info, {**dict.fromkeys(sizes(info, args), 2), **switches(args)}) for info, args in CASES]
"""With two of everything that can be repeated, also among the defaults: the time to compile grows with it."""
TRAINED_IDS = [f"{info.name} {args}" for info, args in TRAINED]
QUICK = ("linear", "mlp", "text_bow")
"""Trained in the first tier, without dropout; `tests/engine/long_trainings` has the rest."""
QUICK_CASES = [(info, args) for info, args in TRAINED if info.name in QUICK and "dropout" not in args]


@pytest.mark.parametrize(
    ("info", "args"), [*(pytest.param(*case, id=name) for case, name in zip(CASES, IDS, strict=True)), GRU]
)
@pytest.mark.parametrize("task", ["multiclass", "binary"])
def test_the_listed_variables_are_those_that_keras_creates(info: Any, args: Any, task: str) -> None:
    from workers.engine.models.build import build
    from workers.engine.models.scaling import Scaling

    if info.layers is None:
        pytest.skip("its variables are known only once a model was built")
    profile = profile_for(info, task)
    spec = spec_of("d", info.name, args=args)
    last = profile.input_shape[-1]
    model = build(spec, profile, Scaling(np.zeros(last), np.ones(last)), name="x", seed=0)
    trainable = {v.path for v in model.trainable_variables}
    built = [(v.path, tuple(v.shape), v.path in trainable) for v in model.weights]
    assert [(v.path, v.shape, v.trainable) for v in variables(spec.model, profile)] == built
    assert parameters(spec.model, profile) == sum(math.prod(v.shape) for v in model.trainable_variables)


@pytest.fixture(scope="module")
def data_for(tmp_path_factory: pytest.TempPathFactory) -> Callable[[TemplateInfo], Dataset]:
    from jobs.spec.sections.data import DataSpec
    from workers.engine.data.dataset import load_dataset

    @functools.cache
    def load(name: str, texts: Any) -> Dataset:
        folder = tmp_path_factory.mktemp(name)
        writers = {"reviews": reviews, "waves": waves}
        file = writers[name](folder) if name in writers else profiled(folder, bundled=name)
        return load_dataset(file, DataSpec(dataset=name), texts)

    def load_for(info: TemplateInfo) -> Dataset:
        names = {"text": "reviews", "image": "digits", "vector": "iris", "sequence": "waves"}
        return load(next(name for kind, name in names.items() if kind in info.data_kinds), info.texts)

    return load_for


@pytest.mark.parametrize(("info", "args"), QUICK_CASES, ids=lambda value: getattr(value, "name", None))
def test_a_cached_model_with_another_seed_and_other_rates_trains_like_a_new_one(
    data_for: Callable[[TemplateInfo], Dataset], tmp_path: Path, info: Any, args: Any
) -> None:
    from workers.engine.training.model_cache import ModelCache
    from workers.engine.training.prepare import prepare

    data = data_for(info)
    halved = {name: value / 2 for name, value in args.items() if name in info.traced}
    first, other = (spec_of("any", info.name, args={**args, **more}, fit=FIT) for more in ({}, halved))
    rows = data.parts.train[:256]
    models = ModelCache()
    begun = models.prepare(first, data, rows, name="a", seed=1)
    train(begun, tmp_path / "first", begun.loop(epochs=3))
    cached = models.prepare(other, data, rows, name="b", seed=2)
    assert cached.program is begun.program
    built = prepare(other, data, rows, name="b", seed=2)
    assert_equal(
        train(cached, tmp_path / "kept", cached.loop(epochs=3)),
        train(built, tmp_path / "built", built.loop(epochs=3)),
    )


@pytest.fixture
def unlisted(monkeypatch: pytest.MonkeyPatch) -> TemplateInfo:
    """Remove a template's variable list."""
    info = dataclasses.replace(TEMPLATES["mlp"], layers=None, width="")
    monkeypatch.setitem(TEMPLATES, "mlp", info)
    return info


MESH = {"devices": "cpu", "shape": [1], "axis_names": ["data"], "batch_axis": "data"}


def test_the_plan_of_a_template_without_a_list_names_the_unknown_parts(unlisted: TemplateInfo) -> None:
    from jobs.spec.plan.plan import Situation
    from jobs.spec.plan.planning import make_plan
    from jobs.spec.sections.resources import WorkerSize

    spec = spec_of("any", mesh={**MESH, "layout": [{"match": "no/such", "axes": [None]}]})
    assert problems(spec, profile_for(unlisted)) == []
    plan = make_plan(spec, profile_for(unlisted), Situation(1, (WorkerSize(1),)), ["train"])
    assert (plan.parameters, plan.memory, plan.variables) == (None, None, ())
    assert {"/model/template"} == {w.pointer for w in plan.warnings if "cannot be computed" in w.message}


def test_the_layout_of_a_template_without_a_list_is_checked_against_a_built_model(
    unlisted: TemplateInfo, data_for: Callable[[TemplateInfo], Dataset]
) -> None:
    from workers.engine.errors import BadLayout
    from workers.engine.models.mesh import use_mesh
    from workers.engine.training.prepare import prepare

    data = data_for(unlisted)

    def prepared(match: str) -> Prepared:
        spec = spec_of("any", mesh={**MESH, "layout": [{"match": match, "axes": [None, None]}]})
        return prepare(spec, data, data.parts.train, name="t", seed=0)

    try:
        assert prepared("dense_1/kernel").model.get_layer("dense_1").units == 64
        with pytest.raises(BadLayout, match="'dense_2/kernel' matches no variable"):
            prepared("dense_2/kernel")
    finally:
        use_mesh(None, [], 1)
