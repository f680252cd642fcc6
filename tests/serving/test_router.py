"""The router's parts that run for as long as it does."""

from pathlib import Path

from workers.serving.router import replica_name, run_with_restarts


async def test_a_loop_that_fails_starts_again() -> None:
    runs: list[int] = []

    async def fails_once() -> None:
        runs.append(len(runs))
        if len(runs) == 1:
            raise LookupError("unforeseen")

    await run_with_restarts("testing", fails_once, pause=0.0)
    assert runs == [0, 1]


def test_the_name_of_a_replica_survives_a_restart_and_a_file_that_was_left_empty(tmp_path: Path) -> None:
    path = tmp_path / "replica"
    path.touch()
    name = replica_name(path)
    assert name
    assert replica_name(path) == name
    assert [file.name for file in tmp_path.iterdir()] == ["replica"]
