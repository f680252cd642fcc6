"""Ahead-of-time functions: compiled programs and timing results stored for later processes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.engine.small_training import BLOBS, blobs_file, train_on
from tests.engine.training.test_training import assert_same, final_state
from workers.engine.arrays import Array
from workers.engine.training.checkpoint import Snapshot

ROWS = np.arange(3, dtype=np.float32)


def called(name: str, rows: Array) -> bool:
    """Call a function like another process that shares only the folder; return whether it was traced."""
    from workers.engine.compiled.aot import AheadOfTimeFunction

    traced = []

    def function(tree: list[Any], rows: Array) -> tuple[list[Any], Array]:
        traced.append(True)
        return [leaf + rows.sum() for leaf in tree], rows * 2

    (total,), doubled = AheadOfTimeFunction(function, name)([np.float32(1)], rows)
    assert float(total) == 1 + rows.sum()
    assert np.array_equal(doubled, rows * 2)
    return bool(traced)


def test_a_program_compiled_by_one_process_runs_in_another_without_tracing(cache: Path) -> None:
    assert called("steps", ROWS)
    assert not called("steps", ROWS)


def test_each_name_each_shape_and_each_setting_has_its_own_program(cache: Path) -> None:
    import jax

    assert called("steps", ROWS)
    assert called("other steps", ROWS)
    assert called("steps", ROWS[:2])
    with jax.default_matmul_precision("float32"):
        assert called("steps", ROWS)


def test_changed_code_does_not_run_programs_of_the_old_code(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from workers.engine.compiled import aot

    assert called("steps", ROWS)
    monkeypatch.setattr(aot, "static_fingerprint", lambda: {"code": "newer"})
    assert called("steps", ROWS)


def test_an_incomplete_program_is_compiled_again_and_replaced(cache: Path) -> None:
    assert called("steps", ROWS)
    (file,) = cache.glob("whole-*")
    file.write_bytes(file.read_bytes()[:100])
    assert called("steps", ROWS)
    assert not called("steps", ROWS)


def test_a_damaged_program_is_never_run(cache: Path) -> None:
    assert called("steps", ROWS)
    (file,) = cache.glob("whole-*")
    program = bytearray(file.read_bytes())
    program[len(program) // 2] ^= 1
    file.write_bytes(program)
    assert called("steps", ROWS)


def test_a_program_that_cannot_be_serialized_still_runs(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from jax.experimental import serialize_executable

    def refuse(_compiled: object) -> None:
        raise ValueError("Compilation does not support serialization")

    monkeypatch.setattr(serialize_executable, "serialize", refuse)
    assert called("steps", ROWS)
    assert not list(cache.glob("whole-*"))


@pytest.mark.parametrize("more", [{}, {"optimizer": "sgd", "optimizer_args": {"momentum": 0.9}}])
def test_a_loaded_step_trains_to_the_bits_of_a_compiled_one(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: dict[str, Any]
) -> None:
    file = blobs_file(tmp_path)

    def trained(folder: str) -> Snapshot:
        train_on(file, tmp_path / folder, fit={**BLOBS, "epochs": 2, **more})
        return final_state(tmp_path, folder)

    compiled = trained("compiled")
    monkeypatch.setattr(keras_trainer(), "train_step", untraceable)
    assert_same(trained("loaded"), compiled)


def keras_trainer() -> Any:
    from keras.src.backend.jax.trainer import JAXTrainer

    return JAXTrainer


def untraceable(*_args: object, **_more: object) -> None:
    raise AssertionError("the step is traced")


def test_without_a_cache_functions_are_compiled_by_jax_alone(cache: Path) -> None:
    import jax

    jax.config.update("jax_compilation_cache_dir", None)
    assert called("steps", ROWS)
    assert called("steps", ROWS)
    assert not list(cache.glob("whole-*"))


def test_the_faster_step_mode_is_stored_for_equal_programs(cache: Path) -> None:
    from workers.engine.compiled.timing_results import TimingResults

    TimingResults("a").set_step_mode("one")
    assert (TimingResults("a").step_mode, TimingResults("b").step_mode) == ("one", None)
