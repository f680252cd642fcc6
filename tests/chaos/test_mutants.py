"""Mutants of uploaded files end as a result or as a refusal with a reason, in little memory and time.

`TRAINYARD_CHAOS_MUTANTS` sets their number, `TRAINYARD_CHAOS_SEED` their seed.
"""

import os
import signal
from pathlib import Path

import pytest

from jobs.spec.data.dialect import ReadOptions
from tests.mutants import batches
from tests.mutants.reading import MEMORY, SECONDS, Hanging, Mutant, Outside, Watch, read, stop_hanging
from tests.mutants.seeds import ROWS, SEEDS, content
from workers.engine.data.reading.damage import reading

MUTANTS = int(os.environ.get("TRAINYARD_CHAOS_MUTANTS") or 3 * len(SEEDS))
SEED = int(os.environ.get("TRAINYARD_CHAOS_SEED") or 1)
FORMATS = {
    ".csv",
    ".tsv",
    ".txt",
    ".parquet",
    ".arrow",
    ".npz",
    ".npy",
    ".jsonl",
    ".keras",
    ".zip",
    ".tar",
    ".gz",
    ".bz2",
    ".xz",
    ".zst",
    ".xlsx",
    ".json",
}


def test_every_format_of_uploads_has_seed_files() -> None:
    assert len(SEEDS) >= 40
    assert {Path(seed.file).suffix for seed in SEEDS} >= FORMATS
    assert len({content(number) for number in range(len(SEEDS))}) == len(SEEDS)


# An archive with two members of one name is made on purpose.
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_mutant_depends_on_the_seed_and_its_number_alone() -> None:
    numbers = range(0, 3 * len(SEEDS), 5)
    first = [Mutant(SEED, number).body for number in numbers]
    assert [Mutant(SEED, number).body for number in reversed(numbers)] == first[::-1]
    changed = [body != content(number % len(SEEDS)) for number, body in zip(numbers, first, strict=True)]
    assert sum(changed) > 0.9 * len(changed)


def test_a_reader_that_hangs_is_no_refusal() -> None:
    with pytest.raises(Hanging), reading(Path("t.csv"), "CSV"):
        stop_hanging(signal.SIGALRM, None)


@pytest.mark.parametrize("event", ["os.rename", "os.link", "os.symlink"])
def test_neither_path_of_a_change_may_be_outside(tmp_path: Path, event: str) -> None:
    folder, beside = tmp_path / "run", tmp_path / "run-beside"
    folder.mkdir()
    watch = Watch(folder)
    no_folders = (-1,) if event == "os.symlink" else (-1, -1)
    for pair in ((beside, folder / "a"), (folder / "a", beside), (b"../run-beside", str(folder / "a"))):
        watch.is_active = True
        with pytest.raises(Outside, match=event):
            watch.check(event, (*pair, *no_folders))
    watch.is_active = True
    watch.check(event, (folder / "a", folder / "b", *no_folders))


@pytest.mark.parametrize("name", ["csv-several", "parquet-several"])
def test_a_seed_of_several_files_is_read_in_both_orders(tmp_path: Path, name: str) -> None:
    number = next(at for at, seed in enumerate(SEEDS) if seed.name == name)
    mutant = Mutant(SEED, number)
    mutant.body, mutant.name, mutant.target = content(number), SEEDS[number].file, "y"
    mutant.reading = ReadOptions()
    for mutant.is_last in (False, True):
        assert read(mutant, tmp_path) == f"{2 * ROWS} rows"


@pytest.mark.timeout(3600)
def test_no_mutant_stops_its_reader_or_leaves_its_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Keras is loaded only if there are enough mutants for its import to be worth it.
    ended = batches.run(SEED, MUTANTS, tmp_path, processes=2, load=MUTANTS >= 1000)
    with capsys.disabled():
        print(f"\nmutants of seed {SEED}: {ended.ends}, slowest {ended.slowest} s, peak {ended.peak:,} bytes")  # noqa: T201
    assert not ended.faults, "\n\n".join(ended.faults[:20])
    assert ended.mutants >= MUTANTS
    assert ended.slowest < SECONDS
    assert ended.peak < 2 * MEMORY
