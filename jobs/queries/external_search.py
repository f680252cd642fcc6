"""What people need who run scripts for a search: its command, and the scripts' environment."""

import shlex

from jobs.models import Job


def command(root: Job) -> str:
    """Return the command that starts the chief of a search again."""
    address = root.payload.get("address", {})
    words = ["manage.py", "chief", "--project", root.project.slug if root.project is not None else ""]
    words += ["--name", root.title, "--host", str(address.get("host", "127.0.0.1"))]
    return shlex.join([*words, "--port", str(address.get("port", 0))])


def environment(host: str, port: int) -> list[str]:
    """Return the lines that make a script of KerasTuner call a chief."""
    reached = "127.0.0.1" if host in ("localhost", "0.0.0.0", "::") else host  # noqa: S104  for the reader
    return [
        "export KERASTUNER_TUNER_ID=script-1",
        f"export KERASTUNER_ORACLE_IP={reached}",
        f"export KERASTUNER_ORACLE_PORT={port}",
    ]


def environment_of(root: Job) -> list[str]:
    """Return the same for a search, nothing where no chief has listened yet."""
    address = root.payload.get("address") if root.is_outside else None
    return environment(address["host"], address["port"]) if address else []
