"""Measures the latency of a model and names the hardware."""

import os
import platform
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np

from workers.engine.data.table import Array
from workers.engine.models.predict import Predictor

BATCH_SIZES = (1, 32)
MAX_CALLS = 200
MAX_SECONDS = 1.0
"""Limit for each batch size, so that a large model does not delay a job."""


def hardware(threads: int) -> str:
    """Return the name of the device or CPU, and the number of threads in use."""
    device = jax.devices()[0]
    kind = _cpu_model() if device.platform == "cpu" else device.device_kind
    return f"{kind}, {threads} of {os.cpu_count()} threads"


def _cpu_model() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def measure_latency(predict: Predictor, x: Array) -> dict[str, dict[str, Any]]:
    """Time predictions for each of `BATCH_SIZES`, including copies to and from the device.

    Args:
        predict: the model. Calls that compile are not counted.
        x: rows to predict, (rows, …), repeated if there are too few.

    Returns:
        By batch size: `p50_ms` and `p95_ms` of one batch in milliseconds, and the number of `calls`.
    """
    return {str(size): _time(predict, np.resize(x, (size, *x.shape[1:]))) for size in BATCH_SIZES}


def _time(predict: Predictor, batch: Array) -> dict[str, Any]:
    for _ in range(3):  # the first call compiles
        predict.batch(batch)
    milliseconds: list[float] = []
    end = time.perf_counter() + MAX_SECONDS
    while len(milliseconds) < MAX_CALLS and (time.perf_counter() < end or not milliseconds):
        begun = time.perf_counter()
        predict.batch(batch)
        milliseconds.append(1000 * (time.perf_counter() - begun))
    p50, p95 = np.percentile(milliseconds, [50, 95])
    return {"p50_ms": round(float(p50), 4), "p95_ms": round(float(p95), 4), "calls": len(milliseconds)}
