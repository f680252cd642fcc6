"""The program `trainyard`; `up`, `demo`, `scheduler`, `worker`, `serve`, `token`, `audit` are its commands.

In a checkout, `manage.py` runs it.
"""

import gc
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from jobs import known_variables, program
from jobs.logs import absent_installation
from jobs.logs.foreign_output import JsonLines, speak_json
from jobs.logs.start_errors import end_with, one_sentence
from webapp.ops.home import Home

if TYPE_CHECKING:
    from django.core.management.base import BaseCommand

PATH_VARIABLES = ("TRAINYARD_ARTIFACTS", "TRAINYARD_PACKAGE_FOLDER", "TRAINYARD_SECRET_KEY_FILE")

KEYLESS_COMMANDS = absent_installation.ON_OTHER_MACHINES | {"serve"}
"""The commands of the parts that need no secret key."""

PARTS = {
    **{name: name for name in ("up", "broker", "web", "scheduler", "worker")},
    "serve": "serving",
}
"""The part whose log a command writes."""


def main() -> None:
    """Run the command that this process's arguments name."""
    # Django would print its own version.
    if sys.argv[1:] == ["--version"] or (sys.argv[1:] == ["version"] and not _has_home()):
        sys.stdout.write(f"{program.program_version()}\n{_without_home()}")
        return
    if (part := PARTS.get("".join(sys.argv[1:2]))) is not None:
        # Its output is the log. The console of `up` makes the lines of all parts.
        speak_json(part, also_output=part == "web")
    try:
        with one_sentence():
            _run()
    finally:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, JsonLines):
                stream.finish()


def _run() -> None:
    known_variables.settle_or_exit()
    gc.disable()  # until the apps are loaded; see `WebappConfig.ready`
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings.main")
    if "".join(sys.argv[1:2]) in KEYLESS_COMMANDS or set(sys.argv[1:]) & absent_installation.HELP:
        os.environ[program.KEYLESS_VARIABLE] = "1"
    _make_paths_absolute()
    absent_installation.keep_absent(sys.argv[1:])

    if sys.argv[1:] == ["version"]:
        _describe_installation()
        return
    from django.core.management import ManagementUtility  # slow, and not needed for the version

    class Program(ManagementUtility):
        """Runs a command. One that needs an installation is refused where none is."""

        def fetch_command(self, subcommand: str) -> "BaseCommand":
            """Return the command. Unknown ones and wrong settings are named first."""
            command = super().fetch_command(subcommand)
            _require_installation(sys.argv[1:])
            return command

    Program(_with_module_name(sys.argv)).execute()


def _require_installation(arguments: list[str]) -> None:
    """End the program if its command needs an installation and there is none.

    The parts do so themselves, once they have read their own settings.
    """
    command = absent_installation.command_of(arguments)
    if command in PARTS or command == "chief" or not absent_installation.uses_installation(arguments):
        return
    from django.conf import settings

    settings.TRAINYARD_HOME  # noqa: B018  reads the settings, if Django could not
    if (sentence := absent_installation.problem(command)) is not None:
        end_with(sentence)


def _describe_installation() -> None:
    """Run our command `version`: Django's program prints the version of Django instead."""
    import django
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import call_command

    try:
        django.setup()
    except ImproperlyConfigured:
        # The program has a version even if its home cannot be used.
        sys.stdout.write(f"program  {program.program_version()}\n")
        sys.stdout.flush()
        raise
    call_command("version")


def _has_home() -> bool:
    """Return whether there is an installation, which `version` describes. It creates none."""
    return Home.from_environment().root.is_dir()


def _without_home() -> str:
    """Return a line for `version` about a home that was named and does not exist."""
    if sys.argv[1:] != ["version"] or not os.environ.get("TRAINYARD_HOME"):
        return ""
    root = Home.from_environment().root
    return f"TRAINYARD_HOME: there is no folder {root}, so there is no installation.\n"


def _with_module_name(arguments: list[str]) -> list[str]:
    """Return the arguments with the command's module name: `serving-token` is in `serving_token.py`."""
    if len(arguments) > 1 and not arguments[1].startswith("-"):
        return [arguments[0], arguments[1].replace("-", "_"), *arguments[2:]]
    return arguments


def _make_paths_absolute() -> None:
    """Resolve the paths in the environment: the parts run in the program's folder, not in this one."""
    os.environ["TRAINYARD_HOME"] = str(Home.from_environment().root)
    for name in PATH_VARIABLES:
        if (path := os.environ.get(name)) and "://" not in path:
            os.environ[name] = str(Path(path).absolute())


if __name__ == "__main__":
    main()
