"""Every environment variable that the settings read is on the page about configuration."""

import re

from tests.architecture.sources import ROOT

FOR_DEVELOPERS = {"TRAINYARD_DEBUG"}


def test_each_variable_of_the_settings_is_documented() -> None:
    settings = "".join(path.read_text() for path in (ROOT / "webapp" / "settings").glob("*.py"))
    read = set(re.findall(r"(?:env\.\w+|environ\.get)\(\s*\"(TRAINYARD_[A-Z_]+)\"", settings))
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    assert read
    assert not {name for name in read - FOR_DEVELOPERS if f"`{name}`" not in page}


def test_the_readme_repeats_rows_of_the_page() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `TRAINYARD_.*$", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(rows) == 10
    assert not [row for row in rows if row.replace("](docs/", "](") not in page]
