"""The prediction server keeps its compile cache within its limit."""

import asyncio
import math
import os
import time
from pathlib import Path

import pytest

from workers.serving.eviction import evict_programs
from workers.serving.settings import parse
from workers.system.compile_cache import evict

YEAR = 365 * 86_400


def program(folder: Path, name: str, *, age: float) -> None:
    path = folder / name
    path.write_bytes(b"x" * 10)
    moment = time.time() - age
    os.utime(path, (moment, moment))


async def test_the_least_recently_used_programs_beyond_the_limit_are_deleted_again_and_again(
    tmp_path: Path,
) -> None:
    for age, name in enumerate(("new", "older", "oldest")):
        program(tmp_path, name, age=age)
    evicting = asyncio.create_task(evict_programs(tmp_path, 25, pause=0.01))
    async with asyncio.timeout(30):
        while {path.name for path in tmp_path.iterdir()} != {"new", "older"}:
            await asyncio.sleep(0.01)
        program(tmp_path, "newest", age=-1)
        while {path.name for path in tmp_path.iterdir()} != {"newest", "new"}:
            await asyncio.sleep(0.01)
    evicting.cancel()


def test_a_program_that_a_child_read_a_year_ago_is_kept_within_the_limit(tmp_path: Path) -> None:
    program(tmp_path, "production", age=YEAR)
    evict(tmp_path, 25, unused_seconds=math.inf)
    assert (tmp_path / "production").exists()
    evict(tmp_path, 25)
    assert not (tmp_path / "production").exists()


def test_a_folder_that_does_not_exist_yet_is_no_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def end(_seconds: float) -> None:
        raise asyncio.CancelledError

    monkeypatch.setattr(asyncio, "sleep", end)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(evict_programs(tmp_path / "compiled", 25))
    assert not caplog.messages


def test_the_limit_is_a_setting(tmp_path: Path) -> None:
    arguments = [
        "--dashboard",
        "http://d",
        "--token-file",
        "t",
        "--public-key-file",
        "k",
        "--home",
        str(tmp_path),
    ]
    settings = parse(arguments, {"TRAINYARD_SERVING_COMPILE_CACHE_BYTES": "1000"})
    assert settings.limits.compile_cache_bytes == 1000
    assert settings.compiled == tmp_path / "compiled"
