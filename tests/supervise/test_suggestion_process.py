"""The process that suggests is disposable."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from workers.node.suggestion_process import Oracle, SuggestionFailed

ECHO = """
import json, os, sys, time
for line in sys.stdin:
    request = json.loads(line)
    if request.get("die"): os._exit(3)
    if request.get("sleep"): time.sleep(60)
    good = {"answer": {"suggestions": [{"values": {"pid": os.getpid()}}]}}
    answer = {"error": "no"} if request.get("refuse") else good
    print(json.dumps(answer), flush=True)
"""


@pytest.fixture
async def oracle(tmp_path: Path) -> AsyncIterator[Oracle]:
    made = Oracle(tmp_path / "oracle", patience=5, program=(sys.executable, "-c", ECHO))
    yield made
    await made.close()


async def test_it_stays_warm_between_questions(oracle: Oracle) -> None:
    assert await oracle.ask({}) == await oracle.ask({})


async def test_after_a_crash_the_next_question_gets_a_new_process(oracle: Oracle) -> None:
    first = await oracle.ask({})
    with pytest.raises(SuggestionFailed, match="died"):
        await oracle.ask({"die": True})
    assert await oracle.ask({}) != first


async def test_a_slow_one_is_ended(oracle: Oracle) -> None:
    first = await oracle.ask({})
    oracle._patience = 0.2
    with pytest.raises(SuggestionFailed, match="within"):
        await oracle.ask({"sleep": True})
    oracle._patience = 5
    assert await oracle.ask({}) != first


async def test_a_refusal_is_told_in_its_own_words(oracle: Oracle) -> None:
    with pytest.raises(SuggestionFailed, match="no"):
        await oracle.ask({"refuse": True})
