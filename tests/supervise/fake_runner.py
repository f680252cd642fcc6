"""A runner that speaks the protocol and imports nothing large: what kill tests kill.

A profile task's `bundled` is its script, a JSON list of steps; other tasks train for `fit.epochs` short
epochs (or `MANY` long ones: a run that is only to last) and commit a checkpoint after each.
"""

import argparse
import faulthandler
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from workers.runner.parent_death import die_with_parent

EPOCH = 0.02
LONG_EPOCH = 0.25
MANY = 1000
BROKEN, SLOW = 97, 99
"""With so many threads, a rehearsal fails, or never ends."""


class Fake:
    def __init__(self, descriptor: int) -> None:
        self.pipe = os.fdopen(descriptor, "wb", buffering=0)
        self.starts: list[str] = []
        self.why: str | None = None
        self.more = threading.Event()
        self.ballast: list[bytes] = []
        self.recorded: list[str] = []
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self) -> None:
        for line in sys.stdin:
            order = json.loads(line)
            if order["op"] == "start":
                self.why = None
                self.starts.append(order["task"])
                self.more.set()
            elif order["op"] == "rehearse":
                if order["threads"] < SLOW:
                    self.say("ready" if order["threads"] < BROKEN else "failed", message="as told")
            elif order["op"] == "yield":
                self.why = order["why"]
            elif order["op"] == "recorded":
                self.recorded += order["folders"]
            elif order["op"] == "compare":
                self.say("log", line=f"told of {[curve['trial'] for curve in order['curves']]}")
        os._exit(0)

    def say(self, kind: str, **fields: Any) -> None:
        self.pipe.write(json.dumps({"type": kind, "time": time.time(), **fields}).encode() + b"\n")

    def points(self, first: int, last: int, **fields: Any) -> None:
        for x in range(first, last):
            self.say("metric", points=[["loss", x, 1 / (x + 1), time.time()]], **fields)

    def serve(self) -> None:
        while True:
            self.more.wait()
            self.more.clear()
            task = json.loads(Path(self.starts.pop()).read_text())
            self.say("started", record={"pid": os.getpid()})
            self.run(task)

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
            self.say("result", result={"pid": os.getpid()})
        except InterruptedError:
            self.say("yielded", why=self.why)

    def run_trial(self, task: dict[str, Any], trial: dict[str, Any]) -> None:
        self.obey()
        about: dict[str, Any] = {"trial": trial["number"]}
        self.say("trial_begun", **about)
        for plan in trial["executions"]:
            about["execution"] = plan["execution"]
            self.train(task, resume=plan["checkpoints"], **about)
            epochs = task["spec"]["fit"]["epochs"]
            self.say("execution", **about, state="completed", score=0.9, best_epoch=1, epochs=epochs)
        self.say("trial_done", trial=trial["number"], state="completed")

    def train(self, task: dict[str, Any], *, resume: Sequence[dict[str, Any]] = (), **about: int) -> None:
        epochs = task["spec"]["fit"]["epochs"]
        for epoch in range(1 + max((kept["step"] for kept in resume), default=0), epochs + 1):
            self.obey()
            time.sleep(EPOCH if epochs < MANY else LONG_EPOCH)
            self.points(epoch, epoch + 1, **about)
            self.do_checkpoint(task, epoch, **about)

    def obey(self) -> None:
        if self.why is not None:
            raise InterruptedError

    def do_points(self, task: dict[str, Any], first: int, last: int) -> None:
        for start in range(first, last, 10):
            xs = list(range(start, min(start + 10, last)))
            losses = [1 / (x + 1) for x in xs]
            self.say("points", names=["loss"], at=xs, times=[time.time()] * len(xs), values=[losses])

    def do_slowly(self, task: dict[str, Any], first: int, last: int, seconds: float) -> None:
        for x in range(first, last):
            self.obey()
            self.points(x, x + 1)
            time.sleep(seconds)

    def do_print(self, task: dict[str, Any], text: str) -> None:
        sys.stdout.write(text + "\n")

    def do_complain(self, task: dict[str, Any], text: str) -> None:
        sys.stderr.write(text + "\n")

    def do_raw(self, task: dict[str, Any], text: str) -> None:
        self.pipe.write(text.encode() + b"\n")

    def do_artifact(self, task: dict[str, Any], name: str, text: str) -> None:
        (Path(task["folder"]) / name).write_text(text)
        self.say("artifact", role="report", name=name, path=name)

    def do_claim_artifact(self, task: dict[str, Any], path: str) -> None:
        self.say("artifact", role="report", name="x", path=path)

    def do_checkpoint(self, task: dict[str, Any], step: int, **about: int) -> None:
        of = "-".join(str(number) for number in about.values()) or "0"
        folder = Path(task["checkpoints"]) / f"{step}-{task['fence']}-{of}"
        folder.mkdir(parents=True, exist_ok=True)
        fields = {"step": step, "epoch": step, "manifest": "0" * 64, "bytes": 1}
        self.say("checkpoint", folder=str(folder), **about, **fields)

    def do_await_recorded(self, task: dict[str, Any], count: int) -> None:
        while len(self.recorded) < count:
            self.obey()
            time.sleep(0.001)
        self.say("log", line=f"recorded {self.recorded}")

    def do_environment(self, task: dict[str, Any]) -> None:
        sys.stdout.write(json.dumps(dict(os.environ)) + "\n")

    def do_eat(self, task: dict[str, Any], mebibytes: int) -> None:
        self.ballast.append(os.urandom(mebibytes * 2**20))

    def do_hold(self, task: dict[str, Any]) -> None:
        """Wait to be told."""
        while True:
            self.obey()
            self.say("progress", done=1, total=2, unit="step")
            time.sleep(0.02)

    def do_hang(self, task: dict[str, Any]) -> None:
        while True:
            time.sleep(1)

    def do_ignore(self, task: dict[str, Any]) -> None:
        """Work on, whatever is asked."""
        while True:
            self.say("progress", done=1, total=2, unit="step")
            time.sleep(0.02)

    def do_die(self, task: dict[str, Any]) -> None:
        os.kill(os.getpid(), signal.SIGSEGV)

    def do_fail(self, task: dict[str, Any], code: str) -> None:
        self.say("failed", code=code, message="as told")
        self.do_hang(task)  # what a failed task leaves behind is never heard


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--events-fd", type=int)
    parser.add_argument("--parent", type=int)
    options = parser.parse_args()
    die_with_parent(options.parent)
    faulthandler.register(signal.SIGUSR1)
    Fake(options.events_fd).serve()


if __name__ == "__main__":
    main()
