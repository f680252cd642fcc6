"""Metrics on the way to the event pipe: a single one is written at once, frequent ones are batched."""

import json
import os
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from jobs.messages.events import POINTS_AN_EVENT, RUNNER_EVENT, Failed, Points, Result
from jobs.spec.sections.measures import LONGEST_NAME
from workers.runner import event_writer
from workers.runner.control_reader import ControlReader
from workers.runner.event_reporter import EventReporter
from workers.runner.event_writer import EventWriter
from workers.runner.metric_batching import MetricCall, SeriesKey, encode_calls


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    yield reading, writing
    os.close(reading)


@pytest.fixture
def writer(pipe: tuple[int, int]) -> EventWriter:
    return EventWriter(pipe[1])


@pytest.fixture
def report(writer: EventWriter) -> EventReporter:
    return EventReporter(writer, ControlReader(), "nowhere")


def received(pipe: tuple[int, int], writer: EventWriter) -> list[dict[str, Any]]:
    writer.flush()
    return [json.loads(line) for line in os.read(pipe[0], 2**16).splitlines()]


def call(x: float, execution: int | None = None, **values: float) -> MetricCall:
    return MetricCall(
        SeriesKey("epoch", None, execution), x, 100.0 + x, tuple(values), tuple(values.values())
    )


def encoded(*calls: MetricCall) -> list[Points]:
    events = [RUNNER_EVENT.validate_json(line) for line in encode_calls(calls)]
    points = [event for event in events if isinstance(event, Points)]
    assert points == events
    return points


def test_calls_with_the_same_names_share_a_table() -> None:
    (event,) = encoded(call(1, a=1.0, b=2.0), call(2, a=3.0, b=float("nan")))
    assert (event.names, event.at, event.times) == (("a", "b"), (1, 2), (101, 102))
    assert event.values == ((1.0, 3.0), (2.0, None))


def test_calls_with_other_names_keep_the_order_of_each_series() -> None:
    events = encoded(call(1, a=1.0), call(1, a=2.0, b=3.0), call(1, a=4.0))
    assert {event.names: event.values[0] for event in events} == {("a",): (1.0, 2.0, 4.0), ("b",): (3.0,)}


def test_executions_stay_apart() -> None:
    events = encoded(call(1, 1, a=1.0), call(1, 2, a=2.0), call(2, 1, a=3.0))
    assert [(event.execution, event.values[0]) for event in events] == [(1, (1.0, 3.0)), (2, (2.0,))]


def test_no_event_exceeds_the_supervisors_limits() -> None:
    events = encoded(*(call(x, a=1.0, b=2.0, c=3.0) for x in range(POINTS_AN_EVENT)))
    assert [x for event in events for x in event.at] == list(range(POINTS_AN_EVENT))
    long: dict[str, Any] = {"n" * 300: 1.0}
    assert encoded(call(1, **long))[0].names == ("n" * LONGEST_NAME,)
    assert encoded(call(1)) == []


def test_a_single_metric_is_written_at_once(
    pipe: tuple[int, int], report: EventReporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_writer, "BATCH_SECONDS", 60.0)
    report.metric(1, {"loss": 0.5})
    assert json.loads(os.read(pipe[0], 4096))["values"] == [[0.5]]


def test_frequent_metrics_are_delayed_no_longer_than_the_batch_interval(
    pipe: tuple[int, int], report: EventReporter
) -> None:
    began = time.monotonic()
    report.metric(1, {"loss": 1.0})
    assert json.loads(os.read(pipe[0], 4096))["at"] == [1]
    for x in range(2, 50):
        report.metric(x, {"loss": float(x)})
    at: list[float] = []
    while len(at) < 48:
        at += [x for line in os.read(pipe[0], 2**16).splitlines() for x in json.loads(line)["at"]]
    assert at == list(range(2, 50))
    assert time.monotonic() - began < 10


def test_a_phase_is_sent_once_and_the_next_progress_ends_it_at_once(
    pipe: tuple[int, int], writer: EventWriter, report: EventReporter
) -> None:
    report.progress(1, 4, "epochs")
    report.phase("compiling")
    report.phase("compiling")
    report.phase("timing")
    report.progress(1.1, 4, "epochs")  # without the phases it would come too soon after the first
    report.phase("timing")
    kinds = [(event["type"], event.get("name") or event.get("done")) for event in received(pipe, writer)]
    assert kinds == [
        ("progress", 1.0), ("phase", "compiling"), ("phase", "timing"), ("progress", 1.1), ("phase", "timing")
    ]  # fmt: skip


def test_any_other_event_flushes_waiting_metrics_in_order(
    pipe: tuple[int, int], writer: EventWriter, report: EventReporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_writer, "BATCH_SECONDS", 60.0)
    report.metric(1, {"loss": 1.0})
    os.read(pipe[0], 4096)  # from now on metrics would wait for a minute
    report.metric(2, {"loss": 2.0})
    report.metric(3, {"loss": 3.0})
    report.log("between")
    report.metric(4, {"loss": 4.0})
    kinds = [(event["type"], event.get("at")) for event in received(pipe, writer)]
    assert kinds == [("points", [2, 3]), ("log", None), ("points", [4])]


def test_a_run_waits_once_too_many_events_are_queued_and_loses_none(
    pipe: tuple[int, int], writer: EventWriter, report: EventReporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_writer, "MOST_WAITING", 100)
    sent, highest = 3000, 0
    done = threading.Event()

    def emit() -> None:
        for number in range(sent):
            report.log(f"{number:04} " + "x" * 100)
        done.set()

    threading.Thread(target=emit, daemon=True).start()
    data = b""
    # The pipe takes fewer lines than there are, so the run cannot end before they are read.
    assert not done.wait(0.2)
    while data.count(b"\n") < sent:
        highest = max(highest, writer._queue.qsize())
        data += os.read(pipe[0], 2**16)
    assert done.wait(10)
    assert highest <= 101
    assert [int(json.loads(line)["line"].split()[0]) for line in data.splitlines()] == list(range(sent))


def test_half_a_surrogate_pair_is_replaced_and_does_not_stop_the_writer(
    pipe: tuple[int, int], writer: EventWriter
) -> None:
    writer.send(Failed(time=1.0, code="bad_model", message="it uses \ud800"))
    writer.send(Result(time=2.0, result={"labels": ["a\udfff"]}))
    failed, result = received(pipe, writer)
    assert failed["message"] == "it uses ?"
    assert result["result"] == {"labels": ["a?"]}
