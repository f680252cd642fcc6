"""Corrects the gradients of grouped convolutions on meshes with several axes.

JAX computes the gradient of a grouped kernel, such as that of a depthwise convolution, by a convolution whose
batch is divided into groups. XLA partitions it wrongly on a mesh that divides the batch along one axis only:
it also adds the equal results of the devices along the other axes. On 2 × 4 devices the gradient is 4
times as large, without an error; other layouts end the process. So we compute it by products and sums, which
are partitioned correctly. The result is the same up to rounding.

Seen with JAX 0.12.0; `tests/engine/processes/test_grouped_convolutions.py` fails once it is not needed.
"""

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core.primitives import conv_general_dilated_p
from jax.interpreters import ad


@functools.cache
def correct_gradients() -> None:
    """Have all later gradients of grouped kernels computed by products, in this process."""
    of_input, of_kernel = ad.primitive_transposes[conv_general_dilated_p].args
    ad.defbilinear(conv_general_dilated_p, of_input, _with_groups(of_kernel))


def _with_groups(of_kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Return a rule for gradients of kernels that replaces JAX's own for kernels with groups."""

    def rule(output: jax.Array, inputs: jax.Array, kernel: Any, **settings: Any) -> Any:
        if settings["feature_group_count"] == 1:
            return of_kernel(output, inputs, kernel, **settings)
        return kernel_gradient(output, inputs, kernel.aval.shape, **settings).astype(kernel.aval.dtype)

    return rule


def kernel_gradient(
    output: jax.Array,
    inputs: jax.Array,
    shape: Sequence[int],
    *,
    window_strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int],
    rhs_dilation: Sequence[int],
    dimension_numbers: Any,
    feature_group_count: int,
    precision: Any,
    **_: Any,
) -> jax.Array:
    """Return the gradient of a grouped kernel, as the sum of products for each of its positions.

    Args:
        output: the gradient of the convolution's output.
        inputs: the convolution's input.
        shape: of the kernel.
        window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers, feature_group_count: the
            convolution's settings, see `jax.lax.conv_general_dilated`.
        precision: of the products, likewise.
    """
    of_inputs, of_kernel, of_output = dimension_numbers
    groups = feature_group_count
    # From here on: (rows, groups, features of a group, *spatial).
    outputs = _split(jnp.transpose(output, of_output), groups)
    padded = jnp.transpose(inputs, of_inputs).astype(output.dtype)
    edges = [(low, high, step - 1) for (low, high), step in zip(padding, lhs_dilation, strict=True)]
    padded = jax.lax.pad(padded, jnp.zeros((), padded.dtype), [(0, 0, 0), (0, 0, 0), *edges])
    sizes = [shape[axis] for axis in of_kernel[2:]]
    spatial = outputs.shape[3:]
    parts = []
    for position in itertools.product(*map(range, sizes)):
        begins = [at * step for at, step in zip(position, rhs_dilation, strict=True)]
        ends = [
            begin + (size - 1) * stride + 1
            for begin, size, stride in zip(begins, spatial, window_strides, strict=True)
        ]
        window = jax.lax.slice(padded, (0, 0, *begins), (*padded.shape[:2], *ends), (1, 1, *window_strides))
        parts.append(_sum_of_products(_split(window, groups), outputs, precision))
    # Stacked: (outputs, inputs of a group, *spatial), in the order of the kernel's axes afterwards.
    stacked = jnp.stack(parts, axis=-1).reshape(*parts[0].shape, *sizes)
    order = sorted(range(len(of_kernel)), key=lambda axis: of_kernel[axis])
    return jnp.transpose(stacked, order)


def _split(array: jax.Array, groups: int) -> jax.Array:
    rows, features, *spatial = array.shape
    return array.reshape(rows, groups, features // groups, *spatial)


def _sum_of_products(window: jax.Array, outputs: jax.Array, precision: Any) -> jax.Array:
    """Return the gradient at one position of the kernel, of shape (outputs, inputs of a group)."""
    axes = [0, *range(3, window.ndim)]
    of_window = precision[0] if isinstance(precision, tuple) else precision
    if window.shape[2] == 1:
        # Depthwise: XLA fuses the products into the sum, and a product of matrices of one column is slower.
        # Widened before: a product of small numbers would be 0 in float16.
        products = window.astype(_wide(window.dtype)) * outputs.astype(_wide(window.dtype))
        found = jnp.sum(products, axis=axes)[:, :, None]
    else:
        spatial = "".join(chr(ord("s") + axis) for axis in range(window.ndim - 3))
        found = jnp.einsum(
            f"ngi{spatial},ngo{spatial}->goi",
            window,
            outputs,
            precision=of_window,
            preferred_element_type=_wide(window.dtype),
        )
    return found.reshape(-1, found.shape[-1])


def _wide(dtype: Any) -> Any:
    """Return the type in which a sum is computed: at least float32."""
    return jnp.promote_types(dtype, jnp.float32)
