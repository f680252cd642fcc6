"""The warm, disposable process that makes model-based suggestions."""

import asyncio
import contextlib
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from jobs.contracts.suggest import Answer, SuggestRequest
from workers.engine.search.suggest import suggest
from workers.supervise.environment import runner_environment

ANSWER_LIMIT = 16 * 2**20
PROGRAM = (sys.executable, "-m", "workers.engine.search")


class SuggestionFailed(Exception):
    """No suggestion this time; the sentence says why."""


async def think(oracle: "Oracle", body: dict[str, Any]) -> Answer:
    """Answer a SuggestRequest: cheap algorithms in a thread, model-based ones in the oracle's process.

    Raises:
        SuggestionFailed: the request does not hold, or the oracle was slow or died.
    """
    try:
        request = SuggestRequest.model_validate(body)
    except ValidationError as error:
        raise SuggestionFailed(f"the search cannot be read: {error}") from error
    if not request.search.info.own_process:
        return await asyncio.to_thread(suggest, request)
    return await oracle.ask(body)


class Oracle:
    """One question at a time. A process that is slow or dies is replaced by the next question.

    It ends by itself at the end of its standard input, so it cannot outlive the node by more than an answer.
    """

    def __init__(self, folder: Path, *, patience: float, program: Sequence[str] = PROGRAM) -> None:
        self._folder = folder
        self._patience = patience
        self._program = program
        self._process: asyncio.subprocess.Process | None = None
        self._lock = asyncio.Lock()
        self._asked = time.monotonic()

    async def ask(self, request: dict[str, Any]) -> Answer:
        """Return what to train next.

        Raises:
            SuggestionFailed: the request does not hold, or the process was slow or died.
        """
        async with self._lock:
            self._asked = time.monotonic()
            process = await self._running()
            try:
                answer = await asyncio.wait_for(_exchange(process, request), self._patience)
            except TimeoutError:
                await self._end()
                raise SuggestionFailed(f"no suggestion within {self._patience:.0f} s") from None
            except (OSError, ValueError) as error:
                await self._end()
                raise SuggestionFailed("the process that makes suggestions died") from error
        try:
            return Answer.model_validate(answer["answer"])
        except (KeyError, ValidationError) as error:
            raise SuggestionFailed(
                str(answer.get("error", f"an answer that cannot be read: {error}"))
            ) from None

    async def end_if_idle(self, seconds: float) -> None:
        """Give its memory back when nothing was asked for a while."""
        if not self._lock.locked() and time.monotonic() - self._asked > seconds:
            await self.close()

    async def close(self) -> None:
        """End the process."""
        async with self._lock:
            await self._end()

    async def _running(self) -> asyncio.subprocess.Process:
        if self._process is None or self._process.returncode is not None:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._process = await asyncio.create_subprocess_exec(
                *self._program,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                env=runner_environment(self._folder),
                cwd=self._folder,
                limit=ANSWER_LIMIT,
                start_new_session=True,
            )
        return self._process

    async def _end(self) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
            self._process = None


async def _exchange(process: asyncio.subprocess.Process, request: dict[str, Any]) -> dict[str, Any]:
    if process.stdin is None or process.stdout is None:
        raise OSError("started without pipes")
    process.stdin.write(json.dumps(request).encode() + b"\n")
    await process.stdin.drain()
    answer: dict[str, Any] = json.loads(await process.stdout.readline())
    return answer
