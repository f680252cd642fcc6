"""Runs in its own process with 8 simulated devices: gradients of grouped kernels, and those of one device."""

import json
import sys
from typing import Any

from workers.runner.environment import Environment
from workers.runner.libraries import import_keras

Environment(threads=1, platform="cpu", simulated_devices=8).apply()
import_keras()

import jax  # noqa: E402  the environment comes first
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax.sharding import Mesh, NamedSharding  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

from workers.engine.models.devices.grouped_convolutions import correct_gradients  # noqa: E402

MESHES = ((8, 1), (4, 2), (2, 4), (1, 8))
KERNELS = {"depthwise": (8, 8), "depthwise, 3 outputs each": (8, 24), "2 groups": (2, 16)}
"""The groups and the outputs of each kernel; the input has 8 features."""
SETTINGS: tuple[dict[str, Any], ...] = (
    {"window_strides": (1, 1), "padding": "SAME"},
    {"window_strides": (3, 2), "padding": "VALID"},
    {"window_strides": (2, 1), "padding": ((2, 1), (0, 3)), "rhs_dilation": (2, 1)},
    {"window_strides": (1, 2), "padding": ((-1, 0), (1, -1)), "lhs_dilation": (2, 1)},
)
NARROW = ("float16", "bfloat16")
LAYOUTS = (("NHWC", "HWIO", "NHWC"), ("NCHW", "OIHW", "NCHW"))


def main() -> None:
    """Print one line of JSON with the relative errors."""
    rng = np.random.default_rng(0)
    images = rng.normal(size=(8, 11, 10, 8)).astype("float32")
    kernels = {
        name: rng.normal(size=(3, 2, 8 // groups, outputs)).astype("float32")
        for name, (groups, outputs) in KERNELS.items()
    }
    own = [_gradient(*case) for case in _settings(images, kernels)]
    own_half = [_of_small_numbers(dtype) for dtype in NARROW]
    uncorrected = _on_mesh(images, kernels["depthwise"], 8, (2, 4), P())
    correct_gradients()
    jax.clear_caches()
    ours = [_gradient(*case) for case in _settings(images, kernels)]
    on_meshes = {
        f"{name} on {rows} × {columns}, kernel {spec}": _on_mesh(
            images, kernel, KERNELS[name][0], (rows, columns), spec
        )
        for rows, columns in MESHES
        for name, kernel in kernels.items()
        for spec in (P(), P(None, None, None, "model"))
    }
    on_one = max(_difference(a, b) for a, b in zip(own, ours, strict=True))
    ours_half = [_of_small_numbers(dtype) for dtype in NARROW]
    of_small = [_difference(a, b) for a, b in zip(own_half, ours_half, strict=True)]
    found = {"uncorrected": uncorrected, "on one device": on_one, "on meshes": on_meshes}
    narrow = {"of small numbers": of_small, "types": [str(array.dtype) for array in ours_half]}
    sys.stdout.write(json.dumps(found | narrow) + "\n")


def _of_small_numbers(dtype: str) -> Any:
    """Return the gradient of a depthwise kernel whose products are too small for float16."""
    images = np.full((4, 8, 8, 8), 1e-3, "float32")
    kernel = np.ones((3, 2, 1, 8), "float32")

    def output(kernel: Any) -> Any:
        return _conv(jnp.asarray(images, dtype), kernel, 8)

    _, gradient = jax.vjp(output, jnp.asarray(kernel, dtype))
    return jax.jit(gradient)(jnp.full((4, 8, 8, 8), 1e-5, dtype))[0]


def _settings(images: Any, kernels: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [
        (images, kernel, KERNELS[name][0], settings, layout)
        for name, kernel in kernels.items()
        for settings in SETTINGS
        for layout in LAYOUTS
    ]


def _gradient(
    images: Any, kernel: Any, groups: int, settings: dict[str, Any], layout: tuple[str, ...]
) -> Any:
    """Return the kernel's gradient on one device, in the axes of NHWC."""
    if layout[0] == "NCHW":
        images, kernel = images.transpose(0, 3, 1, 2), kernel.transpose(3, 2, 0, 1)

    def loss(kernel: Any) -> Any:
        output = jax.lax.conv_general_dilated(
            images, kernel, dimension_numbers=layout, feature_group_count=groups, **settings
        )
        return jnp.mean(jnp.sin(output))

    found = jax.jit(jax.grad(loss))(kernel)
    return found.transpose(2, 3, 1, 0) if layout[0] == "NCHW" else found


def _on_mesh(images: Any, kernel: Any, groups: int, shape: tuple[int, int], spec: Any) -> float:
    """Return how much the gradients on a mesh differ from those on one device.

    The kernel follows a convolution, as in a model. The batch is divided along the first axis.
    """
    mesh = Mesh(np.array(jax.devices()).reshape(shape), ("batch", "model"))
    first = np.random.default_rng(1).normal(size=(3, 3, 8, 8)).astype("float32") * 0.2

    def loss(weights: Any, images: Any) -> Any:
        inner = jax.nn.relu(_conv(images, weights["first"], 1))
        return jnp.mean(jnp.square(_conv(inner, weights["grouped"], groups)))

    gradients = jax.jit(jax.grad(loss))
    weights = {"first": first, "grouped": kernel}
    one = gradients(jax.device_put(weights, jax.devices()[0]), jax.device_put(images, jax.devices()[0]))
    specs = {"first": P(), "grouped": spec}
    placed = {
        name: jax.device_put(value, NamedSharding(mesh, specs[name])) for name, value in weights.items()
    }
    several = gradients(placed, jax.device_put(images, NamedSharding(mesh, P("batch"))))
    return max(_difference(one[name], several[name]) for name in weights)


def _conv(images: Any, kernel: Any, groups: int) -> Any:
    return jax.lax.conv_general_dilated(
        images, kernel, (1, 1), "SAME", dimension_numbers=LAYOUTS[0], feature_group_count=groups
    )


def _difference(first: Any, second: Any) -> float:
    first, second = np.asarray(first), np.asarray(second)
    return float(np.max(np.abs(first - second)) / np.max(np.abs(first)))


if __name__ == "__main__":
    main()
