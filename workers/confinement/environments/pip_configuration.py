"""Reads pip's configuration, with which machines name their package index to all installers.

It needs no pip. Files and order are as in pip's documentation.
"""

import configparser
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

FILE_VARIABLE = "PIP_CONFIG_FILE"
_FILE, _PREFIX = "pip.conf", "PIP_"
_SECTIONS = ("global", "install")
"""The sections that hold for an installation; the second one has precedence."""


class BadConfiguration(Exception):
    """A file in pip's configuration is not valid. The text is the reason."""


def read(environment: Mapping[str, str]) -> dict[str, str]:
    """Return pip's options for an installation: from its files, and with precedence from its variables.

    Raises:
        BadConfiguration: a file is not valid. Without it, packages could come from another index.
    """
    sections: dict[str, dict[str, str]] = {name: {} for name in _SECTIONS}
    for path in _files(environment):
        parser = _parse(path)
        for name, options in sections.items():
            if parser.has_section(name):
                options |= {_normalize(option): value for option, value in parser.items(name)}
    variables = {
        _normalize(name.removeprefix(_PREFIX)): value
        for name, value in environment.items()
        if name.startswith(_PREFIX) and name != FILE_VARIABLE
    }
    merged: dict[str, str] = {}
    for options in (*sections.values(), variables):
        # An empty value does not hide that of another section.
        merged |= {name: value for name, value in options.items() if value}
    return merged


def _parse(path: Path) -> configparser.RawConfigParser:
    parser = configparser.RawConfigParser()
    try:
        # It skips a file that is missing or must not be read, as pip does.
        parser.read(path, encoding="utf-8")
    except (configparser.Error, UnicodeDecodeError) as error:
        # The text of the error could quote an address with a password.
        raise BadConfiguration(f"{path} is no valid configuration of pip ({type(error).__name__})") from error
    return parser


def _normalize(option: str) -> str:
    return option.lower().replace("_", "-").removeprefix("--")


def _files(environment: Mapping[str, str]) -> Iterator[Path]:
    """Yield the files that pip reads; a later one has precedence."""
    own_file = environment.get(FILE_VARIABLE)
    if own_file == os.devnull:
        return
    # `Path.home()` raises an error for a user without a home.
    home = Path(environment.get("HOME") or os.path.expanduser("~"))  # noqa: PTH111
    folders = (environment.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(os.pathsep)
    yield from (Path(folder, "pip", _FILE) for folder in folders)
    yield Path("/etc", _FILE)
    if not own_file or not Path(own_file).exists():
        yield home / ".pip" / _FILE
        yield Path(environment.get("XDG_CONFIG_HOME") or home / ".config", "pip", _FILE)
    yield Path(sys.prefix, _FILE)
    if own_file:
        yield Path(own_file)
