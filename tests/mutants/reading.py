"""Reads mutants as the product does, in a process that can neither use much memory nor write elsewhere.

    python -m tests.mutants.reading --seed 1 --only 4711 --folder /tmp/mutants

repeats one of them. Each line on standard output is JSON: the number of the mutant that is read next, or how
the reading of one ended.
"""

import argparse
import contextlib
import functools
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from jobs import upload_formats
from jobs.errors import BadInput
from jobs.kinds.profile.payload import FurtherFile, ProfileTask
from jobs.kinds.register.payload import RegisterTask
from jobs.spec.data.dialect import SAMPLE_BYTES, DialectRequest, ReadOptions, detect_dialect
from jobs.spec.data.file_limits import FileLimits
from tests.engine.helpers import RecordingReport
from tests.mutants.mutations import damaged
from tests.mutants.seeds import SEEDS, content
from workers.engine.data import spilled
from workers.engine.data.spilled import Spill
from workers.engine.data.store import file_digest
from workers.engine.errors import RefusedInput
from workers.engine.models.untrusted import scan
from workers.engine.tasks import profile
from workers.features.files import BadFeatures, read_features

LIMITS = FileLimits(expanded_bytes=50_000_000, columns=2_000, text_characters=100_000)
MEMORY = 1 << 30
"""Bytes of address space beyond those after the imports: 20 times the limit of an expanded file."""
SECONDS = 60
"""A reading that takes longer hangs: most take a few milliseconds."""
MAX_MESSAGE = 4_000
FORBIDDEN = ("pickle.find_class", "subprocess.Popen", "os.system", "os.exec", "os.fork", "socket.connect")
"""Events of Python that no file may cause."""
WRITES: dict[str, tuple[tuple[int, int | None], ...]] = {
    "os.remove": ((0, 1),),
    "os.rename": ((0, 2), (1, 3)),
    "os.mkdir": ((0, 2),),
    "os.rmdir": ((0, 1),),
    "os.symlink": ((1, 2),),
    "os.link": ((0, 2), (1, 3)),
    "os.truncate": ((0, None),),
    "os.chmod": ((0, 2),),
}
"""Events of changes of files: for each path the number of its argument, and that of the descriptor of the
folder that the path is relative to."""


class Mutant:
    """A mutant, which depends on the seed and its number alone."""

    def __init__(self, seed: int, number: int) -> None:
        dice = random.Random(f"{seed}/{number}")
        # Each seed file has the same share of the mutants.
        self.origin = SEEDS[number % len(SEEDS)]
        other = content(dice.randrange(len(SEEDS)))
        self.body = damaged(content(number % len(SEEDS)), dice, other)
        self.name = self.origin.file
        if dice.random() < 0.05:
            self.name = dice.choice(SEEDS).file
        self.further = self.origin.further() if self.origin.further is not None else None
        self.is_last = dice.random() < 0.5
        self.is_spilled = dice.random() < 0.4
        self.target = dice.choice([None] * 6 + ["y"] * 3 + ["missing"])
        self.reading = ReadOptions(
            dialect=DialectRequest(
                delimiter=dice.choice([None] * 8 + [";", "\t"]),
                encoding=dice.choice([None] * 8 + ["latin-1", "utf-16"]),
                header=dice.choice([None] * 8 + [True, False]),
            ),
            max_bad_share=dice.choice([0.0, 0.0, 0.3]),
        )


class Outside(BaseException):
    """The reading did something that no file may cause. Not an `Exception`, so that no reader catches it."""


class Hanging(BaseException):
    """The reading takes too long. Not an `Exception`, which a reader reports as a damaged file."""


class Watch:
    """Python's own events: opened files, processes, connections and unpickled objects."""

    def __init__(self, folder: Path) -> None:
        self.allowed = (folder.resolve(), Path(os.devnull))
        self.is_active = False

    def check(self, event: str, args: tuple[Any, ...]) -> None:
        """Refuse an event that no file may cause. It is a Python audit hook."""
        if not self.is_active:
            return
        if event in FORBIDDEN:
            self._refuse(event, args)
        if event == "open":
            flags = args[2] if isinstance(args[2], int) else 0
            if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) and not self._is_inside(args[0]):
                self._refuse(event, args)
        for at, folder_at in WRITES.get(event, ()):
            if not self._is_inside(args[at], -1 if folder_at is None else args[folder_at]):
                self._refuse(event, args)
        if event == "os.symlink":
            # The path in a link is relative to the folder of the link.
            beside = Path(os.fsdecode(args[1])).parent
            if not self._is_inside(beside / os.fsdecode(args[0]), args[2]):
                self._refuse(event, args)

    def _is_inside(self, path: object, folder: int = -1) -> bool:
        """Return whether a path is one that may change, or no path but the descriptor of an open file."""
        if not isinstance(path, str | bytes | os.PathLike):
            return True
        base = Path(f"/proc/self/fd/{folder}" if folder >= 0 else ".")
        real = (base / os.fsdecode(path)).resolve()
        return any(real.is_relative_to(allowed_path) for allowed_path in self.allowed)

    def _refuse(self, event: str, args: tuple[Any, ...]) -> None:
        self.is_active = False
        raise Outside(f"{event}: {args!r}"[:500])


