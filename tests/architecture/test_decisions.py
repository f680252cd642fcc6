"""Decision records are short, and docs/decisions/README.md lists each of them once."""

import re

from tests.architecture.sources import ROOT

FOLDER = ROOT / "docs" / "decisions"
RECORDS = sorted(path.name for path in FOLDER.glob("[0-9]*.md"))
MOST_WORDS = 600


def words(text: str) -> int:
    """Count words: parts between spaces with a letter or digit, without the targets of links."""
    return sum(any(map(str.isalnum, part)) for part in re.sub(r"\]\([^)]*\)", "]", text).split())


def test_records_are_short() -> None:
    counts = {name: words((FOLDER / name).read_text(encoding="utf-8")) for name in RECORDS}
    assert not {name: count for name, count in counts.items() if count > MOST_WORDS}


def test_the_index_lists_each_record_once_in_order() -> None:
    index = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| \[\d+\]\(([^)]+)\)", index, re.MULTILINE) == RECORDS
