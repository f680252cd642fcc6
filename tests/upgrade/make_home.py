"""Creates the home directory for the upgrade tests: `python -m tests.upgrade.make_home`.

Run it at the commit whose home is to be saved, on an idle machine. It starts an installation, creates rows of
every kind, kills it at work, and packs its state together with its REST answers.
"""

import json
import shutil
import sqlite3
import subprocess
import tarfile
import tempfile
from contextlib import closing
from pathlib import Path

from tests.chaos.doomed_runner import accept_requests
from tests.flow.yard import QUICK
from tests.ops.conftest import ROOT
from tests.upgrade import scripts
from tests.upgrade.answers import Body, Reader, addresses, unfinished
from tests.upgrade.finished_work import finish_all, leave_queued
from tests.upgrade.interrupted_work import interrupt, submit_waiting
from tests.upgrade.old_yard import FLOWER, OldYard

STATE = ("artifacts", "secret.key", "release.key", "release.pub")
"""Saved beside the database. Folders of nodes, logs, sockets and caches are created again."""
DATABASE = "trainyard.sqlite3"
ANSWERS = "answers.json"


def make(folder: Path) -> Path:
    """Make a home in a folder; return the packed file."""
    yard = OldYard(folder / "home", **QUICK, TRAINYARD_RUNNER_MODULE="tests.chaos.doomed_runner")
    accept_requests(yard.home)  # its runners write a checkpoint each epoch
    try:
        yard.open(slots=4)
        whole = finish_all(yard)
        scripts.run_to_the_end(yard, folder)
        scripts.interrupt(yard, folder)
        waiting = submit_waiting(yard)
        half, rungs = interrupt(yard)
        leave_queued(yard, whole)
        answers = record(yard, {"whole": whole, "half": half, "rungs": rungs, **waiting})
    finally:
        yard.end()
    (yard.home / ANSWERS).write_text(json.dumps(answers, separators=(",", ":"), sort_keys=True))
    shrink(yard.home / DATABASE)
    return pack(yard.home)


def record(yard: OldYard, searches: dict[str, int]) -> Body:
    """Return the REST answers, with the tokens and ids that a test needs to repeat the requests."""
    reader = Reader(yard.urls["web"], yard.tokens["root"])
    version, prediction = yard.predict("flowers", [FLOWER])
    return {
        "tokens": yard.tokens,
        "searches": searches,
        "ended": {address: reader.get(address) for address in addresses(reader)},
        "unfinished": {address: reader.get(address) for address in unfinished(reader)},
        "prediction": {"instance": FLOWER, "version": version, "answer": prediction},
    }


def shrink(path: Path) -> None:
    """Remove free pages from a database, and merge its write-ahead log."""
    with closing(sqlite3.connect(path)) as database:
        database.execute("VACUUM")
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def pack(home: Path) -> Path:
    """Write a stopped home's state, and its answers, to a tar file."""
    head = subprocess.run(
        ["git", "rev-parse", "--short=8", "HEAD"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    target = Path(__file__).with_name(f"home-{head.stdout.strip()}.tar.xz")
    with tarfile.open(target, "w:xz", preset=9) as tar:
        for name in (DATABASE, ANSWERS, *STATE):
            tar.add(home / name, name, filter=_without_owner)
    return target


def _without_owner(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def main() -> None:
    """Create the home and print its size."""
    folder = Path(tempfile.mkdtemp(prefix="old-yard-"))
    try:
        target = make(folder)
    finally:
        shutil.rmtree(folder)
    print(f"{target}: {target.stat().st_size:,} bytes")  # noqa: T201


if __name__ == "__main__":
    main()
