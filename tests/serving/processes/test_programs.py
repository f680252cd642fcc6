"""Programs for models whose inputs have open sizes: compiled ahead for seen lengths, bounded in number."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

os.environ.setdefault("KERAS_BACKEND", "jax")

import jax
import keras
import numpy as np
import pytest

from jobs.spec.signature import TensorSpec
from workers.serving.child import model as models
from workers.serving.child.ahead import AheadCompiler
from workers.serving.child.failures import BatchFailed, OutOfMemory, ShapesRefused, failure_of
from workers.serving.child.programs import Programs, buckets
from workers.serving.child.sizes import Sizes, between, fits

TOKENS = (TensorSpec(name="tokens", dtype="int32", shape=(None,)),)
TWO = (*TOKENS, TensorSpec(name="mask", dtype="float32", shape=(None, 2)))


def sizes_of(length: int) -> Sizes:
    return ((length,),)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory, model_files: dict[str, bytes]) -> models.PureModel:
    path: Path = tmp_path_factory.mktemp("programs") / "recurrent.keras"
    path.write_bytes(model_files["recurrent"])
    return models.load(path)


def words(rows: int, length: int) -> list[Any]:
    return [np.arange(rows * length, dtype=np.int32).reshape(rows, length) % 50]


def until(seen: Callable[[], bool], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not seen():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_load_draws_no_random_values_that_the_file_replaces(
    model_files: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "telling.keras"
    path.write_bytes(model_files["telling-2"])
    drawn: list[str] = []
    for kind in (keras.initializers.VarianceScaling, keras.initializers.RandomUniform):
        monkeypatch.setattr(kind, "__call__", lambda self, *_, **__: drawn.append(type(self).__name__))
    kernel, bias = models.load(path).weights[0]
    assert drawn == []
    assert (kernel.tolist(), bias.tolist()) == ([[2.0, 0.0]] * 4, [0.0, 2.0])


def test_buckets_end_at_the_largest() -> None:
    assert buckets(64) == [1, 2, 4, 8, 16, 32, 64]
    assert buckets(64, power=2) == [1, 4, 16, 64]
    assert buckets(32, power=2) == [1, 4, 16, 32]
    assert buckets(1, power=2) == [1]


def test_lengths_between_near_seen_ones_are_named() -> None:
    assert between([sizes_of(3), sizes_of(6), sizes_of(500)], TOKENS) == [sizes_of(4), sizes_of(5)]
    assert between([((2,), (2, 2)), ((4,), (4, 2))], TWO) == [((3,), (3, 2))]
    assert between([((2,), (5, 2)), ((4,), (4, 2))], TWO) == []  # the sizes are not one length


def test_sizes_of_another_signature_do_not_fit() -> None:
    assert fits(((2,), (5, 2)), TWO)
    assert not fits(((2,), (5, 3)), TWO)
    assert not fits(((2,), (0, 2)), TWO)
    assert not fits(sizes_of(2), TWO)
    assert not fits(((2, 2),), TOKENS)


def test_programs_between_seen_lengths_are_compiled_without_a_request(model: models.PureModel) -> None:
    programs = Programs(model, 4, 64)
    ahead = AheadCompiler(programs)
    ahead.start()
    for length in (2, 5):
        programs.run(words(1, length))
        ahead.see(sizes_of(length))
    until(lambda: all(programs.has((bucket, sizes_of(length))) for bucket in (1, 4) for length in (2, 5)))
    until(lambda: programs.has((1, sizes_of(3))) and programs.has((1, sizes_of(4))))
    # Not all rows fit the one program of this length: it runs several times, and none is compiled.
    outputs = programs.run(words(3, 4))
    assert not programs.has((4, sizes_of(4)))
    together = Programs(model, 4, 64).run(words(3, 4))
    np.testing.assert_allclose(outputs[0], together[0], atol=1e-6)


def test_seen_lengths_are_compiled_before_the_model_serves(model: models.PureModel) -> None:
    programs = Programs(model, 4, 64)
    AheadCompiler(programs).warm([sizes_of(3), ((2, 2),), sizes_of(2)], seconds=60)
    assert programs.has((1, sizes_of(3)))
    assert programs.has((1, sizes_of(2)))


def test_the_number_of_programs_is_bounded(model: models.PureModel) -> None:
    programs = Programs(model, 4, 3)
    for length in (1, 2, 3, 4):
        programs.run(words(1, length))
    assert [programs.has((1, sizes_of(length))) for length in (1, 2, 3, 4)] == [False, True, True, True]
    ahead = AheadCompiler(programs)
    ahead.warm([sizes_of(5)], seconds=60)
    assert not programs.has((1, sizes_of(5)))


def test_a_program_is_announced_before_it_first_runs(model: models.PureModel) -> None:
    programs, announced = Programs(model, 4, 64), []
    programs.compile((1, sizes_of(3)))
    for _ in range(2):
        programs.run(words(1, 3), lambda: announced.append(True))
    assert announced == [True]


def test_any_exception_of_a_layer_is_a_refusal_of_the_shapes(model: models.PureModel) -> None:
    with pytest.raises(ShapesRefused, match=r"cannot compute rows with 'words' of \[0\]"):
        Programs(model, 4, 64).run(words(1, 0))


def test_outputs_that_cannot_be_allocated_raise_an_exception(
    model_files: dict[str, bytes], tmp_path: Path
) -> None:
    # In a process of its own, which XLA ends if NumPy reads such an output.
    (tmp_path / "m.keras").write_bytes(model_files["attention"])
    code = (
        "import sys, numpy as np\n"
        "from pathlib import Path\n"
        "from workers.serving.child import model, programs\n"
        "from workers.serving.child.failures import failure_of\n"
        "programs.check_memory = lambda program: None\n"
        "try: programs.Programs(model.load(Path(sys.argv[1])), 1, 4).run([np.zeros((1, 10**6, 4), 'f4')])\n"
        "except Exception as error: print(failure_of(error).kind)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "m.keras")],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[3],
        env={**os.environ, "KERAS_BACKEND": "jax"},
    )
    assert (done.returncode, done.stdout) == (0, "memory\n"), done.stderr[-2000:]


def test_failures_are_told_apart_without_foreign_text() -> None:
    assert isinstance(failure_of(MemoryError("numpy: 5 GiB")), OutOfMemory)
    full = jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 5 bytes.")
    assert (failure_of(full).kind, "RESOURCE" in str(failure_of(full))) == ("memory", False)
    assert failure_of(jax.errors.JaxRuntimeError("INTERNAL: bug")).kind == "internal"
    assert type(failure_of(IndexError("\x1b[1mindex"))) is BatchFailed
    assert "index" not in str(failure_of(IndexError("\x1b[1mindex")))


class RefusedPrograms:
    """Programs for a model that computes no sizes."""

    model = SimpleNamespace(signature=SimpleNamespace(inputs=TOKENS))
    buckets = (1,)
    is_busy = False

    def __init__(self) -> None:
        self.tried: list[Any] = []

    def is_full(self) -> bool:
        return False

    def has(self, key: Any) -> bool:
        return False

    def compile(self, key: Any) -> None:
        self.tried.append(key)
        raise ShapesRefused("no sizes fit")


def test_refused_sizes_are_forgotten_once_no_request_has_them_and_are_not_tried_again_before() -> None:
    programs: Any = RefusedPrograms()
    ahead = AheadCompiler(programs)
    lengths = [40 * number for number in range(1, 1500)]  # so far apart that no length between is tried
    for length in lengths:
        ahead.see(sizes_of(length))
        while (key := ahead._next()) is not None:
            ahead._compile(key)
    assert programs.tried == [(1, sizes_of(length)) for length in lengths]
    assert len(ahead._refused) <= 1024
    assert {(1, sizes_of(length)) for length in lengths[-256:]} <= ahead._refused
