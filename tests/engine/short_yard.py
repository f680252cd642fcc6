"""A whole installation in this process: REST, scheduler, engine and the program that executes a served model.

It has no server, broker or worker: requests call the application, and waiting for a job runs its tasks.
Searches are left out, and so is what executes user code, because it needs a sandbox.
"""

import html
import json
import re
import shlex
import socket
import threading
import time
from pathlib import Path
from typing import Any
from unittest import mock

import httpx2
import numpy as np
import numpy.typing as npt
from django.core.handlers.wsgi import WSGIHandler
from django.core.signals import request_finished, request_started
from django.db import close_old_connections

from jobs import clock, scheduler
from jobs.actions.data import datasets
from jobs.actions.runs import attempt_end, tasks
from jobs.messages import events
from jobs.models import Attempt, ModelVersion, User
from jobs.spec.signature import Signature
from jobs.states import FINAL, JobState
from jobs.store import store
from tests.engine.tasks.model_processes import own_process
from tests.engine.training.engine_worker import ControlReader, EventWriter
from tests.flow.people import tokens
from tests.flow.yard import PROJECT
from tests.jobs.yard import PretendWorker
from tests.people import browser_of
from webapp.demo.client import Body, Client
from workers.model_process.frames import Frame, FrameReader, write_frame
from workers.runner.event_reporter import EventReporter
from workers.runner.failures import describe
from workers.runner.registry import load
from workers.serving.protocols.tfs_predict import encode_predict, parse_predict
from workers.serving.table import columns_of, read_table, window_of
from workers.supervise.attempt_end import AttemptEnd

MOST_TURNS = 60
UNFINISHED = frozenset(JobState) - FINAL
Array = npt.NDArray[Any]


class LocalClient(Client):
    """Calls this process's REST API."""

    def __init__(self, token: str, name: str) -> None:
        super().__init__("http://testserver", token, name, patience=0)
        self._http = httpx2.Client(
            base_url="http://testserver/api/v1",
            headers={"Authorization": f"Bearer {token}"},
            transport=httpx2.WSGITransport(app=WSGIHandler()),
        )

    def _send(self, method: str, path: str, **arguments: Any) -> httpx2.Response:
        """Send a request that leaves the test's database connection open."""
        signals = (request_started, request_finished)
        for signal in signals:
            signal.disconnect(close_old_connections)
        try:
            return super()._send(method, path, **arguments)
        finally:
            for signal in signals:
                signal.connect(close_old_connections)


