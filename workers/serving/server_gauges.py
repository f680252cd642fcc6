"""Gauges of the server itself, with the names that the other parts use for the same figures."""

import shutil
from pathlib import Path

from jobs import program
from workers.serving.health import Health
from workers.serving.metrics import Labels, Metrics

_FOLDER: Labels = (("folder", "home"),)


def add_server_gauges(metrics: Metrics, home: Path, health: Health) -> None:
    """Add the version of the program, the disk of `home`, and for how long no release is learnt of."""

    def disk(attribute: str) -> list[tuple[Labels, float]]:
        try:
            return [(_FOLDER, getattr(shutil.disk_usage(home), attribute))]
        except OSError:
            return []

    version = (("version", program.program_version()),)
    metrics.add_gauge("trainyard_build_info", "The program; always 1.", lambda: [(version, 1)])
    metrics.add_gauge("trainyard_disk_free_bytes", "Free space for this program.", lambda: disk("free"))
    metrics.add_gauge("trainyard_disk_size_bytes", "Size of the file system.", lambda: disk("total"))
    metrics.add_gauge(
        "trainyard_serving_cut_off_seconds",
        "For how long the server learns of no release; 0 if it does.",
        lambda: [((), 0.0 if health.cut_off is None else health.cut_off.seconds)],
    )
