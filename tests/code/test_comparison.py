"""Differences between files: lines, words, and bounds of time and size."""

import itertools
import random
from pathlib import Path

import pytest

from jobs.messages.code import ComparedFile, CompareRequest, FileDifference
from workers.code_reader import comparison
from workers.code_reader.comparison import compare


def difference(folder: Path, old: str | bytes | None, new: str | bytes | None) -> FileDifference:
    places = []
    for name, text in (("old", old), ("new", new)):
        if text is not None:
            (folder / name).write_bytes(text.encode() if isinstance(text, str) else text)
        places.append(None if text is None else str(folder / name))
    return compare(CompareRequest(files=[ComparedFile(path="a.py", old=places[0], new=places[1])])).files[0]


def lines(file_difference: FileDifference) -> list[tuple[str, int | None, int | None, str]]:
    return [(line.change, line.old, line.new, line.text) for line in itertools.chain(*file_difference.hunks)]


def test_a_changed_line_is_shown_with_its_surroundings_and_its_words(tmp_path: Path) -> None:
    old = "".join(f"line {number}\n" for number in range(1, 21))
    file_difference = difference(tmp_path, old, old.replace("line 10\n", "line ten\n"))
    assert (file_difference.change, file_difference.added, file_difference.removed) == ("changed", 1, 1)
    shown_lines = lines(file_difference)
    assert [(change, text) for change, _, _, text in shown_lines[3:5]] == [
        ("removed", "line 10"),
        ("added", "line ten"),
    ]
    assert [text for _, _, _, text in shown_lines] == [
        "line 7", "line 8", "line 9", "line 10", "line ten", "line 11", "line 12", "line 13",
    ]  # fmt: skip
    marks = [line.marks for line in file_difference.hunks[0] if line.change != "same"]
    assert marks == [[(5, 7)], [(5, 8)]]


def test_the_lines_before_the_first_change_and_after_the_last_are_three(tmp_path: Path) -> None:
    old = "".join(f"{number}\n" for number in range(1, 10))
    shown_lines = lines(difference(tmp_path, old, old.replace("5", "five")))
    assert [text for _, _, _, text in shown_lines] == ["2", "3", "4", "5", "five", "6", "7", "8"]


def test_changes_that_are_far_apart_have_parts_of_their_own(tmp_path: Path) -> None:
    old = [f"{number}" for number in range(40)]
    new = ["first", *old[:20], "middle", *old[20:], "last"]
    file_difference = difference(tmp_path, "\n".join(old), "\n".join(new))
    assert [len(hunk) for hunk in file_difference.hunks] == [4, 7, 4]
    assert (file_difference.added, file_difference.removed) == (3, 0)


@pytest.mark.parametrize(("old", "new", "change"), [(None, "x\ny\n", "added"), ("x\ny\n", None, "removed")])
def test_a_file_in_one_version_is_shown_as_a_whole(
    tmp_path: Path, old: str | None, new: str | None, change: str
) -> None:
    file_difference = difference(tmp_path, old, new)
    assert file_difference.change == change
    assert [(line[0], line[3]) for line in lines(file_difference)] == [(change, "x"), (change, "y")]


def test_every_line_of_both_files_is_shown_once_and_in_order(tmp_path: Path) -> None:
    rng = random.Random(4)
    for _ in range(40):
        old = [rng.choice("abcd") * rng.randint(1, 3) for _ in range(rng.randint(0, 30))]
        new = [line_text for line_text in old if rng.random() > 0.2]
        for _ in range(rng.randint(0, 5)):
            new.insert(rng.randint(0, len(new)), rng.choice("abcdxyz"))
        shown_lines = lines(
            difference(tmp_path, "".join(f"{e}\n" for e in old), "".join(f"{e}\n" for e in new))
        )
        for change, number, text in [("removed", 1, old), ("added", 2, new)]:
            assert all(line[3] == text[line[number] - 1] for line in shown_lines if line[0] == change)  # type: ignore[operator]
        # Lines that are not shown are equal in both.
        hidden_old = [
            text for place, text in enumerate(old, 1) if place not in {line[1] for line in shown_lines}
        ]
        hidden_new = [
            text for place, text in enumerate(new, 1) if place not in {line[2] for line in shown_lines}
        ]
        assert hidden_old == hidden_new


