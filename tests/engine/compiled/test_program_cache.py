"""Which trials share a compiled program, and which cached models stay."""

from typing import Any

import pytest

from jobs.spec.experiment import ExperimentSpec
from jobs.spec.sections.mesh import MeshSpec
from tests.engine.compiled.test_program import FIT, SPACE, spec
from tests.engine.helpers import spec_of
from workers.engine.data.dataset import Dataset


def test_every_field_of_a_spec_is_part_of_the_program_key_or_ignored_explicitly() -> None:
    from workers.engine.compiled.cache_key import IGNORED_SPEC_FIELDS

    fields = set(ExperimentSpec.model_fields) - IGNORED_SPEC_FIELDS
    assert fields == {"data", "model", "fit", "precision", "mesh"}


def test_programs_are_shared_on_the_same_mesh_alone(data: Dataset) -> None:
    from workers.engine.compiled.cache_key import program_key

    def key(**mesh: Any) -> str:
        on_mesh = spec("mlp", {}, {}).model_copy(
            update={"mesh": MeshSpec.model_validate(mesh) if mesh else None}
        )
        return program_key(on_mesh, data, data.parts.train)

    both: dict[str, Any] = {"shape": [2, 4], "axis_names": ["data", "model"]}
    rule = {"match": "dense_1/kernel", "axes": [None, "model"]}
    keys = (
        key(),
        key(**both),
        key(**both, layout=[rule]),
        key(**both, batch_axis=None),
        key(shape=[8], axis_names=["data"]),
    )
    assert len(set(keys)) == len(keys)
    assert key(**both) == key(**both, simulate=8)


def test_arguments_that_mean_the_same_share_a_program_and_others_do_not(data: Dataset) -> None:
    from workers.engine.compiled.cache_key import program_key

    def key(momentum: Any) -> str:
        fit = {"optimizer": "sgd", "optimizer_args": {"momentum": momentum}}
        return program_key(spec("mlp", {}, fit), data, data.parts.train)

    assert key(0.0) == key("0.0")
    assert key(0.5) == key("0.9")
    assert key(0.0) != key(0.9)


def test_a_rate_that_follows_the_steps_is_part_of_the_program(data: Dataset) -> None:
    from workers.engine.compiled.cache_key import program_key

    def key(**fit: Any) -> str:
        return program_key(spec("mlp", {"units": 8}, fit), data, data.parts.train)

    cosine, plateau = {"kind": "cosine"}, {"kind": "reduce_on_plateau"}
    assert key(epochs=3, learning_rate=0.1) == key(epochs=4, learning_rate=0.2)
    assert key(schedule=plateau, learning_rate=0.1) == key(schedule=plateau, learning_rate=0.2)
    keys = {key(schedule=cosine), key(schedule=cosine, learning_rate=0.1), key(schedule=cosine, epochs=4)}
    assert len({key(), *keys, key(ema={"momentum": 0.9}), key(ema={"momentum": 0.8})}) == 6


def test_the_least_recently_used_model_leaves_the_cache_first(
    data: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    from workers.engine.training import model_cache

    monkeypatch.setattr(model_cache, "MAX_MODELS", 2)
    models = model_cache.ModelCache()

    def program(units: int) -> Any:
        unit_spec = spec("mlp", {"units": units}, {})
        return models.prepare(unit_spec, data, data.parts.train, name="t", seed=0).program

    first, second = program(2), program(3)
    assert program(2) is first
    program(4)
    assert program(2) is first
    assert program(3) is not second


def test_a_width_with_much_training_planned_gets_its_own_program(data: Dataset) -> None:
    from workers.engine.models.width_padding import widened

    def width(**fit: Any) -> Any:
        search = {"space": SPACE, "objective": {"metric": "val_loss", "direction": "min"}}
        search_spec = spec_of("blobs", args={"units": 6}, fit={**FIT, **fit}, search=search)
        return widened(search_spec, data.profile, rows=1000).model.args["units"]

    assert (width(epochs=10), width(epochs=100_000)) == (12, 6)


def test_the_program_of_a_training_does_not_depend_on_earlier_trainings(data: Dataset) -> None:
    from workers.engine.training.model_cache import ModelCache

    search = {"space": SPACE, "objective": {"metric": "val_loss", "direction": "min"}}
    models = ModelCache()

    def program(units: int) -> Any:
        unit_spec = spec_of("blobs", args={"units": units}, fit=FIT, search=search)
        return models.prepare(unit_spec, data, data.parts.train, name="t", seed=0).program

    shared = program(6)
    shared.training_time.seconds = 1e6
    program(9)
    assert program(6) is shared
