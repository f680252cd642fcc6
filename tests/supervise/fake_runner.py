"""A fake runner that implements the protocol without large imports; it is killed in tests.

A profile task's `bundled` is its script, a JSON list of steps; other tasks train for `fit.epochs` short
epochs (or `MANY` long ones, for a run that must last) and commit a checkpoint after each.
"""

import argparse
import faulthandler
import importlib
import itertools
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from workers.engine.compiled import compile_lock
from workers.system.parent_death import die_with_parent

EPOCH = 0.02
LONG_EPOCH = 0.25
MANY = 1000
BROKEN, SLOW = 97, 99
"""Numbers of threads for which a warm-up fails, or never ends."""


class FakeRunner:
    def __init__(self, descriptor: int) -> None:
        self.pipe = os.fdopen(descriptor, "wb", buffering=0)
        self.starts: list[str] = []
        self.busy = False
        self.why: str | None = None
        self.more = threading.Event()
        self.ballast: list[bytes] = []
        self.recorded: list[str] = []
        self.limits: dict[str, Any] | None = None
        self.model: Any = None
        signal.signal(signal.SIGTERM, self.on_sigterm)
        threading.Thread(target=self.listen, daemon=True).start()

    def on_sigterm(self, *_: object) -> None:
        """Yield like a real runner, with a checkpoint; without a task, end."""
        if self.busy:
            self.why = "stop"
        else:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGTERM)

    def listen(self) -> None:
        for line in sys.stdin:
            request = json.loads(line)
            if request["op"] == "start":
                self.why = None
                self.limits = request["limits"]
                self.starts.append(request["task"])
                self.more.set()
            elif request["op"] == "rehearse":
                if request["threads"] < SLOW:
                    self.send("ready" if request["threads"] < BROKEN else "failed", message="as scripted")
            elif request["op"] == "yield":
                self.why = request["why"]
            elif request["op"] == "recorded":
                self.recorded += request["folders"]
            elif request["op"] == "compare":
                self.send("log", line=f"received {[curve['trial'] for curve in request['curves']]}")
        os._exit(0)

    def send(self, kind: str, **fields: Any) -> None:
        self.pipe.write(json.dumps({"type": kind, "time": time.time(), **fields}).encode() + b"\n")

    def points(self, first: int, last: int, **fields: Any) -> None:
        for x in range(first, last):
            self.send("metric", points=[["loss", x, 1 / (x + 1), time.time()]], **fields)

    def serve(self) -> None:
        while True:
            self.more.wait()
            self.more.clear()
            task = json.loads(Path(self.starts.pop()).read_text())
            self.send("started", record={"pid": os.getpid()})
            self.busy = True
            self.run(task)
            self.busy = False

    def run(self, task: dict[str, Any]) -> None:
        try:
            if task["kind"] == "profile":
                for step, *arguments in json.loads(task["bundled"]):
                    getattr(self, f"do_{step}")(task, *arguments)
            elif task["kind"] == "search":
                for trial in task["trials"]:
                    self.run_trial(task, trial)
            else:
                self.train(task)
            self.send("result", result={"pid": os.getpid()})
        except InterruptedError:
            self.send("yielded", why=self.why)

    def run_trial(self, task: dict[str, Any], trial: dict[str, Any]) -> None:
        self.check_yield()
        about: dict[str, Any] = {"trial": trial["number"]}
        self.send("trial_begun", **about)
        for plan in trial["executions"]:
            about["execution"] = plan["execution"]
            self.train(task, resume=plan["checkpoints"], **about)
            epochs = task["spec"]["fit"]["epochs"]
            self.send("execution", **about, state="completed", score=0.9, best_epoch=1, epochs=epochs)
        self.send("trial_done", trial=trial["number"], state="completed")

    def train(self, task: dict[str, Any], *, resume: Sequence[dict[str, Any]] = (), **about: int) -> None:
        epochs = task["spec"]["fit"]["epochs"]
        for epoch in range(1 + max((checkpoint["step"] for checkpoint in resume), default=0), epochs + 1):
            self.check_yield()
            time.sleep(EPOCH if epochs < MANY else LONG_EPOCH)
            self.points(epoch, epoch + 1, **about)
            self.do_checkpoint(task, epoch, **about)

    def check_yield(self) -> None:
        if self.why is not None:
            raise InterruptedError

    def do_points(self, task: dict[str, Any], first: int, last: int) -> None:
        for start in range(first, last, 10):
            xs = list(range(start, min(start + 10, last)))
            losses = [1 / (x + 1) for x in xs]
            self.send("points", names=["loss"], at=xs, times=[time.time()] * len(xs), values=[losses])

    def do_slowly(self, task: dict[str, Any], first: int, last: int, seconds: float) -> None:
        for x in range(first, last):
            self.check_yield()
            self.points(x, x + 1)
            time.sleep(seconds)

    def do_flood(self, task: dict[str, Any]) -> None:
        """Send points as fast as the pipe takes them, until asked to yield."""
        for x in itertools.count(0, 10):
            self.check_yield()
            self.do_points(task, x, x + 10)

    def do_print(self, task: dict[str, Any], text: str) -> None:
        sys.stdout.write(text + "\n")

    def do_import(self, task: dict[str, Any], name: str) -> None:
        self.do_print(task, importlib.import_module(name).VERSION)

    def do_complain(self, task: dict[str, Any], text: str) -> None:
        sys.stderr.write(text + "\n")

    def do_raw(self, task: dict[str, Any], text: str) -> None:
        self.pipe.write(text.encode() + b"\n")

    def do_artifact(self, task: dict[str, Any], name: str, text: str) -> None:
        (Path(task["folder"]) / name).write_text(text)
        self.send("artifact", role="report", name=name, path=name)

    def do_claim_artifact(self, task: dict[str, Any], path: str) -> None:
        self.send("artifact", role="report", name="x", path=path)

    def do_checkpoint(self, task: dict[str, Any], step: int, **about: int) -> None:
        of = "-".join(str(number) for number in about.values()) or "0"
        folder = Path(task["checkpoints"]) / f"{step}-{task['fence']}-{of}"
        folder.mkdir(parents=True, exist_ok=True)
        fields = {"step": step, "epoch": step, "manifest": "0" * 64, "bytes": 1}
        self.send("checkpoint", folder=str(folder), **about, **fields)

    def do_large_checkpoint(self, task: dict[str, Any], step: int, size: int) -> None:
        """Commit a checkpoint with `size` bytes, but claim that it has one."""
        folder = Path(task["checkpoints"]) / f"{step}-{task['fence']}-0"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "weights").write_bytes(bytes(size))
        self.do_checkpoint(task, step)

    def do_fill(self, task: dict[str, Any], name: str, size: int) -> None:
        """Write a file of `size` bytes into its own folder."""
        (Path(task["folder"]) / name).write_bytes(bytes(size))

    def do_await_recorded(self, task: dict[str, Any], count: int) -> None:
        while len(self.recorded) < count:
            self.check_yield()
            time.sleep(0.001)
        self.send("log", line=f"recorded {self.recorded}")

    def do_environment(self, task: dict[str, Any]) -> None:
        sys.stdout.write(json.dumps(dict(os.environ)) + "\n")

    def do_read(self, task: dict[str, Any], *paths: str) -> None:
        """Report which of these files and folders it can read."""
        self.send("log", line=json.dumps([path for path in paths if can_read(Path(path))]))

    def do_describe(self, task: dict[str, Any]) -> None:
        """Report its privileges and its open files."""
        status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
        facts = {name: status[name].split() for name in ("Uid", "Gid", "Groups", "CapPrm", "NoNewPrivs")}
        # The open folder itself is closed again.
        files = [descriptor for descriptor in list(Path("/proc/self/fd").iterdir()) if descriptor.exists()]
        facts["files"] = [str(descriptor.readlink()) for descriptor in files]
        self.send("log", line=json.dumps({**facts, "core": resource.getrlimit(resource.RLIMIT_CORE)}))

    def do_limits(self, task: dict[str, Any]) -> None:
        """Report the limits that its supervisor sent."""
        self.send("log", line=json.dumps(self.limits))

    def do_escape(self, task: dict[str, Any]) -> None:
        """Leave a process behind in its own session, and report its pid."""
        code = "import os, time; os.setsid(); print(os.getpid(), flush=True); time.sleep(600)"
        with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as left:
            assert left.stdout is not None
            self.send("log", line=left.stdout.readline().decode())
            left.returncode = 0  # not awaited

    def do_link(self, task: dict[str, Any], name: str, target: str) -> None:
        (Path(task["folder"]) / name).symlink_to(target)

    def do_cache(self, task: dict[str, Any], name: str) -> None:
        """Write a file into the compile cache, and report the files there."""
        folder = Path(task["compile_cache"])
        (folder / name).write_text("program")
        self.send("log", line=json.dumps(sorted(file.name for file in folder.iterdir())))

    def do_lock(self, task: dict[str, Any], name: str) -> None:
        """Open a lock file in the compile cache, leave it there, and report whether it can be used."""
        descriptor = compile_lock.open_lock(Path(task["compile_cache"]) / name)
        self.send("log", line=json.dumps(descriptor is not None))

    def do_eat(self, task: dict[str, Any], mebibytes: int) -> None:
        self.ballast.append(b"x" * (mebibytes * 2**20))

    def do_hold(self, task: dict[str, Any]) -> None:
        """Report progress until asked to yield."""
        while True:
            self.check_yield()
            self.send("progress", done=1, total=2, unit="step")
            time.sleep(0.02)

    def do_hang(self, task: dict[str, Any]) -> None:
        while True:
            time.sleep(1)

    def do_ignore(self, task: dict[str, Any]) -> None:
        """Report progress and ignore requests to yield."""
        while True:
            self.send("progress", done=1, total=2, unit="step")
            time.sleep(0.02)

    def do_exit(self, task: dict[str, Any], status: int) -> None:
        os._exit(status)

    def do_connect(self, task: dict[str, Any], port: int) -> None:
        """Report whether it can connect to a port on this machine."""
        self.send("log", line="connected" if connects(port) else "refused")

    def do_ask_model(self, task: dict[str, Any], *rows: str) -> None:
        """Report the task model's predictions for these rows, and the code that the task has."""
        import numpy as np

        from workers.model_process.client import ModelClient, ModelFailed

        (model,) = task["models"]
        self.model = ModelClient.connect(Path(model["socket"]))
        answers: list[float | str] = []
        try:
            self.model.loaded()
            for row in rows:
                (answer,) = self.model.predict([np.frombuffer(row.encode(), np.uint8)[None]])
                answers.append(float(answer[0]))
        except ModelFailed as error:
            answers.append(str(error))
        self.send("log", line=json.dumps([answers, model["code"]]))

    def do_multiply(self, task: dict[str, Any], count: int) -> None:
        """Start so many processes, and wait."""
        for _ in range(count):
            subprocess.Popen(["sleep", "600"])
        self.do_hang(task)

    def do_babble(self, task: dict[str, Any]) -> None:
        """Print without end."""
        while True:
            sys.stdout.write("babble" * 10_000 + "\n")

    def do_extend_output(self, task: dict[str, Any]) -> None:
        """Make its output file very large, without writing it."""
        os.ftruncate(1, 2**29)
        self.do_hang(task)

    def do_see_code(self, task: dict[str, Any]) -> None:
        """Report its code files, and whether it can change them."""
        folder = Path(task["code"]["folder"])
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        texts = {str(path.relative_to(folder)): path.read_text() for path in files}
        self.send("log", line=json.dumps([texts, any(can_write(path) for path in files)]))

    def do_die(self, task: dict[str, Any]) -> None:
        os.kill(os.getpid(), signal.SIGSEGV)

    def do_fail(self, task: dict[str, Any], code: str) -> None:
        self.send("failed", code=code, message="as scripted")
        self.do_hang(task)  # events after a failure must be ignored


def can_read(path: Path) -> bool:
    try:
        return bool(list(path.iterdir())) if path.is_dir() else path.read_bytes() is not None
    except OSError:
        return False


def connects(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5):
            return True
    except OSError:
        return False


def can_write(path: Path) -> bool:
    try:
        with path.open("a"):
            return True
    except OSError:
        return False


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--events-fd", type=int)
    parser.add_argument("--parent", type=int)
    options = parser.parse_args()
    if options.parent is not None:
        die_with_parent(options.parent)
    faulthandler.register(signal.SIGUSR1)
    FakeRunner(options.events_fd).serve()


if __name__ == "__main__":
    main()