def test_bytes_and_large_files_are_named_and_not_compared(tmp_path: Path) -> None:
    assert difference(tmp_path, b"\0a", b"\0b").note == "It is not text."
    assert "more than 524,288 bytes" in difference(tmp_path, "#" * 600_000, "x").note


def test_other_ends_of_lines_are_named(tmp_path: Path) -> None:
    assert difference(tmp_path, "x\n", "x\r\n").note == "Only the ends of its lines differ."


@pytest.mark.parametrize(
    ("old", "new", "note"),
    [
        (None, b"", "It has no lines."),
        (b"\xef\xbb\xbf", None, "It has no lines."),
        (b"", b"\xef\xbb\xbf", "It has no lines."),
        (b"x\n", b"\xef\xbb\xbfx\n", "Only the byte order mark at its start differs."),
        (b"x\n", b"\xef\xbb\xbfx", "Only the ends of its lines and the byte order mark at its start differ."),
    ],
)
def test_files_without_a_different_line_say_why(
    tmp_path: Path, old: bytes | None, new: bytes | None, note: str
) -> None:
    assert difference(tmp_path, old, new).note == note


def test_a_long_line_is_cut_with_a_mark(tmp_path: Path) -> None:
    (line,) = difference(tmp_path, "", "x" * 5_000).hunks[0]
    assert line.text == "x" * 1_000 + " … and 4,000 more characters"


def test_the_characters_that_are_shown_are_bounded(tmp_path: Path) -> None:
    (tmp_path / "new").write_text(("x" * 900 + "\n") * 500)
    file = ComparedFile(path="a.py", old=None, new=str(tmp_path / "new"))
    files = compare(CompareRequest(files=[file] * 5)).files
    characters = sum(len(line.text) for file_out in files for hunk in file_out.hunks for line in hunk)
    assert 900_000 < characters <= comparison.MOST_CHARACTERS_OF_ALL
    assert files[-1].note == "Further lines are not shown."


def test_files_after_too_much_work_are_only_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "ALL_SECONDS", 0.0)
    (tmp_path / "old").write_text("x\n" * 50_000)
    (tmp_path / "new").write_text("y\n" * 50_000)
    file = ComparedFile(path="a.py", old=str(tmp_path / "old"), new=str(tmp_path / "new"))
    files = compare(CompareRequest(files=[file] * 6)).files
    assert [bool(file_out.hunks) for file_out in files] == [True] * 4 + [False] * 2
    assert files[-1].note == "It is not compared: the files before it took too long."


def test_compared_lines_show_what_changes_their_direction(tmp_path: Path) -> None:
    (line,) = difference(tmp_path, "", "a\u202eb").hunks[0]
    assert line.text == "a⟨U+202E⟩b"


def test_files_that_take_too_long_are_shown_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparison, "FILE_SECONDS", 0.002)
    rng = random.Random(1)
    words = [f"{number % 300}" for number in range(3_000)]
    old, new = words[:], words[:]
    rng.shuffle(old)
    rng.shuffle(new)
    file_difference = difference(tmp_path, "\n".join(["same", *old]), "\n".join(["same", *new]))
    assert file_difference.note.startswith("Matching its lines took too long")
    assert file_difference.note.endswith("Further lines are not shown.")
    assert (file_difference.added, file_difference.removed) == (3_000, 3_000)


def test_a_long_difference_is_cut(tmp_path: Path) -> None:
    file_difference = difference(tmp_path, "", "x\n" * 5_000)
    assert (len(file_difference.hunks[0]), file_difference.added) == (comparison.MOST_LINES, 5_000)
    assert file_difference.note == "Further lines are not shown."
