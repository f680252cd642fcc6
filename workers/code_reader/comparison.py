"""Compares two versions' files line by line, and changed lines word by word, in bounded time."""

import codecs
import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from jobs.messages.code import (
    MAX_SHOWN_BYTES,
    ComparedFile,
    CompareRequest,
    Comparison,
    DifferenceLine,
    FileDifference,
)
from jobs.messages.code_text import lines_of, with_visible_marks
from workers.code_reader.files import text_of
from workers.code_reader.limits import Budget, OutOfTime, at_most

FILE_SECONDS = 2.0
ALL_SECONDS = 8.0
CONTEXT = 3
"""Equal lines that are shown around a change."""
MOST_LINES = 3_000
"""Lines of a file's difference that are shown."""
MOST_LINES_OF_ALL = 10_000
MOST_CHARACTERS_OF_ALL = 1_000_000
"""Characters of all differences that are shown."""
MOST_OF_LINE = 1_000
"""Characters of a line that are shown."""
MARK_COST = 20
"""Characters that a mark counts as: it is an element of the page."""
MOST_WORDS = 400
"""Words of a line that are matched with those of another."""
_WORD = re.compile(r"\w+|\s+|[^\w\s]")

type Block = tuple[str, int, int, int, int]


@dataclass
class _OutputLimit:
    """How many lines and characters may still be shown."""

    lines: int = MOST_LINES_OF_ALL
    characters: int = MOST_CHARACTERS_OF_ALL
    lines_of_file: int = MOST_LINES

    @property
    def is_full(self) -> bool:
        """Return whether hardly anything more can be shown."""
        return not self.lines or self.characters < MOST_OF_LINE

    def take(self, line: DifferenceLine) -> bool:
        """Count a line, and return whether it may be shown."""
        size = len(line.text) + MARK_COST * len(line.marks)
        if not self.lines or not self.lines_of_file or size > self.characters:
            return False
        self.lines -= 1
        self.lines_of_file -= 1
        self.characters -= size
        return True


def compare(request: CompareRequest) -> Comparison:
    """Return all files' differences, with at most so much text that a page can show it."""
    room, budget = _OutputLimit(), Budget(ALL_SECONDS)
    files = []
    for file in request.files:
        room.lines_of_file = MOST_LINES
        files.append(_compare(file, room, budget))
    return Comparison(files=files)


def _compare(file: ComparedFile, room: _OutputLimit, budget: Budget) -> FileDifference:
    change = "changed" if file.old and file.new else "added" if file.new else "removed"
    if room.is_full and budget.is_spent:
        note = "It is not compared: the files before it took too long."
        return FileDifference(path=file.path, change=change, note=note)
    old, new = _lines(file.old), _lines(file.new)
    if old is None or new is None:
        return FileDifference(path=file.path, change=change, note="It is not text.")
    if _is_large(file.old) or _is_large(file.new):
        note = f"It has more than {MAX_SHOWN_BYTES:,} bytes."
        return FileDifference(path=file.path, change=change, note=note)
    blocks, note = _matched(old, new, budget)
    counted = [block for block in blocks if block[0] != "equal"]
    added = sum(block[4] - block[3] for block in counted)
    removed = sum(block[2] - block[1] for block in counted)
    hunks, is_cut = _shown(blocks, old, new, room, budget)
    if not note and not counted:
        note = _why_no_line_differs(file)
    return FileDifference(
        path=file.path,
        change=change,
        added=added,
        removed=removed,
        hunks=hunks,
        note=" ".join(filter(None, (note, "Further lines are not shown." if is_cut else ""))),
    )


def _why_no_line_differs(file: ComparedFile) -> str:
    bodies = [Path(place).read_bytes() for place in (file.old, file.new) if place is not None]
    if len(bodies) == 1 or not any(body.removeprefix(codecs.BOM_UTF8) for body in bodies):
        return "It has no lines."
    texts = {body.removeprefix(codecs.BOM_UTF8) for body in bodies}
    has_mark = {body.startswith(codecs.BOM_UTF8) for body in bodies}
    if len(texts) == 1:
        return "Only the byte order mark at its start differs."
    also = " and the byte order mark at its start" if len(has_mark) > 1 else ""
    return f"Only the ends of its lines{also} differ."


def _is_large(place: str | None) -> bool:
    return place is not None and Path(place).stat().st_size > MAX_SHOWN_BYTES


def _lines(place: str | None) -> list[str] | None:
    """Return a file's lines without their ends; None if it is not text."""
    if place is None:
        return []
    text = text_of(Path(place).read_bytes())
    if text is None:
        return None
    return lines_of(text)


