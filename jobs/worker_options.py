"""Parses the options of a worker's command line, for `manage.py worker` and for the worker itself."""

import argparse
import re
from collections.abc import Sequence

from jobs.monitoring.status import OPTION_HELP
from jobs.spec.labels import join_labels, read_label
from jobs.spec.sections.resources import POOL

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_DURATION = re.compile(r"(\d{1,9})([smhd])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
MAX_SECONDS = 365 * 86_400


def add_worker_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that describe a worker."""
    parser.add_argument("--name", type=_name, help="name of the worker; default: the host's name")
    parser.add_argument("--pool", type=pool_name, default="default", help="the pool whose jobs it runs")
    parser.add_argument(
        "--label",
        type=_label,
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a label that jobs may ask for, such as gpu=h200; may be repeated",
    )
    parser.add_argument(
        "--slots",
        type=_slots,
        help="number of concurrent jobs; default: the number of devices, else of cores",
    )
    parser.add_argument(
        "--idle-exit",
        type=_duration,
        metavar="DURATION",
        help="end with status 0 after so long without work, such as 10m",
    )
    parser.add_argument(
        "--max-life",
        type=_duration,
        metavar="DURATION",
        help="have ended after so long, such as 4h: runs write a checkpoint and continue on another worker",
    )
    parser.add_argument("--status-address", metavar="HOST:PORT", help=OPTION_HELP)
    parser.add_argument(
        "--check",
        action="store_true",
        help="only print how runners are isolated, exit status 1 if they are not, and the sandboxes",
    )


def labels_of(parser: argparse.ArgumentParser, pairs: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Return the labels of the option `--label`; two values of one name end the program with a message."""
    try:
        return join_labels(pairs)
    except ValueError as error:
        parser.error(f"argument --label: {error}")


def _name(text: str) -> str:
    if _NAME.fullmatch(text) is None:
        raise argparse.ArgumentTypeError(
            f"{text[:110]!r} is not a name; use up to 100 letters, digits and _ . - , such as gpu-1"
        )
    return text


def pool_name(text: str) -> str:
    """Return the name of a pool in an option.

    Raises:
        ArgumentTypeError: no pool can have this name.
    """
    if re.fullmatch(POOL, text) is None:
        raise argparse.ArgumentTypeError(
            f"{text[:70]!r} is not the name of a pool; use up to 63 lowercase letters, digits and _ - , "
            "such as gpu"
        )
    return text


def _label(text: str) -> tuple[str, str]:
    try:
        return read_label(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _slots(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text[:9]) <= 1024:
        raise argparse.ArgumentTypeError(f"{text[:20]!r} is not a number of slots; give 1 to 1024")
    return int(text)


def _duration(text: str) -> float:
    match = _DURATION.fullmatch(text)
    seconds = int(match[1]) * _SECONDS[match[2]] if match is not None else 0
    if not 0 < seconds <= MAX_SECONDS:
        raise argparse.ArgumentTypeError(
            f"{text[:20]!r} is not a duration; give a whole number with s, m, h or d, such as 90s, 10m or "
            "4h, up to 365d"
        )
    return float(seconds)
