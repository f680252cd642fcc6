"""Computes suggestions: cheap algorithms in a thread, model-based ones in a warm child process."""

import asyncio
import contextlib
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from jobs.messages.suggest import Answer, SuggestRequest
from workers.engine.search.suggest import ALGORITHM_ERRORS, suggest
from workers.system.environment import runner_environment

# asyncio limits a line to 64 KiB by default; an answer contains all suggested trials.
MAX_ANSWER_BYTES = 16 * 2**20
PROGRAM = (sys.executable, "-m", "workers.engine.search")


class SuggestionFailed(Exception):
    """No suggestion could be made; the message has the reason."""


async def make_suggestions(process: "SuggestionProcess", body: dict[str, Any]) -> Answer:
    """Answer a `SuggestRequest`.

    Raises:
        SuggestionFailed: the request is invalid, the algorithm failed, or the process timed out or died.
    """
    try:
        request = SuggestRequest.model_validate(body)
    except ValidationError as error:
        raise SuggestionFailed(f"the search's request is invalid: {error}") from error
    if request.search.info.own_process:
        return await process.suggest(body)
    try:
        return await asyncio.to_thread(suggest, request)
    except ALGORITHM_ERRORS as error:
        raise SuggestionFailed(f"{type(error).__name__}: {error}") from error


class SuggestionProcess:
    """Sends one request at a time to the child process.

    A process that times out or dies is replaced at the next request. It exits when its standard
    input ends, so it outlives the node by one answer at most.
    """

    def __init__(self, folder: Path, *, timeout: float, program: Sequence[str] = PROGRAM) -> None:
        self._folder = folder
        self._timeout = timeout
        self._program = program
        self._process: asyncio.subprocess.Process | None = None
        self._lock = asyncio.Lock()
        self._last_used = time.monotonic()

    async def suggest(self, request: dict[str, Any]) -> Answer:
        """Return the suggestions for a request.

        Raises:
            SuggestionFailed: the request was refused, or the process timed out or died.
        """
        async with self._lock:
            self._last_used = time.monotonic()
            process = await self._running()
            try:
                answer = await asyncio.wait_for(_exchange(process, request), self._timeout)
            except TimeoutError:
                await self._end()
                raise SuggestionFailed(f"no suggestion within {self._timeout:.0f} s") from None
            # As after a timeout: the late answer would be read as the answer to the next request. A call is
            # cancelled when the worker is declared lost, or when the script of a chief disconnects.
            except asyncio.CancelledError:
                await self._end()
                raise
            except (OSError, ValueError) as error:
                await self._end()
                raise SuggestionFailed("the suggestion process died") from error
        try:
            return Answer.model_validate(answer["answer"])
        except (KeyError, ValidationError) as error:
            raise SuggestionFailed(str(answer.get("error", f"an invalid answer: {error}"))) from None

    async def end_if_idle(self, seconds: float) -> None:
        """End the process after `seconds` without a request, to free its memory."""
        # The lock is held for the whole of a request, however long it takes.
        if not self._lock.locked() and time.monotonic() - self._last_used > seconds:
            await self.close()

    async def close(self) -> None:
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
                limit=MAX_ANSWER_BYTES,
                start_new_session=True,
            )
        return self._process

    async def _end(self) -> None:
        # Set before the wait, which may be cancelled: the next request must not use a killed process.
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()


async def _exchange(process: asyncio.subprocess.Process, request: dict[str, Any]) -> dict[str, Any]:
    if process.stdin is None or process.stdout is None:
        raise OSError("the process was started without pipes")
    process.stdin.write(json.dumps(request).encode() + b"\n")
    await process.stdin.drain()
    answer: dict[str, Any] = json.loads(await process.stdout.readline())
    return answer