class LocalWorker(PretendWorker):
    """Runs tasks of every kind with the real engine, one after another in this thread."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        # It is not renewed while the engine trains.
        self.row.lease_until = clock.seconds_from_now(3600)
        self.row.save(update_fields=["lease_until"])
        self._folder = folder

    def run(self, attempt: Attempt, **_: Any) -> None:
        folder = self._folder / f"attempt-{attempt.pk}"
        folder.mkdir(parents=True)
        writer = EventWriter()
        writer.send(events.Started(time=time.time()))
        task = tasks.task_for(attempt.pk, folder=folder, threads=1)
        final: events.Result | events.Failed
        try:
            result = load(task)(task, EventReporter(writer, ControlReader(), str(folder)))  # type: ignore[arg-type]
            final = events.Result(time=time.time(), result=result)
        except Exception as error:  # noqa: BLE001  as a runner does
            final = describe(error, time.time())
        files = {
            event.path: store().put(folder / event.path)
            for event in writer.sent
            if isinstance(event, events.ArtifactWritten)
        }
        self.report(attempt, *writer.sent, files=files)
        end = AttemptEnd.from_event(final)
        attempt_end.finish(attempt.pk, end.outcome, error=end.error, result=end.result)


class ShortYard:
    """An installation with a trainer `ada` and an approver `grace`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.worker = LocalWorker(folder)
        self.ada, self.grace = (LocalClient(token, name) for name, token in tokens().items())
        self.ada.post("/projects", {"slug": PROJECT, "name": "Flow"})
        self.ada.put(f"/projects/{PROJECT}/members", {"user": "grace", "role": "approver"})

    def turn(self) -> None:
        """Let the scheduler act, and run all tasks that it has placed."""
        scheduler.tick()
        for attempt in self.worker.claim_all():
            self.worker.run(attempt)
        scheduler.tick()

    def until_left(self, address: str, *states: str, **query: str) -> Body:
        """Run tasks until the resource at an address has left these states; return it."""
        for _ in range(MOST_TURNS):
            if (answer := self.ada.get(address, **query))["state"] not in states:
                return answer
            self.turn()
        raise AssertionError(answer)

    # Data

    def bundle(self, dataset: str) -> None:
        """Make and profile a bundled data set, without the others."""
        with mock.patch.dict(datasets.BUNDLED, {dataset: datasets.BUNDLED[dataset]}, clear=True):
            datasets.ensure_bundled()
        self.until_ready(dataset)

    def until_ready(self, dataset: str, version: int = 1, **query: str) -> Body:
        """Profile a data set version."""
        answer = self.until_left(f"/datasets/{dataset}/versions/{version}", "preparing", **query)
        assert answer["state"] == "ready", answer
        return answer

    def upload(self, slug: str, name: str, content: bytes, **fields: str) -> Body:
        """Send a file as a new data set in the project and profile it."""
        self.ada.upload("/datasets", {"project": PROJECT, "slug": slug, **fields}, name, content)
        return self.until_ready(slug, project=PROJECT)

    # Jobs

    def train(self, spec: Body) -> Body:
        """Run an experiment to its end, which must be a good one; return its job."""
        experiment = self.ada.post("/experiments", {"project": PROJECT, "name": "flow", "spec": spec})
        job = self.ada.post(f"/experiments/{experiment['id']}/submit")["job"]
        ended = self.until_left(f"/jobs/{job}", *UNFINISHED)
        assert ended["state"] == "completed", ended["error"]
        return ended

    # Models

    def until_validated(self, model: str, version: int) -> Body:
        """Validate an uploaded version."""
        answer = self.until_left(f"/models/{model}/versions/{version}", "validating")
        assert answer["state"] == "candidate", answer["error"]
        return answer

    def promote(self, model: str, version: int) -> None:
        """Take a version to production by both people."""
        wish = {"model": model, "version": version, "stage": "production", "comment": "A test asks."}
        address = f"/promotions/{self.ada.post('/promotions', wish)['id']}"
        waiting = self.until_left(address, "gating")
        assert waiting["state"] == "pending", waiting["gates"]
        open_gates = [gate["name"] for gate in waiting["gates"] if gate["state"] == "not_evaluated"]
        self.grace.post(f"{address}/approve", {"comment": "Fine.", "accept": open_gates})

    def predict(self, model: str, examples: list[Any]) -> tuple[int, list[Any]]:
        """Return the version in production and its answers to a request body."""
        number = self.ada.get(f"/endpoints/{model}")["production"]
        version = ModelVersion.objects.get(model__name=model, number=number)
        return number, self._answers_of(version, examples)

    def answers(self, model: str, examples: list[Any]) -> list[Any]:
        """Return the answers of a model's first version to a request's rows."""
        return self._answers_of(ModelVersion.objects.get(model__name=model, number=1), examples)

    def example(self, model: str) -> Any:
        """Return the row in the curl request on the page of a model's first version."""
        page = browser_of(User.objects.get(username="ada")).get(f"/models/{model}/versions/1?tab=use")
        (command,) = re.findall(r'id="use-curl"[^>]*>(.*?)</', page.content.decode(), re.DOTALL)
        words = shlex.split(html.unescape(command))
        (row,) = json.loads(words[words.index("-d") + 1])["instances"]
        return row

    def _answers_of(self, version: ModelVersion, examples: list[Any]) -> list[Any]:
        """Return a version's answers to a request's rows, from the program that serves it."""
        file = self.folder / f"served-{version.pk}.keras"
        if not file.exists():
            file.symlink_to(store().path(version.artifact_id))
        table = read_table(file)
        with Child(file) as child:
            signature = child.signature.model_copy(
                update={"columns": columns_of(table), "window": window_of(table)}
            )
            body = json.dumps({"instances": examples}).encode()
            call = parse_predict(body, signature, None if table is None else table.pipeline)
            answer = encode_predict(child.outputs(call.arrays), signature, rows=call.rows)
        answers: list[Any] = json.loads(answer)["predictions"]
        return answers


class Child:
    """The program that executes a served model, in a thread."""

    def __init__(self, file: Path) -> None:
        self._ours, theirs = socket.socketpair()
        self._frames = FrameReader(self._ours)
        self._thread = threading.Thread(target=self._serve, args=(theirs,), daemon=True)
        self._thread.start()
        write_frame(self._ours, {"op": "load", "model": str(file), "seen": []})
        self.signature = Signature.model_validate(self._next("ready").header["signature"])

    def __enter__(self) -> "Child":
        return self

    def __exit__(self, *_: object) -> None:
        self._ours.close()
        self._thread.join(10)

    @staticmethod
    def _serve(connection: socket.socket) -> None:
        with connection:
            own_process(connection, max_batch=1)  # each larger batch would be compiled, too

    def outputs(self, inputs: list[Array]) -> list[Array]:
        """Return the outputs for some rows."""
        outputs_of_rows = []
        for row in range(len(inputs[0])):
            write_frame(self._ours, {"op": "predict", "id": row}, [array[row : row + 1] for array in inputs])
            # Copied: the next frame is read into the same buffer.
            outputs_of_rows.append([array.copy() for array in self._next("outputs").tensors])
        return [np.concatenate(arrays) for arrays in zip(*outputs_of_rows, strict=True)]

    def _next(self, op: str) -> Frame:
        while (frame := self._frames.read()) is not None:
            if frame.header["op"] == op:
                return frame
            assert frame.header["op"] != "error", frame.header
        raise AssertionError("the program has ended")
