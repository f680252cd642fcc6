"""How long a model takes for one batch, on hardware with a name."""

import os
import platform
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np

from workers.engine.data.table import Array
from workers.engine.models.predict import Predictor

BATCHES = (1, 32)
CALLS = 200
SECONDS = 1.0
"""At most this many calls, or this long, whichever ends first: a big model shall not hold up a job."""


def hardware(threads: int) -> str:
    """Name what was measured on: the device as JAX calls it, the CPU's model, the threads in use."""
    device = jax.devices()[0]
    kind = _cpu_model() if device.platform == "cpu" else device.device_kind
    return f"{kind}, {threads} of {os.cpu_count()} threads"


def _cpu_model() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def measure_latency(predict: Predictor, x: Array) -> dict[str, dict[str, Any]]:
    """Time a compiled model for each of `BATCHES`, copies to and from the device included.

    Args:
        predict: compiles once for each batch size; that call is not counted.
        x: real rows, repeated where there are too few.

    Returns:
        By batch size: `p50_ms`, `p95_ms` of a whole batch, and how many calls they come from.
    """
    return {str(size): _time(predict, np.resize(x, (size, *x.shape[1:]))) for size in BATCHES}


def _time(predict: Predictor, batch: Array) -> dict[str, Any]:
    for _ in range(3):
        predict.batch(batch)
    taken: list[float] = []
    end = time.perf_counter() + SECONDS
    while len(taken) < CALLS and (time.perf_counter() < end or not taken):
        begun = time.perf_counter()
        predict.batch(batch)
        taken.append(1000 * (time.perf_counter() - begun))
    p50, p95 = np.percentile(taken, [50, 95])
    return {"p50_ms": round(float(p50), 4), "p95_ms": round(float(p95), 4), "calls": len(taken)}
