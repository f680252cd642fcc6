"""Events are recorded in order, whether they were kept in memory or are read from the spool again."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from jobs.messages.events import Log, RunnerEvent
from workers.supervise.attempt_repository import AttemptRepository
from workers.supervise.events import event_recorder
from workers.supervise.events.event_recorder import EventRecorder
from workers.supervise.events.event_validation import EventValidator
from workers.supervise.events.quota_watch import QuotaWatch
from workers.supervise.events.spool import Spool
from workers.supervise.timing import Timing


class Accepting:
    """Accepts all events and keeps those that are recorded."""

    def __init__(self) -> None:
        self.recorded: list[RunnerEvent] = []

    async def validate(self, events: Sequence[RunnerEvent]) -> tuple[Sequence[RunnerEvent], dict[str, Any]]:
        return events, {}

    async def record(self, _attempt: int, events: Sequence[RunnerEvent], **_position: Any) -> None:
        self.recorded += events

    async def check_disk(self) -> None:
        raise AssertionError


@pytest.mark.parametrize(("limit", "validated"), [(0, 0), (300, 2), (2**20, 10)])
async def test_events_are_recorded_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int, validated: int
) -> None:
    monkeypatch.setattr(event_recorder, "BATCH_BYTES", limit)
    accepting, spool = Accepting(), Spool(tmp_path / "spool.jsonl")
    recorder = EventRecorder(
        1,
        spool,
        cast(AttemptRepository, accepting),
        cast(EventValidator, accepting),
        Timing(),
        cast(QuotaWatch, accepting),
    )
    events = [Log(time=1.0, line=f"line {number}") for number in range(10)]
    for event in events:
        recorder.add_line(event.model_dump_json().encode(), event)
        recorder.add(event)
    recorder.close()
    await recorder.run()
    spool.close()
    assert accepting.recorded == [event for event in events for _ in range(2)]
    assert sum(any(event is recorded for recorded in accepting.recorded) for event in events) == validated
    assert not recorder._validated
