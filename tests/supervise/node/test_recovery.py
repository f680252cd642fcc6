"""A node that alone cannot reach the database, and the process that tries it."""

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.supervise.conftest import QUICK
from workers.node.database_probe import try_database
from workers.node.recovery import PROOFS, CannotRecover, RecoveryWatch

TIMING = replace(QUICK, unanswered=0.05, probe=0.01)


async def test_a_node_ends_when_the_database_answers_others_but_not_this_process() -> None:
    tries = 0

    async def others_succeed(timeout: float) -> bool:
        nonlocal tries
        tries += 1
        return True

    with pytest.raises(CannotRecover, match="answers other processes"):
        await asyncio.wait_for(RecoveryWatch(TIMING, others_succeed).run(), 10)
    assert tries == PROOFS


async def test_a_node_outlasts_an_outage_for_all_and_one_answer_begins_the_count_again() -> None:
    answers = [True, True, False, True, True]
    enough = asyncio.Event()

    async def others(timeout: float) -> bool:
        if answers:
            return answers.pop(0)
        enough.set()
        return False

    watch = asyncio.create_task(RecoveryWatch(TIMING, others).run())
    await asyncio.wait_for(enough.wait(), 10)
    assert not watch.done()
    watch.cancel()


async def test_a_node_that_has_answers_tries_nothing() -> None:
    async def unexpected(timeout: float) -> bool:
        raise AssertionError("no process is needed")

    watch = RecoveryWatch(TIMING, unexpected)
    running = asyncio.create_task(watch.run())
    for _ in range(20):
        watch.succeeded()
        await asyncio.sleep(0.01)
    assert not running.done()
    running.cancel()


def test_a_locked_database_does_not_answer(tmp_path: Path) -> None:
    parameters = {"engine": "sqlite", "name": str(tmp_path / "db")}
    try_database(parameters, timeout=0.1)
    with sqlite3.connect(tmp_path / "db", isolation_level=None) as writer:
        writer.execute("BEGIN IMMEDIATE")
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            try_database(parameters, timeout=0.1)


def test_the_process_that_tries_ends_with_0_only_after_an_answer(tmp_path: Path) -> None:
    def ends_with(name: Path) -> int:
        request = {"parameters": {"engine": "sqlite", "name": str(name)}, "timeout": 1.0}
        command = [sys.executable, "-m", "workers.node.database_probe", str(os.getpid())]
        return subprocess.run(
            command, input=json.dumps(request), text=True, capture_output=True, check=False
        ).returncode

    assert ends_with(tmp_path / "db") == 0
    assert ends_with(tmp_path / "missing" / "db") != 0
