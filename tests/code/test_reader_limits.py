"""Archives and lines of code within limits: refusals, and bounds of the view."""

import dataclasses
import json
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from jobs.messages.code import (
    MAX_FILES,
    MAX_RUNS,
    MAX_SHOWN_LINES,
    Highlighted,
    HighlightRequest,
    ReadRequest,
    SentFile,
)
from tests.code.making import MODEL, link, read_files, tarred, zipped
from webapp.child_processes import inherited_environment
from workers.code_reader import files, highlighting, limits
from workers.code_reader.highlighting import highlight
from workers.system.archives import BadArchive

ROOT = Path(__file__).resolve().parents[2]


def refusal(folder: Path, body: bytes, name: str = "code.zip") -> str:
    with pytest.raises(BadArchive) as refused:
        read_files(folder, {name: body})
    return str(refused.value)


@pytest.mark.parametrize("pack", [zipped, tarred])
def test_an_archive_is_its_files_without_hidden_ones_and_the_folder_around_them(
    tmp_path: Path, pack: object
) -> None:
    files = {
        "shop/model.py": MODEL, "shop/layers/dense.py": "", "shop/.git/config": "x",
        "shop/vocabulary.bin": b"\0",
        "shop/__pycache__/model.cpython-313.pyc": b"\0", "__MACOSX/shop/._model.py": "x",
    }  # fmt: skip
    reading = read_files(tmp_path, {"code.zip": pack(files)})  # type: ignore[operator]
    assert [(file.path, file.lines) for file in reading.files] == [
        ("layers/dense.py", 0), ("model.py", 23), ("vocabulary.bin", None),
    ]  # fmt: skip
    assert reading.found.left_out == 3


def test_the_folder_of_a_package_stays(tmp_path: Path) -> None:
    files = {"shop/__init__.py": "", "shop/model.py": MODEL}
    assert [file.path for file in read_files(tmp_path, files).files] == list(files)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (zipped({"../model.py": MODEL}), "'../model.py' in the archive leads out of its folder"),
        (zipped({"/model.py": MODEL}), "'/model.py' in the archive has an absolute name"),
        (zipped({"C:\\model.py": MODEL}), "has an absolute name"),
        (tarred({}, link("model.py")), "'model.py' in the archive is a link"),
        (tarred({}, link("model.py", tarfile.LNKTYPE)), "'model.py' in the archive is a link"),
        (tarred({}, link("model.py", tarfile.CHRTYPE)), "'model.py' in the archive is a device"),
        (tarred({}, link("model.py", tarfile.FIFOTYPE)), "'model.py' in the archive is a device"),
        (zipped({"a/" * 21 + "model.py": MODEL}), "inside of more than 20 folders"),
        (zipped({"big.py": "#" * (2**21 + 1)}), "'big.py' in the archive has 2,097,153 bytes"),
        (zipped({f"{n}.py": "#" * 2**21 for n in range(11)}), "more than 20,971,520"),
        (zipped({f"{n}.py": "" for n in range(MAX_FILES + 1)}), "at most 500 files"),
        (zipped({"readme.md": "x"}), "there is no Python file"),
        (zipped({"a": "x", "a/b.py": ""}), "'a' is a file and a folder at once"),
        (b"PK\x03\x04 no archive", "is damaged"),
        (b"no archive", "is neither a zip"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_an_archive_is_refused_with_the_reason(tmp_path: Path, body: bytes, message: str) -> None:
    assert message in refusal(tmp_path, body)


def test_a_path_that_was_sent_twice_or_leads_outside_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path, b"", "../model.py") == "'../model.py' leads out of its folder"
    with pytest.raises(BadArchive, match=r"'a/model\.py' is there twice"):
        read_files(tmp_path, {"a/model.py": "", "a\\model.py": ""})


def test_a_file_is_kept_under_a_number_and_not_under_its_name(tmp_path: Path) -> None:
    read_files(tmp_path, {"layers/dense.py": "x = 1\n"})
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["0"]


def run(request: ReadRequest | HighlightRequest) -> subprocess.CompletedProcess[bytes]:
    """Run the process as the web process does."""
    return subprocess.run(
        [sys.executable, "-m", "workers.code_reader"],
        input=request.model_dump_json().encode(),
        capture_output=True,
        cwd=ROOT,
        env=inherited_environment(),
        check=False,
    )


@pytest.mark.parametrize(
    "source",
    [
        "x = " + "-" * 500_000 + "1",
        "x = " + "(" * 500_000,
        "a" + ".a" * 300_000,
        "x = " + "1+" * 100_000 + "1",
    ],
    ids=["signs", "parentheses", "attributes", "sums"],
)
def test_deep_nesting_ends_at_most_the_process_that_reads_it(tmp_path: Path, source: str) -> None:
    (tmp_path / "deep.py").write_text(source)
    sent = [SentFile(place=str(tmp_path / "deep.py"), path="deep.py")]
    done = run(ReadRequest(files=sent, into=str(tmp_path)))
    # Which of both depends on the stack of the machine: the parser may end the process.
    if done.returncode == 0:
        (problem,) = json.loads(done.stdout)["found"]["problems"]
        assert "nested" in problem["message"]
    else:
        assert done.returncode < 0
        assert not done.stdout


