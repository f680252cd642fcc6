"""Gradients of grouped kernels, such as depthwise ones, are on each mesh those of one device."""

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.engine.processes.test_mesh import SAME


@pytest.fixture(scope="module")
def errors() -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.engine.processes.grouped_convolutions_child"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_they_are_those_of_one_device_on_every_mesh(errors: dict[str, Any]) -> None:
    assert {name: error for name, error in errors["on meshes"].items() if error > SAME} == {}


def test_they_are_those_of_jax_on_one_device_with_every_setting(errors: dict[str, Any]) -> None:
    assert errors["on one device"] < SAME


def test_products_of_small_numbers_are_not_lost_in_narrow_types(errors: dict[str, Any]) -> None:
    assert errors["types"] == ["float16", "bfloat16"]
    assert max(errors["of small numbers"]) < 0.02


def test_the_correction_is_still_needed(errors: dict[str, Any]) -> None:
    assert errors["uncorrected"] > 1, "JAX is right by itself now: remove `grouped_convolutions`"
