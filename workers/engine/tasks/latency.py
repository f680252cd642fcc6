"""Measures a model's latency and names the hardware."""

import os
import platform
import time
from pathlib import Path

import jax
import numpy as np

from jobs.messages.reports.quantization import CallTime
from workers.engine.arrays import Array
from workers.engine.models.predict import Batched

BATCH_SIZES = (1, 32)
MAX_CALLS = 200
MAX_SECONDS = 1.0
"""Limit for each batch size, so that a large model does not delay a job."""


def hardware(threads: int, *, on_cpu: bool = False) -> str:
    """Return the name of the device or CPU, and how many threads are used.

    Args:
        threads: the thread count.
        on_cpu: whether the CPU is used although there may be another device.
    """
    device = jax.devices()[0]
    kind = device.device_kind
    if on_cpu or device.platform == "cpu":
        # JAX calls every CPU "cpu", and `platform.processor` is empty on most Linux systems.
        info = Path("/proc/cpuinfo")
        lines = info.read_text().splitlines() if info.exists() else []
        names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
        kind = names[0] if names else platform.processor() or platform.machine()
    return f"{kind}, {threads} of {os.cpu_count()} threads"


def measure_latency(predict: Batched, x: Array) -> dict[str, CallTime]:
    """Time predictions for each of `BATCH_SIZES`, including copies to and from the device.

    Args:
        predict: the model. Calls that compile are not counted.
        x: rows to predict, (rows, …), repeated if there are too few.

    Returns:
        By batch size: how long one call takes, in milliseconds.
    """
    return {str(size): _time(predict, np.resize(x, (size, *x.shape[1:]))) for size in BATCH_SIZES}


def _time(predict: Batched, batch: Array) -> CallTime:
    # Not timed: the first call compiles.
    for _ in range(3):
        predict.batch(batch)
    milliseconds: list[float] = []
    end = time.perf_counter() + MAX_SECONDS
    # At least one call is timed, even if it takes longer than the limit.
    while len(milliseconds) < MAX_CALLS and (time.perf_counter() < end or not milliseconds):
        begun = time.perf_counter()
        predict.batch(batch)
        milliseconds.append(1000 * (time.perf_counter() - begun))
    p50, p95 = np.percentile(milliseconds, [50, 95])
    return CallTime(p50_ms=round(float(p50), 4), p95_ms=round(float(p95), 4), calls=len(milliseconds))
