"""docs/map.md is short, names every folder with many modules, and names nothing that does not exist."""

import re
from pathlib import Path

from tests.architecture.sources import ROOT

MAP = (ROOT / "docs" / "map.md").read_text(encoding="utf-8")
LAYERS_AND_ROOMS = ("jobs", "transport", "webapp", "workers")
MOST_LINES = 120
MANY_MODULES = 15
WINGS = set(re.findall(r"^\| `(\w+)` \|", MAP, re.MULTILINE))
NAMED = set(re.findall(r"`((?:\w[\w.-]*/)+(?:<wing>/)?)`", MAP))


def names(folder: Path) -> set[str]:
    """Return the names that a folder can have in the map: its path, and the path with `<wing>` at its end."""
    path = folder.relative_to(ROOT)
    wing = {f"{path.parent}/<wing>/"} if path.name in WINGS else set()
    return {f"{path}/"} | wing


def test_the_map_is_short() -> None:
    assert len(MAP.splitlines()) <= MOST_LINES


def test_the_map_names_every_folder_with_many_modules() -> None:
    folders = {path.parent for start in LAYERS_AND_ROOMS for path in (ROOT / start).rglob("*.py")}
    large = {folder for folder in folders if len(list(folder.glob("*.py"))) > MANY_MODULES}
    assert not {str(folder.relative_to(ROOT)) for folder in large if not names(folder) & NAMED}


def test_the_folders_that_the_map_names_exist() -> None:
    tops = {*LAYERS_AND_ROOMS, "docs", "templates", "tests"}
    paths = {name for name in NAMED if name.split("/")[0] in tops}
    assert not {name for name in paths if not list(ROOT.glob(name.replace("<wing>", "*")))}
