"""Returns the command for an external search's chief and the environment variables for its scripts."""

import shlex

from jobs import program
from jobs.kinds.external_search.payload import ExternalSearchPayload
from jobs.models import Job
from jobs.spec.external_search import ChiefAddress


def external_payload(root: Job) -> ExternalSearchPayload:
    """Return an external search's payload.

    Raises:
        Conflict: the job is not an external search.
    """
    return root.payload_as(ExternalSearchPayload)


def chief_command(root: Job) -> str:
    """Return the command that starts a search's chief."""
    address = external_payload(root).address or ChiefAddress()
    words = ["chief", "--project", root.project.slug if root.project is not None else ""]
    words += ["--name", root.title, "--host", address.host, "--port", str(address.port)]
    return program.command_line(shlex.join(words))


def chief_environment(host: str, port: int) -> list[str]:
    """Return the shell lines that connect a KerasTuner script to a chief."""
    # A chief that listens on all addresses is reachable at the loopback address.
    address = "127.0.0.1" if host in ("localhost", "0.0.0.0", "::") else host  # noqa: S104  shown, not bound
    return [
        "export KERASTUNER_TUNER_ID=script-1",
        f"export KERASTUNER_ORACLE_IP={address}",
        f"export KERASTUNER_ORACLE_PORT={port}",
    ]


def environment_of(root: Job) -> list[str]:
    """Return the lines in `chief_environment`; none while the search's chief has no address."""
    address = external_payload(root).address
    return chief_environment(address.host, address.port) if address is not None else []
