"""The levels, their guarantees and the documents about them."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from jobs.messages.sandbox import (
    DEFAULT_MINIMUM,
    ENFORCEMENTS,
    GUARANTEES,
    LEVELS,
    Enforcement,
    Guarantee,
    Level,
    LevelState,
    Limits,
    SandboxRecord,
    SandboxRequest,
    choose_level,
    present_level,
    refusal,
)

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "sandbox.md"
LIMITS = Limits(
    memory_of_all=1, processes_of_all=1, disk_of_all=1, output_of_all=1, file_bytes=1, cpu_seconds=1
)
STRENGTH_OF_ENFORCEMENT = [
    Enforcement.KERNEL, Enforcement.NETWORK_RULES, Enforcement.SIGNAL_RULES, Enforcement.WATCHED,
    Enforcement.OWN_USER, Enforcement.NO,
]  # fmt: skip


def table() -> str:
    """Return the guarantee table as it is in the document."""
    head = ["what code of users cannot do", *(LEVELS[level].label for level in Level)]
    rows = [[info.text, *map(str, info.by_level)] for info in GUARANTEES.values()]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows))


def request(**fields: Any) -> SandboxRequest:
    return SandboxRequest(**{"writable": ("/run/own",), "folder": "/run/own", "limits": LIMITS, **fields})


def states(*offered: Level) -> list[LevelState]:
    return [
        LevelState(
            level=level, offered=level in offered, reason="" if level in offered else f"no {level} here"
        )
        for level in Level
    ]


def test_the_document_has_the_table_of_guarantees() -> None:
    assert table() in DOCUMENT.read_text(encoding="utf-8"), f"write this table into {DOCUMENT}:\n{table()}"


def test_the_document_explains_each_level_and_each_word_of_the_table() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    for level in LEVELS.values():
        assert f"- **{level.label}**: {level.summary}" in text
    for enforcement, meaning in ENFORCEMENTS.items():
        assert f"- *{enforcement}*: {meaning}" in text


def test_every_guarantee_has_a_text_and_no_weaker_level_holds_more() -> None:
    assert GUARANTEES.keys() == set(Guarantee)
    for info in GUARANTEES.values():
        order = [STRENGTH_OF_ENFORCEMENT.index(enforcement) for enforcement in info.by_level]
        assert order == sorted(order), info.text


def test_levels_are_ordered_and_a_minimum_admits_itself_and_all_stronger_ones() -> None:
    assert DEFAULT_MINIMUM is Level.LANDLOCK
    assert [level.reaches(Level.LANDLOCK) for level in Level] == [True, True, False]
    assert Level.BUBBLEWRAP.strength > Level.LANDLOCK.strength > Level.PROCESS.strength


def test_the_strongest_offered_level_is_chosen() -> None:
    assert choose_level(states(*Level), Level.PROCESS) is Level.BUBBLEWRAP
    assert choose_level(states(Level.LANDLOCK, Level.PROCESS), Level.LANDLOCK) is Level.LANDLOCK
    assert choose_level(states(Level.PROCESS), Level.LANDLOCK) is None


def test_a_refusal_names_the_minimum_and_why_each_level_is_missing() -> None:
    text = refusal(states(Level.PROCESS), Level.LANDLOCK)
    assert "level landlock or a stronger one" in text
    assert "bubblewrap: no bubblewrap here; landlock: no landlock here" in text
    assert "process" not in text


def test_records_of_a_level_of_earlier_releases_can_be_read_and_no_run_gets_it() -> None:
    old = {"level": "namespaces", "offered": True}
    limits = LIMITS.model_dump()
    sandbox = SandboxRecord.model_validate(
        {"level": "namespaces", "network": False, "limits": limits, "missing": [old]}
    )
    assert sandbox.model_dump(mode="json")["level"] == "namespaces"
    assert sandbox.holds(Guarantee.SEE_PROCESSES)
    assert present_level("namespaces") is Level.BUBBLEWRAP
    offered = [LevelState.model_validate(old), *states(Level.PROCESS)]
    assert choose_level(offered, Level.PROCESS) is Level.PROCESS
    assert "namespaces" not in refusal(offered, Level.BUBBLEWRAP)


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"writable": ("own",)}, "writable"),
        ({"readable": ("/data/../etc",)}, "readable"),
        ({"writable": ("/",)}, "writable"),
        ({"folder": "/elsewhere"}, "the working folder '/elsewhere'"),
        ({"readable": ("/run/own/data",)}, "'/run/own/data' is in a writable folder"),
        ({"writable": ("/run/own", "/run/own/data")}, "'/run/own/data' is in another writable folder"),
        ({"ports": (0,)}, "ports"),
        ({"environment": {"A=B": "1"}}, "environment"),
        ({"environment": {"A": "\0"}}, "environment"),
        ({"unknown": 1}, "unknown"),
    ],
)
def test_a_bad_request_is_refused_with_the_field(fields: dict[str, Any], named: str) -> None:
    with pytest.raises(ValidationError, match=named):
        request(**fields)


def test_a_guarantee_holds_only_with_what_it_needs() -> None:
    def holds(guarantee: Guarantee, level: Level, **fields: Any) -> bool:
        sandbox = SandboxRecord(**{"level": level, "network": False, "limits": LIMITS, **fields})
        assert SandboxRecord.model_validate_json(sandbox.model_dump_json()) == sandbox
        return sandbox.holds(guarantee)

    assert holds(Guarantee.READ, Level.LANDLOCK, landlock=1)
    assert not holds(Guarantee.READ, Level.PROCESS)
    assert holds(Guarantee.READ, Level.PROCESS, uid=60601)
    assert not holds(Guarantee.SIGNAL, Level.LANDLOCK, landlock=5)
    assert holds(Guarantee.SIGNAL, Level.LANDLOCK, landlock=6)
    assert holds(Guarantee.SURVIVE, Level.LANDLOCK, landlock=1, uid=60601)
    asked = {"network": True, "ports": (443,)}
    assert holds(Guarantee.PORTS, Level.BUBBLEWRAP, landlock=4, **asked)
    assert not holds(Guarantee.PORTS, Level.BUBBLEWRAP, landlock=3, **asked)
    assert not holds(Guarantee.PORTS, Level.BUBBLEWRAP, landlock=4, network=True)
    assert holds(Guarantee.PORTS, Level.BUBBLEWRAP), "without network there is no port at all"
    assert not holds(Guarantee.NETWORK, Level.BUBBLEWRAP, **asked)
    assert not holds(Guarantee.CALLS, Level.PROCESS, uid=60601)
