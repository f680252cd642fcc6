"""The suggestion process is warm, and replaced when it fails."""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from unittest.mock import Mock

import pytest

from workers.node import suggestion_process as module
from workers.node.suggestion_process import SuggestionFailed, SuggestionProcess, make_suggestions

ECHO = """
import json, os, sys, time
for line in sys.stdin:
    request = json.loads(line)
    if request.get("die"): os._exit(3)
    if request.get("sleep"): time.sleep(60)
    if request.get("slow"): time.sleep(0.5)
    values = {"pid": os.getpid(), "name": request.get("name", "")}
    good = {"answer": {"suggestions": [{"values": values}]}}
    answer = {"error": "no"} if request.get("refuse") else good
    print(json.dumps(answer), flush=True)
"""


@pytest.fixture
async def suggestion_process(tmp_path: Path) -> AsyncIterator[SuggestionProcess]:
    process = SuggestionProcess(tmp_path / "oracle", timeout=60, program=(sys.executable, "-c", ECHO))
    yield process
    await process.close()


async def test_it_stays_warm_between_requests(suggestion_process: SuggestionProcess) -> None:
    assert await suggestion_process.suggest({}) == await suggestion_process.suggest({})


async def test_after_a_crash_the_next_request_gets_a_new_process(
    suggestion_process: SuggestionProcess,
) -> None:
    first = await suggestion_process.suggest({})
    with pytest.raises(SuggestionFailed, match="died"):
        await suggestion_process.suggest({"die": True})
    assert await suggestion_process.suggest({}) != first


async def test_a_process_that_times_out_is_replaced(suggestion_process: SuggestionProcess) -> None:
    first = await suggestion_process.suggest({})
    suggestion_process._timeout = 0.2
    with pytest.raises(SuggestionFailed, match="within"):
        await suggestion_process.suggest({"sleep": True})
    suggestion_process._timeout = 60
    assert await suggestion_process.suggest({}) != first


async def test_a_cancelled_request_does_not_answer_the_next_one(
    suggestion_process: SuggestionProcess,
) -> None:
    await suggestion_process.suggest({})
    cancelled = asyncio.create_task(suggestion_process.suggest({"slow": True, "name": "first"}))
    await asyncio.sleep(0.1)
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    answer = await suggestion_process.suggest({"name": "second"})
    assert answer.suggestions[0].values["name"] == "second"


async def test_an_algorithm_that_fails_in_the_worker_itself_is_reported_too(
    suggestion_process: SuggestionProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "suggest", Mock(side_effect=KeyError("units")))
    space = [{"name": "units", "kind": "int", "min": 1, "max": 8}]
    body = {"search": {"algorithm": "random", "space": space}, "count": 1, "trials": []}
    with pytest.raises(SuggestionFailed, match="KeyError: 'units'"):
        await make_suggestions(suggestion_process, body)


async def test_a_refusal_carries_the_process_own_message(suggestion_process: SuggestionProcess) -> None:
    with pytest.raises(SuggestionFailed, match="no"):
        await suggestion_process.suggest({"refuse": True})