def test_code_that_would_act_when_imported_does_nothing(tmp_path: Path) -> None:
    (tmp_path / "evil.py").write_text(
        f"from pathlib import Path\nPath({str(tmp_path / 'done')!r}).touch()\ndef build_model(hp): ...\n"
    )
    sent = [SentFile(place=str(tmp_path / "evil.py"), path="evil.py")]
    assert b"build_model" in run(ReadRequest(files=sent, into=str(tmp_path))).stdout
    assert not (tmp_path / "done").exists()


def highlighted(folder: Path, text: str, name: str = "model.py") -> Highlighted:
    (folder / "source").write_bytes(text.encode())
    return highlight(HighlightRequest(place=str(folder / "source"), path=name))


@pytest.mark.parametrize(
    "text", [MODEL, "", "\n\n", "\n# x\n\n\n", "x = 1\r\ny = 2\rz\f = 3", "'''\na\n'''\n"]
)
@pytest.mark.parametrize("name", ["model.py", "pyproject.toml", "notes.txt"])
def test_the_lines_are_those_of_the_file(tmp_path: Path, text: str, name: str) -> None:
    lines = ["".join(run for _, run in line) for line in highlighted(tmp_path, text, name).lines]
    expected = text.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n").split("\n")
    assert lines == expected


def test_words_of_python_have_classes(tmp_path: Path) -> None:
    (line,) = highlighted(tmp_path, "def build_model(hp): return 'a'").lines
    assert {("k", "def"), ("nf", "build_model"), ("s1", "'a'")} <= set(line)


def test_the_lines_that_are_shown_are_bounded(tmp_path: Path) -> None:
    page = highlighted(tmp_path, "\n" * 524_288)
    assert (len(page.lines), page.is_cut) == (MAX_SHOWN_LINES, True)
    assert not highlighted(tmp_path, "\n" * MAX_SHOWN_LINES).is_cut


def test_the_parts_with_styles_are_bounded(tmp_path: Path) -> None:
    text = "x = " + "1+" * 200_000 + "1"
    page = highlighted(tmp_path, text)
    assert sum(map(len, page.lines)) <= MAX_RUNS + 1
    assert ("".join(run for _, run in page.lines[0]), "too many parts" in page.note) == (text, True)


def test_characters_that_change_the_direction_are_shown_by_their_numbers(tmp_path: Path) -> None:
    (line,) = highlighted(tmp_path, "x = 1 # \u202e\u2066").lines
    assert "".join(run for _, run in line) == "x = 1 # ⟨U+202E⟩⟨U+2066⟩"


@pytest.mark.parametrize("pack", [zipped, tarred])
def test_hidden_files_of_any_size_do_not_count(tmp_path: Path, pack: object) -> None:
    files = {"shop/.git/pack": bytes(30 * 2**20), "shop/model.py": MODEL}
    reading = read_files(tmp_path, {"code.zip": pack(files)})  # type: ignore[operator]
    assert ([file.path for file in reading.files], reading.found.left_out) == (["model.py"], 1)


def test_an_unpacked_tar_is_bounded_with_its_hidden_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "LIMITS", dataclasses.replace(files.LIMITS, stream_bytes=25 * 2**20))
    # The last entry makes the reader pass the hidden one.
    body = tarred({".git/pack": bytes(60 * 2**20), "model.py": MODEL})
    assert "unpacks to more than" in refusal(tmp_path, body)


@pytest.mark.parametrize(
    ("path", "message"),
    [(".", "has no name"), ("", "has no name"), ("a\u202eb.py", "change the direction of text")],
)
def test_a_path_without_a_visible_name_is_refused(tmp_path: Path, path: str, message: str) -> None:
    with pytest.raises(BadArchive, match=message):
        read_files(tmp_path, {path: "x", "model.py": ""})
    if path:
        assert message in refusal(tmp_path, tarred({path: "x", "model.py": ""}))


def test_the_process_limits_itself_for_good() -> None:
    code = (
        "import resource, os; from workers.code_reader import limits; limits.apply();"
        "print(*(resource.getrlimit(k)[i] for i in (0, 1) for k in"
        " (resource.RLIMIT_CPU, resource.RLIMIT_AS, resource.RLIMIT_FSIZE, resource.RLIMIT_CORE)))"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=ROOT, check=True).stdout
    most = [limits.CPU_SECONDS, limits.MEMORY_BYTES, limits.FILE_BYTES, 0]
    assert [int(limit) for limit in printed.split()] == most * 2


def test_what_takes_too_long_is_shown_without_classes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(highlighting, "SECONDS", 0.02)
    text = "x = [1, 2, 3]  # y\n" * 4_000
    page = highlighted(tmp_path, text)
    assert ("took too long" in page.note, len(page.lines)) == (True, 4_000)
    assert {"".join(run for _, run in line) for line in page.lines} == {"x = [1, 2, 3]  # y"}
