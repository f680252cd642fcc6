"""The program `trainyard`; `up`, `demo`, `scheduler`, `worker`, `serve`, `token`, `audit` are its commands.

In a checkout, `manage.py` runs it.
"""

import gc
import os
import sys
from pathlib import Path

from jobs import known_variables, program
from jobs.logs.foreign_output import JsonLines, speak_json
from jobs.logs.start_errors import one_sentence
from webapp.ops.database.absent_database import require_database
from webapp.ops.home import Home

PATH_VARIABLES = ("TRAINYARD_ARTIFACTS", "TRAINYARD_PACKAGE_FOLDER", "TRAINYARD_SECRET_KEY_FILE")

KEYLESS_COMMANDS = ("worker", "chief")
"""The commands of the parts that need no secret key."""

HELP = ("-h", "--help")
"""The options with which a command only describes itself."""

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
    require_database(sys.argv[1:])
    gc.disable()  # until the apps are loaded; see `WebappConfig.ready`
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings.main")
    if "".join(sys.argv[1:2]) in KEYLESS_COMMANDS or set(sys.argv[1:]) & set(HELP):
        os.environ[program.KEYLESS_VARIABLE] = "1"
    _make_paths_absolute()
    from django.core.management import execute_from_command_line  # slow, and not needed for the version

    if sys.argv[1:] == ["version"]:
        _describe_installation()
        return
    execute_from_command_line(_with_module_name(sys.argv))


def _describe_installation() -> None:
    """Run our command `version`: Django's program prints the version of Django instead."""
    import django
    from django.core.management import call_command

    django.setup()
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
