"""The lint check for plain English: it finds phrases in texts, with their lines, and ignores code."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def check() -> ModuleType:
    spec = importlib.util.spec_from_file_location("plain_english", ROOT / "scripts/plain_english.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PYTHON = '''"""Trains a model.

So it goes
on.
"""
told = {"said": 1}  # nobody knows
print(f"it {told} stands still")
'''
TEMPLATE = """<p class="told" title='Nobody waits'>{% if told %}
<b>Take back</b>{# heard #}{% button "Go on" name="stands" %}</p>
<script>goes on</script>
"""
SCRIPT = 'const says = "https://whoever";\n// resumed by\n// which process\nshow("it goes on");\n'
DOCUMENT = "# Runs\n\n`told`\n\n```\nheard\n```\nSomebody waits.\n"


@pytest.mark.parametrize(
    ("name", "source", "findings"),
    [
        ("a.py", PYTHON, [(3, "goes on"), (6, "nobody"), (7, "stands")]),
        ("a.html", TEMPLATE, [(1, "Nobody"), (2, "Take back"), (2, "heard"), (2, "Go on")]),
        ("a.js", SCRIPT, [(4, "goes on")]),
        ("a.md", DOCUMENT, [(8, "Somebody")]),
    ],
)
def test_phrases_are_found_in_texts_and_not_in_code(
    check: ModuleType, tmp_path: Path, name: str, source: str, findings: list[tuple[int, str]]
) -> None:
    (tmp_path / name).write_text(source)
    assert [(line, phrase) for line, phrase, _ in check.findings(tmp_path / name)] == findings


def test_the_check_fails_on_a_file_with_phrases(
    check: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(check, "ROOT", tmp_path)
    (tmp_path / "a.md").write_text("Nobody waits.\n")
    monkeypatch.setattr(sys, "argv", ["plain_english.py", "a.md"])
    assert check.main() == 1
    assert "a.md:1: 'Nobody'" in capsys.readouterr().out
    (tmp_path / "a.md").write_text("A process waits.\n")
    assert check.main() == 0
