"""Vendored files match VENDOR.json, have their licences, and contain every icon in use."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.utils.safestring import mark_safe

from webapp import navigation as nav
from webapp.templatetags.states import LOOKS
from webapp.templatetags.trainyard import icon

ROOT = Path(__file__).resolve().parents[2]
STATIC = ROOT / "webapp" / "static"
VENDOR = STATIC / "vendor"
LIBRARIES: list[dict[str, Any]] = json.loads((VENDOR / "VENDOR.json").read_text())
LICENCE_WORDS = {
    "MIT": "Permission is hereby granted",
    "0BSD": "Permission to use",
    "OFL-1.1": "SIL OPEN FONT",
    "Apache-2.0": "Apache License",
}
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
SPRITE = (VENDOR / "tabler-icons-3.51.0" / "sprite.svg").read_text()


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library["name"])
def test_every_file_has_the_hash_and_the_licence_of_the_manifest(library: dict[str, Any]) -> None:
    folder = VENDOR / library["folder"]
    digests = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.iterdir()}
    assert digests == library["sha256"]
    assert LICENCE_WORDS[library["licence"]].lower() in (folder / "LICENSE").read_text().lower()


def test_every_vendored_folder_is_in_the_manifest() -> None:
    assert {folder.name for folder in VENDOR.iterdir() if folder.is_dir()} == {
        library["folder"] for library in LIBRARIES
    }


def test_static_files_stay_below_3_mb() -> None:
    assert sum(file.stat().st_size for file in STATIC.rglob("*") if file.is_file()) < 3_000_000


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: str(path.relative_to(ROOT / "templates")))
def test_templates_have_no_inline_code_and_no_foreign_address(template: Path) -> None:
    text = template.read_text()
    assert not re.search(r"<script(?![^>]*\bsrc=)(?![^>]*application/json)[^>]*>", text), "inline script"
    assert not re.search(r"<style|\sstyle=|\son[a-z]+=[\"']|javascript:", text), "inline style or handler"
    assert not re.search(r"(src|href)=[\"'](https?:)?//", text), "an address outside"


def test_every_icon_in_use_is_in_the_sprite() -> None:
    drawn = set(re.findall(r'<symbol id="([^"]+)"', SPRITE))
    named = {look.icon for look in LOOKS.values()}
    named |= {entry.icon for entry in (*nav.ENTRIES, *nav.ADMINISTRATION)}
    for template in TEMPLATES:
        uses = re.findall(
            r"""\{% icon ["']([a-z0-9-]+)["']|(?<![-\w])icon=["']([a-z0-9-]+)["']""", template.read_text()
        )
        named |= {direct or argument for direct, argument in uses}
    missing = named - drawn
    assert not missing, f"add to scripts/icons.txt and run scripts/vendor.py: {sorted(missing)}"


def test_a_text_that_is_safe_does_not_make_an_equal_one_safe() -> None:
    assert "<b>" in icon("box", label=mark_safe("<b>"))
    assert "<b>" not in icon("box", label="<b>")
