"""Writes the results of `benchmarks.guides` as a table of Markdown."""

import json
from pathlib import Path
from typing import Any

HEAD = (
    "| example | changed | space | Trainyard | KerasTuner | within |",
    "|---|---|---|---|---|---|",
)


def table(file: Path) -> str:
    """Return the table of a file with results: one row for each configuration."""
    lines = file.read_text(encoding="utf-8").splitlines()
    rows = [row for line in lines for row in _rows(json.loads(line))]
    return "\n".join([*HEAD, *rows])


def _rows(result: dict[str, Any]) -> list[str]:
    begin = f"| {result['example']} | {result['changed']} |"
    if "error" in result:
        return [f"{begin} | {result['error'][:100]} | | |"]
    space = result["space"]
    equal = f"{len(space['names'])} equal" if not space["differences"] else "; ".join(space["differences"])
    return [f"{begin} {equal} | {_scores(scores)} |" for scores in result.get("scores", [])] or [
        f"{begin} {equal} | | | |"
    ]


def _scores(scores: dict[str, Any]) -> str:
    if "means" not in scores:
        own = ", ".join(f"{score:.4g}" for score in scores["ours"]) or "fails"
        return f"{own} | {scores.get('error', '')[-80:] or 'fails'} | {_word(scores.get('within'))}"
    parts = [
        f"{mean:.4g} ± {deviation:.2g}"
        for mean, deviation in zip(scores["means"], scores["deviations"], strict=True)
    ]
    return " | ".join([*parts, _word(scores["within"])])


def _word(within: bool | None) -> str:
    return "yes" if within else "no"