def read(mutant: Mutant, folder: Path, *, load: bool = False) -> str:
    """Detect an upload's format and read it; return how that ended.

    Args:
        mutant: the upload.
        folder: the run's.
        load: whether Keras loads a model whose scan found nothing, and predicts rows.

    Raises:
        Exception: anything but a refusal with a message for people.
    """
    path, more = _written(mutant, folder)
    try:
        if mutant.name.endswith(".keras"):
            return _read_model(path, load=load)
        # The page shows this before the upload, for any bytes and without a refusal.
        start = mutant.body[:SAMPLE_BYTES]
        detect_dialect(start, is_all=start == mutant.body, request=mutant.reading.dialect)
        source, *others = [upload_formats.format_of_upload(upload, mutant.name) for upload in (path, *more)]
        if others not in ([], [source]):
            return "refused: the files have different formats"
        task = ProfileTask(
            folder=str(folder), source=source, path=str(path), target=mutant.target, reading=mutant.reading,
            limits=LIMITS, more=tuple(FurtherFile(path=str(upload)) for upload in more),
        )  # fmt: skip
        with _spilled(mutant.is_spilled):
            profiled = profile.run(task, RecordingReport(folder))
        json.dumps(profiled, allow_nan=False)
        return f"{profiled['rows']} rows"
    except (BadInput, RefusedInput) as refusal:
        message = refusal.message if isinstance(refusal, BadInput) else str(refusal)
        if str(folder) in message or not message.strip() or len(message) > MAX_MESSAGE:
            raise ValueError(f"no message for people: {message[:500]!r}") from refusal
        message.encode()
        return f"refused: {message[:120]}"


def _written(mutant: Mutant, folder: Path) -> tuple[Path, list[Path]]:
    """Write an upload's files; return the first one and the others."""
    bodies = [mutant.body] if mutant.further is None else [mutant.body, mutant.further]
    paths = [folder / ("upload" if at == 0 else f"upload-{at + 1}") for at in range(len(bodies))]
    for path, body in zip(paths, reversed(bodies) if mutant.is_last else bodies, strict=True):
        path.write_bytes(body)
    return paths[0], paths[1:]


@contextlib.contextmanager
def _spilled(is_spilled: bool) -> Iterator[None]:
    """Let small tables be read as large ones are, with their columns in files."""
    if not is_spilled:
        yield
        return
    with (
        mock.patch.object(profile, "Spill", functools.partial(Spill, from_bytes=1)),
        mock.patch.object(spilled, "SMALL_COLUMN_BYTES", 1),
    ):
        yield


def _read_model(path: Path, *, load: bool) -> str:
    upload_formats.check_keras(path)
    if load:
        from workers.engine.tasks import register

        folder = str(path.parent)
        task = RegisterTask(folder=folder, model=str(path), digest=file_digest(path), foreign=True)
        return f"{register.run(task, RecordingReport(folder))['parameters']} parameters"
    scanned = scan(path)
    try:
        read_features(path)
    except BadFeatures as refusal:
        return f"refused: {str(refusal)[:120]}"
    return f"{scanned.layers} layers"


def stop_hanging(_number: int, _frame: Any) -> None:
    """Stop a reading that takes too long. It is the alarm's handler."""
    raise Hanging(f"not done after {SECONDS} s")


def _limit_memory() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # SIGALRM cannot interrupt a library that never returns to Python; the kernel can.
    signal.signal(signal.SIGALRM, stop_hanging)


def _send(**line: Any) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def run(seed: int, numbers: Iterable[int], folder: Path, *, load: bool) -> None:
    """Read mutants one by one, models alone if `load`, and write how each ended to standard output."""
    work = folder / "run"
    tempfile.tempdir = str(work / "tmp")
    watch = Watch(work)
    sys.addaudithook(watch.check)
    # Some mutants are archives with two members of one name.
    warnings.simplefilter("ignore")
    _clear(work)
    for at in range(len(SEEDS)):
        content(at)
    _warm_up(work, load=load)
    _limit_memory()
    for number in (index for index in numbers if not load or is_model(index)):
        _send(begin=number)
        mutant = Mutant(seed, number)
        _clear(work)
        began, fault, end = time.perf_counter(), "", ""
        signal.alarm(SECONDS)
        watch.is_active = True
        try:
            end = read(mutant, work, load=load)
        except (Exception, Outside, Hanging):  # noqa: BLE001  every fault is reported
            fault = traceback.format_exc(limit=-12)
        finally:
            watch.is_active = False
            signal.alarm(0)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        _send(number=number, end=end, fault=fault, seconds=round(time.perf_counter() - began, 3), peak=peak)

    _send(done=True)


def is_model(number: int) -> bool:
    """Return whether a mutant is one of a model's file."""
    return SEEDS[number % len(SEEDS)].file.endswith(".keras")


def _clear(work: Path) -> None:
    shutil.rmtree(work, ignore_errors=True)
    (work / "tmp").mkdir(parents=True)


def _warm_up(work: Path, *, load: bool) -> None:
    """Read every seed once, so that libraries that are imported late are in memory."""
    for at in (index for index in range(len(SEEDS)) if not load or is_model(index)):
        _clear(work)
        mutant = Mutant(0, at)
        mutant.body, mutant.name, mutant.target = content(at), SEEDS[at].file, None
        mutant.reading, mutant.is_spilled = ReadOptions(), at % 2 == 0
        read(mutant, work, load=load)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=0)
    parser.add_argument("--only", type=int)
    parser.add_argument("--load", action="store_true", help="load models in Keras")
    parser.add_argument("--folder", type=Path, required=True)
    arguments = parser.parse_args()
    chosen = (
        [arguments.only]
        if arguments.only is not None
        else range(arguments.first, arguments.first + arguments.count)
    )
    run(arguments.seed, chosen, arguments.folder.resolve(), load=arguments.load)
