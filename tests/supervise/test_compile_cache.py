"""The compile cache: programs are written atomically and evicted least recently used first."""

import os
import time
from pathlib import Path

from workers.supervise.attempt_repository import Assignment
from workers.system.compile_cache import PARTIAL_SECONDS, UNUSED_SECONDS, evict

DAY = 86_400


def program(caches: Path, name: str, *, size: int = 10, age: float = 0.0) -> Path:
    path = caches / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * size)
    moment = time.time() - age
    os.utime(path, (moment, moment))
    return path


def names(caches: Path) -> set[str]:
    return {str(path.relative_to(caches)) for path in caches.rglob("*") if path.is_file()}


def test_programs_beyond_the_limit_are_evicted_least_recently_used_first_across_projects(
    tmp_path: Path,
) -> None:
    for age, name in enumerate(("project-1/new", "project-2/older", "project-1/oldest")):
        program(tmp_path, name, age=age)
    evict(tmp_path, 25)
    assert names(tmp_path) == {"project-1/new", "project-2/older"}


def test_unused_programs_and_partial_files_of_killed_runners_are_deleted(tmp_path: Path) -> None:
    program(tmp_path, "project-1/stale", age=UNUSED_SECONDS + DAY)
    program(tmp_path, "project-1/.broken", age=2 * PARTIAL_SECONDS)
    program(tmp_path, "project-1/.being-written")
    program(tmp_path, "project-1/used")
    evict(tmp_path, 1000)
    assert names(tmp_path) == {"project-1/.being-written", "project-1/used"}


def test_a_link_that_a_runner_left_is_neither_followed_nor_counted(tmp_path: Path) -> None:
    precious = program(tmp_path, "home/database", size=100, age=UNUSED_SECONDS + DAY)
    caches = tmp_path / "caches"
    program(caches, "project-1/used", age=DAY)  # before the links, whose paths are longer than the limit
    (caches / "project-1" / "elsewhere").symlink_to(tmp_path / "home")
    (caches / "project-1" / "database").symlink_to(precious)
    evict(caches, 50)
    assert precious.exists()
    assert (caches / "project-1" / "used").exists()


def test_each_project_and_each_job_without_a_project_has_its_own_cache() -> None:
    caches = [
        Assignment(1, 1, root=1, project=5).compile_cache,
        Assignment(2, 2, root=2, project=5).compile_cache,
        Assignment(3, 3, root=3, project=6).compile_cache,
        Assignment(4, 5, root=5).compile_cache,
    ]
    assert caches == ["project-5", "project-5", "project-6", "job-5"]


def test_an_unreadable_program_is_replaced_atomically(tmp_path: Path) -> None:
    from workers.engine.compiled.cache import FileCache

    cache = FileCache(tmp_path)
    assert cache.get("key") is None
    cache.put("key", b"broken")
    cache.put("key", b"whole")
    assert cache.get("key") == b"whole"
    assert names(tmp_path) == {"key"}


def test_reading_a_program_marks_it_as_used(tmp_path: Path) -> None:
    from workers.engine.compiled.cache import FileCache

    path = program(tmp_path, "key", age=DAY)
    FileCache(tmp_path).get("key")
    assert path.stat().st_mtime > time.time() - 60