def _matched(old: list[str], new: list[str], budget: Budget) -> tuple[list[Block], str]:
    """Return the equal and the changed blocks, and a note if matching took too long."""
    start = _common(old, new)
    end = _common(old[start:][::-1], new[start:][::-1])
    inner_old, inner_new = old[start : len(old) - end], new[start : len(new) - end]
    note = ""
    try:
        if budget.is_spent:
            raise OutOfTime
        with at_most(FILE_SECONDS):
            matcher = difflib.SequenceMatcher(None, inner_old, inner_new)
            inner: list[Block] = list(matcher.get_opcodes())
    except OutOfTime:
        note = "Matching its lines took too long: the part that differs is shown as a whole."
        inner = [("replace", 0, len(inner_old), 0, len(inner_new))]
    moved = [(kind, a + start, b + start, c + start, d + start) for kind, a, b, c, d in inner]
    first: list[Block] = [("equal", 0, start, 0, start)] if start else []
    last: list[Block] = [("equal", len(old) - end, len(old), len(new) - end, len(new))] if end else []
    return _joined([*first, *moved, *last]), note


def _common(old: list[str], new: list[str]) -> int:
    count = 0
    for one, other in zip(old, new, strict=False):
        if one != other:
            break
        count += 1
    return count


def _joined(blocks: list[Block]) -> list[Block]:
    """Return the blocks with equal ones that follow each other as one."""
    merged: list[Block] = []
    for block in blocks:
        if merged and merged[-1][0] == block[0] == "equal":
            merged[-1] = ("equal", merged[-1][1], block[2], merged[-1][3], block[4])
        else:
            merged.append(block)
    return merged


def _shown(
    blocks: list[Block], old: list[str], new: list[str], room: _OutputLimit, budget: Budget
) -> tuple[list[list[DifferenceLine]], bool]:
    """Return the changed lines with their surroundings, and whether there are more."""
    hunks: list[list[DifferenceLine]] = [[]]
    for number, block in enumerate(blocks):
        if block[0] != "equal":
            lines: Iterator[DifferenceLine | None] = _changed(block, old, new, room.lines_of_file + 1, budget)
        else:
            lines = _surroundings(block, old, is_first=number == 0, is_last=number == len(blocks) - 1)
        for line in lines:
            if line is None:
                hunks.append([])
            elif room.take(line):
                hunks[-1].append(line)
            else:
                return [hunk for hunk in hunks if hunk], True
    return [hunk for hunk in hunks if _has_change(hunk)], False


def _surroundings(
    block: Block, old: list[str], *, is_first: bool, is_last: bool
) -> Iterator[DifferenceLine | None]:
    """Yield an equal block's lines next to changes; None where lines are left out."""
    _, a, b, c, _ = block
    before = 0 if is_first else min(CONTEXT, b - a)
    after = 0 if is_last else min(CONTEXT, b - a)
    if before + after >= b - a:
        before, after = b - a, 0
    for i in range(before):
        yield _same(old, a + i, c + i)
    if before + after < b - a:
        yield None
    for i in range(b - a - after, b - a):
        yield _same(old, a + i, c + i)


def _has_change(hunk: list[DifferenceLine]) -> bool:
    return any(line.change != "same" for line in hunk)


def _same(old: list[str], here: int, there: int) -> DifferenceLine:
    return DifferenceLine(change="same", old=here + 1, new=there + 1, text=_cut(old[here]))


def _changed(
    block: Block, old: list[str], new: list[str], most: int, budget: Budget
) -> Iterator[DifferenceLine]:
    """Yield a block's removed and then its added lines, at most so many each."""
    _, a, b, c, d = block
    # Lines are paired in their order, if there are as many of them: then each may have changed a little.
    pairs = b - a if b - a == d - c else 0
    removed = [_cut(line) for line in old[a : min(b, a + most)]]
    added = [_cut(line) for line in new[c : min(d, c + most)]]
    marks = [_marks(removed[i], added[i], budget) for i in range(min(pairs, most))]
    for i, text in enumerate(removed):
        line_marks = marks[i][0] if marks else []
        yield DifferenceLine(change="removed", old=a + i + 1, new=None, text=text, marks=line_marks)
    for i, text in enumerate(added):
        line_marks = marks[i][1] if marks else []
        yield DifferenceLine(change="added", old=None, new=c + i + 1, text=text, marks=line_marks)


def _cut(line: str) -> str:
    """Return a line as it is shown."""
    more = len(line) - MOST_OF_LINE
    text = with_visible_marks(line[:MOST_OF_LINE])
    return text if more <= 0 else f"{text} … and {more:,} more characters"


def _marks(old: str, new: str, budget: Budget) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return where the words differ; none if the lines have little in common."""
    words, others = _WORD.findall(old), _WORD.findall(new)
    if max(len(words), len(others)) > MOST_WORDS or budget.is_spent:
        return [], []
    matcher = difflib.SequenceMatcher(None, words, others, autojunk=False)
    if matcher.quick_ratio() < 0.5 or matcher.ratio() < 0.5:
        return [], []
    changes = [block for block in matcher.get_opcodes() if block[0] != "equal"]
    return (
        [_span(words, a, b) for _, a, b, _, _ in changes if b > a],
        [_span(others, c, d) for _, _, _, c, d in changes if d > c],
    )


def _span(words: list[str], first: int, last: int) -> tuple[int, int]:
    start = sum(map(len, words[:first]))
    return start, start + sum(map(len, words[first:last]))
