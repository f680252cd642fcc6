"""Small sequence data: arrays with three axes, and a sensor table."""

from pathlib import Path

import numpy as np

from jobs.messages.task import DatasetFile
from jobs.spec.data.columns import ColumnRequest
from tests.engine.helpers import csv_file, profiled

STEPS = 5
SENSORS = ("a", "b", "c", "d")
HOURS = 40


def wave_arrays(rows: int = 120) -> tuple[np.ndarray, np.ndarray]:
    """Return five-step sequences with two numbers each, rising and falling, and which ones rise."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, rows)
    slope = np.where(y, 1.0, -1.0)[:, None] * np.linspace(-1, 1, STEPS)
    x = np.stack([slope, rng.normal(size=(rows, STEPS))], axis=2) + 0.1 * rng.normal(size=(rows, STEPS, 2))
    return x.astype(np.float32), y


def waves(folder: Path) -> DatasetFile:
    """Store and profile the sequences."""
    x, y = wave_arrays()
    np.savez(folder / "waves.npz", x=x, y=y)
    return profiled(folder / "profile", source="npz", path=str(folder / "waves.npz"))


def sensor_rows(*, shuffled: bool = True) -> list[dict[str, object]]:
    """Return hourly rows of four sensors, ordered by time or by no column.

    A sensor is warm if its power was above 0 two hours ago, which no other row shows.
    """
    rng = np.random.default_rng(1)
    rows: list[dict[str, object]] = []
    for sensor in SENSORS:
        power = rng.normal(size=HOURS).round(3)
        rows += [
            {
                "hour": hour,
                "sensor": sensor,
                "power": float(power[hour]),
                "mode": f"m{hour % 3}",
                "load": float(power[max(hour - 2, 0)]),
                "warm": "yes" if power[max(hour - 2, 0)] > 0 else "no",
            }
            for hour in range(HOURS)
        ]
    return [rows[i] for i in rng.permutation(len(rows))] if shuffled else rows


def sensor_csv() -> str:
    """Return these rows as CSV, with their target in the last column."""
    rows = sensor_rows()
    return "\n".join([",".join(rows[0]), *(",".join(str(v) for v in row.values()) for row in rows)]) + "\n"


def sensors(folder: Path, *, group: bool = True, target: str = "warm") -> DatasetFile:
    """Store and profile the sensor table; the hour's role is time."""
    roles = {"hour": "time", "load" if target == "warm" else "warm": "ignore"} | (
        {"sensor": "group"} if group else {}
    )
    requests = [ColumnRequest.model_validate({"name": name, "role": role}) for name, role in roles.items()]
    folder.mkdir(parents=True, exist_ok=True)
    return profiled(
        folder / "profile", source="csv", path=csv_file(folder, sensor_csv()), target=target, columns=requests
    )
