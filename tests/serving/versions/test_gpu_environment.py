"""The part of a GPU that a model child may use, by the options that JAX makes from its environment."""

from typing import Any

import pytest
from jaxlib import xla_client

from workers.serving import settings
from workers.serving.versions.child_process import child_environment
from workers.serving.versions.gpu_environment import gpu_variables, gpus_of_mesh

REQUIRED = ("--dashboard", "x", "--token-file", "x", "--public-key-file", "x", "--home", "x")


@pytest.fixture
def jax_options(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return JAX's options to open a GPU in a child whose server has these variables."""

    def options(**variables: str) -> dict[str, Any]:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        passed = child_environment()
        for name, value in passed.items():
            monkeypatch.setenv(name, value)
        return dict(xla_client.generate_pjrt_gpu_plugin_options())

    return options


def test_two_versions_fit_into_a_gpu_during_a_swap(jax_options: Any) -> None:
    options = jax_options()
    assert options["preallocate"] is False
    assert 2 * options["memory_fraction"] <= 0.9, "the contexts of CUDA need the rest"


def test_the_operator_chooses_the_fraction(jax_options: Any) -> None:
    assert jax_options(TRAINYARD_SERVING_GPU_FRACTION="0.2")["memory_fraction"] == 0.2


def test_the_operators_own_variables_reach_the_child(jax_options: Any) -> None:
    options = jax_options(
        XLA_PYTHON_CLIENT_MEM_FRACTION="0.3",  # an earlier name, which JAX refuses beside the new one
        XLA_PYTHON_CLIENT_PREALLOCATE="true",
        XLA_PYTHON_CLIENT_ALLOCATOR="platform",
    )
    assert (options["memory_fraction"], options["preallocate"], options["allocator"]) == (
        0.3,
        True,
        "platform",
    )


@pytest.mark.parametrize(
    ("variables", "seen"),
    [({}, "0"), ({"CUDA_VISIBLE_DEVICES": "3,1"}, "3"), ({"CUDA_VISIBLE_DEVICES": "GPU-ab"}, "GPU-ab")],
)
def test_a_version_uses_one_gpu(variables: dict[str, str], seen: str) -> None:
    result = gpu_variables(variables)
    assert (result["CUDA_VISIBLE_DEVICES"], result["CUDA_DEVICE_ORDER"]) == (seen, "PCI_BUS_ID")
    assert "JAX_PLATFORMS" not in result


@pytest.mark.parametrize(
    ("variables", "count", "seen"),
    [
        ({}, 4, "0,1,2,3"),
        ({"CUDA_VISIBLE_DEVICES": "3, 1,0"}, 2, "3,1"),
        ({"CUDA_VISIBLE_DEVICES": "3,1"}, 4, "3,1"),
        ({"CUDA_VISIBLE_DEVICES": "GPU-ab,GPU-cd"}, 2, "GPU-ab,GPU-cd"),
        ({"CUDA_VISIBLE_DEVICES": ""}, 2, ""),
        ({"CUDA_VISIBLE_DEVICES": "-1"}, 2, "-1"),
    ],
)
def test_a_version_on_a_mesh_uses_the_first_gpus_of_the_server(
    variables: dict[str, str], count: int, seen: str
) -> None:
    assert gpus_of_mesh(variables, count) == seen


def test_without_a_visible_gpu_a_version_uses_the_cpu() -> None:
    assert gpu_variables({"CUDA_VISIBLE_DEVICES": ""})["JAX_PLATFORMS"] == "cpu"


def test_a_secret_does_not_reach_the_child_by_a_name_like_those_of_gpus(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NVIDIA_API_KEY", "secret")
    assert "secret" not in child_environment().values()


@pytest.mark.parametrize("text", ["a lot", "0", "1.5", "nan", "-1"])
def test_a_fraction_that_is_none_stops_the_server_at_its_start(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        settings.parse(REQUIRED, {"TRAINYARD_SERVING_GPU_FRACTION": text})
    assert f"TRAINYARD_SERVING_GPU_FRACTION={text} is not a number above 0" in capsys.readouterr().err
