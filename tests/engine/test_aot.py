"""Compiled functions that are kept for later processes, and what is remembered beside them."""

import numpy as np
import pytest

from tests.engine.test_training import assert_same, final_state
from tests.engine.training import BLOBS, blobs_file, train_on

ROWS = np.arange(3, dtype=np.float32)


def called(name, rows):
    """Call a function as another process would that knows nothing but the folder; say if it was traced."""
    from workers.engine.compiled.aot import Ahead

    traced = []

    def function(tree, rows):
        traced.append(True)
        return [leaf + rows.sum() for leaf in tree], rows * 2

    (total,), doubled = Ahead(function, name)([np.float32(1)], rows)
    assert float(total) == 1 + rows.sum()
    assert np.array_equal(doubled, rows * 2)
    return bool(traced)


def test_what_one_process_has_compiled_another_runs_without_tracing(cache):
    assert called("steps", ROWS)
    assert not called("steps", ROWS)


def test_each_name_each_shape_and_each_setting_has_a_program_of_its_own(cache):
    import jax

    assert called("steps", ROWS)
    assert called("other steps", ROWS)
    assert called("steps", ROWS[:2])
    with jax.default_matmul_precision("float32"):
        assert called("steps", ROWS)


def test_other_code_does_not_run_the_programs_of_this(cache, monkeypatch):
    from workers.engine.compiled import aot

    assert called("steps", ROWS)
    monkeypatch.setattr(aot, "constants", lambda: {"code": "newer"})
    assert called("steps", ROWS)


def test_a_torn_program_is_compiled_anew_and_replaced(cache):
    assert called("steps", ROWS)
    (file,) = cache.glob("whole-*")
    file.write_bytes(file.read_bytes()[:100])
    assert called("steps", ROWS)
    assert not called("steps", ROWS)


def test_a_damaged_program_is_never_run(cache):
    assert called("steps", ROWS)
    (file,) = cache.glob("whole-*")
    program = bytearray(file.read_bytes())
    program[len(program) // 2] ^= 1
    file.write_bytes(program)
    assert called("steps", ROWS)


def test_a_program_that_cannot_be_written_out_is_run_all_the_same(cache, monkeypatch):
    from jax.experimental import serialize_executable

    def refuse(_compiled):
        raise ValueError("Compilation does not support serialization")

    monkeypatch.setattr(serialize_executable, "serialize", refuse)
    assert called("steps", ROWS)
    assert not list(cache.glob("whole-*"))


@pytest.mark.parametrize("more", [{}, {"optimizer": "sgd", "optimizer_args": {"momentum": 0.9}}])
def test_a_loaded_step_trains_to_the_bits_of_a_compiled_one(cache, tmp_path, monkeypatch, more):
    file = blobs_file(tmp_path)

    def trained(folder):
        train_on(file, tmp_path / folder, fit={**BLOBS, "epochs": 2, **more})
        return final_state(tmp_path, folder)

    compiled = trained("compiled")
    monkeypatch.setattr(keras_trainer(), "train_step", untraceable)
    assert_same(trained("loaded"), compiled)


def keras_trainer():
    from keras.src.backend.jax.trainer import JAXTrainer

    return JAXTrainer


def untraceable(*_args, **_more):
    raise AssertionError("the step is traced")


def test_without_a_cache_functions_are_compiled_as_ever(cache):
    import jax

    jax.config.update("jax_compilation_cache_dir", None)
    assert called("steps", ROWS)
    assert called("steps", ROWS)
    assert not list(cache.glob("whole-*"))


def test_the_faster_way_is_remembered_for_programs_alike(cache):
    from workers.engine.compiled.autotune import Choice

    Choice("a").make("one")
    assert (Choice("a").way, Choice("b").way) == ("one", None)
