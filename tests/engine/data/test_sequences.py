"""Sequence arrays: how they differ from images, and the template that reads them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jobs.spec.checks.data import problems
from jobs.spec.data.columns import ColumnRequest
from jobs.spec.data.profile import Profile
from jobs.spec.plan.find_model import suitable
from tests.engine.helpers import profiled, spec_of
from tests.engine.sequences import wave_arrays, waves
from tests.present import present
from workers.engine.data.dataset import load_dataset
from workers.engine.errors import BadData
from workers.engine.models.build import build
from workers.engine.models.scaling import measure_scaling

FIT = {"epochs": 12, "batch_size": 16, "learning_rate": 0.02}


def read(folder: Path, x: np.ndarray, **request: str) -> Profile:
    np.savez(folder / "d.npz", x=x, y=np.arange(len(x)) % 2)
    columns = [ColumnRequest.model_validate({"name": "x", **request})] if request else []
    task = {"source": "npz", "path": str(folder / "d.npz"), "columns": columns}
    return Profile.model_validate(profiled(folder / "profile", **task).profile)


def test_arrays_of_measures_below_0_are_proposed_as_sequences(tmp_path: Path) -> None:
    profile = Profile.model_validate(waves(tmp_path).profile)
    assert (profile.kind, profile.input_shape) == ("sequence", (5, 2))
    assert profile.columns[0].type == "sequence"
    assert profile.findings[0].startswith(
        "Array 'x' has values below 0, so its rows are sequences of 5 steps"
    )
    assert [info.name for info in suitable(profile)] == ["mlp", "sequence", "trees", "linear"]


@pytest.mark.parametrize(("kind", "shape"), [("image", (6, 2, 1)), ("sequence", (6, 2))])
def test_a_person_chooses_whether_an_array_has_images_or_sequences(
    tmp_path: Path, kind: str, shape: tuple[int, ...]
) -> None:
    x = np.random.default_rng(0).integers(0, 255, (12, 6, 2), dtype=np.uint8)
    dataset = read(tmp_path, x if kind == "sequence" else x.astype(int) - 100, type=kind)
    assert (dataset.kind, dataset.input_shape) == (kind, shape)
    assert not any("sequences" in finding for finding in dataset.findings)


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"type": "number"}, "array 'x', whose rows have 2 axes, cannot be of type number"),
        ({"role": "time"}, "array 'x' cannot have the role time"),
        ({"name": "z", "type": "sequence"}, "no column 'z'"),
    ],
)
def test_other_roles_and_types_of_arrays_are_refused(
    tmp_path: Path, request_: dict[str, Any], message: str
) -> None:
    with pytest.raises(BadData, match=message):
        read(tmp_path, np.zeros((8, 3, 2)), **request_)


def test_an_lstm_learns_the_direction_of_a_sequence(tmp_path: Path) -> None:
    from tests.engine.small_training import train_on

    args = {"kind": "lstm", "units": 8, "layers": 2}
    trained = train_on(waves(tmp_path), tmp_path / "run", template="sequence", args=args, fit=FIT)
    assert trained.result.history[-1]["val_accuracy"] > 0.9


def test_only_the_last_steps_are_read_if_an_argument_says_so(tmp_path: Path) -> None:
    data = load_dataset(waves(tmp_path), present(spec_of("d").data))
    scaling = measure_scaling(data.x, data.y, data.profile)
    model = build(spec_of("d", "sequence", args={"steps": 2}), data.profile, scaling, name="m", seed=0)
    x, _ = wave_arrays(8)
    changed = x.copy()
    changed[:, :3] = 9
    np.testing.assert_array_equal(model.predict(x, verbose=0), model.predict(changed, verbose=0))


def test_templates_and_settings_that_do_not_fit_sequences_are_refused(tmp_path: Path) -> None:
    profile = Profile.model_validate(waves(tmp_path).profile)

    def refusals(template: str, **parts: object) -> dict[str, str]:
        return {p.pointer: p.message for p in problems(spec_of("d", template, **parts), profile)}

    assert refusals("cnn")["/model/template"].startswith(
        "cnn needs images, but the data are sequences; use mlp"
    )
    augmented = refusals("sequence", fit={"augmentation": {"flip": "horizontal"}})
    assert augmented["/fit/augmentation"] == "augmentation needs images, but the data are sequences"
    with pytest.raises(ValueError, match="kernel_steps has no effect on gru; only conv has it"):
        spec_of("d", "sequence", args={"kind": "gru", "kernel_steps": 5})
