"""Measures each test folder's CPU time, and fails a run in which a folder's share has grown.

Machines differ by a factor of three, so not the seconds of a folder are compared with a tracked table but its
share of the run. Only runs of a whole tier are compared: a folder's share among a few varies too much.
The time includes the processes that tests start, except those whose parent was killed.
"""

import os
import resource
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from tests.plugins.tiers import folder_of, is_whole

TABLE = Path(__file__).parents[1] / "core_seconds.toml"
"""Core-seconds of each folder in one run of all tests on one machine."""
GREW = 10
"""The exit code of a run in which a share has grown. pytest's own end at 5."""
WRITE_VARIABLE = "TRAINYARD_WRITE_CORE_SECONDS"
"""With `1`, a run writes its own figures into the table."""
GROWTH = 1.3
"""A share may be this many times that of the table."""
TOLERANCE = 0.015
"""A share may also be this much above that of the table: the figures of small folders are mostly noise."""


@dataclass(frozen=True)
class Growth:
    """A folder that needs a larger share of a run than before."""

    folder: str
    share: float
    expected: float

    def __str__(self) -> str:
        return (
            f"tests/{self.folder} took {self.share:.1%} of this run's core-seconds; {self.expected:.1%} were "
            f"expected. Make it cheaper, or write the table again: {WRITE_VARIABLE}=1 make test-all"
        )


def find_growth(measured: Mapping[str, float], table: Mapping[str, float]) -> list[Growth]:
    """Return the folders whose share in the run is larger than in the table.

    Args:
        measured: each folder's core-seconds in this run.
        table: each folder's core-seconds in an earlier run. Its other folders are ignored, and so are
            measured folders that it lacks.
    """
    folders = [folder for folder in measured if folder in table]
    total = sum(measured[folder] for folder in folders) or 1.0
    expected_total = sum(table[folder] for folder in folders) or 1.0
    growths = [Growth(name, measured[name] / total, table[name] / expected_total) for name in folders]
    return [
        growth
        for growth in growths
        if growth.share > growth.expected * GROWTH and growth.share > growth.expected + TOLERANCE
    ]


def used_seconds() -> float:
    """Return the CPU seconds that this process, its ended children and its running descendants used."""
    this_process, ended = (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    seconds = this_process.ru_utime + this_process.ru_stime + ended.ru_utime + ended.ru_stime
    for process in psutil.Process().children(recursive=True):
        try:
            seconds += sum(process.cpu_times()[:4])  # user and system, of itself and of its ended children
        except psutil.Error:  # it has ended; its time is that of its parent now
            continue
    return seconds


class FolderClock:
    """Adds the time since the last reading to the folder whose tests ran meanwhile."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._last = used_seconds()

    def read(self, folder: str) -> None:
        """Assign the time since the last reading to a folder."""
        now = used_seconds()
        # A killed process takes the time of its ended children with it, so the sum can shrink.
        self.seconds[folder] += max(0.0, now - self._last)
        self._last = now


class CoreSeconds:
    """The pytest plugin: one clock in each test process, one table when the run ends."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._is_worker = hasattr(config, "workerinput")
        self._clock: FolderClock | None = None
        self._folder = ""
        self._total: Counter[str] = Counter()
        self._growths: list[Growth] = []

    def pytest_collection_finish(self) -> None:
        self._clock = FolderClock()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
        """Read the clock at a file's last test. Reading it at each test would take a minute.

        It is read before the fixtures end, too: a killed process and its children lose their time.
        """
        self._folder = folder_of(item.path)
        is_last = nextitem is None or nextitem.path != item.path
        if self._clock is not None and is_last:
            self._clock.read(self._folder)
        yield
        if self._clock is not None and is_last:
            self._clock.read(self._folder)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self._clock is not None and self._folder:
            self._clock.read(self._folder)  # the ends of fixtures of the session
            self._total.update(self._clock.seconds)
        if self._is_worker:
            self._config.workeroutput["core_seconds"] = dict(self._total)  # type: ignore[attr-defined]
            return
        if not is_whole(self._config):
            return
        if os.environ.get(WRITE_VARIABLE) == "1":
            write_table(self._total)
        else:
            self._growths = find_growth(self._total, read_table())
        if self._growths:
            session.exitstatus = GREW

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object) -> None:
        """Add the figures from a test process that has ended."""
        self._total.update(getattr(node, "workeroutput", {}).get("core_seconds", {}))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self._total:
            return
        total = sum(self._total.values())
        terminalreporter.section(f"core-seconds: {total:.0f}")
        ordered = sorted(self._total.items(), key=lambda entry: -entry[1])
        terminalreporter.write_line(
            ", ".join(f"{name} {seconds:.1f} ({seconds / total:.1%})" for name, seconds in ordered)
        )
        for growth in self._growths:
            terminalreporter.write_line(f"FAILED: {growth}", red=True)


def read_table() -> dict[str, float]:
    """Return the tracked table's core-seconds."""
    return {name: float(seconds) for name, seconds in tomllib.loads(TABLE.read_text())["folders"].items()}


def write_table(measured: Mapping[str, float]) -> None:
    """Write a complete run's core-seconds as the new table."""
    comment = TABLE.read_text().partition("[folders]")[0]
    rows = "".join(f'"{name}" = {seconds:.1f}\n' for name, seconds in sorted(measured.items()))
    TABLE.write_text(f"{comment}[folders]\n{rows}")
