"""Reads a prediction server's settings from the command line, then from the environment."""

import argparse
import ipaddress
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Literal, cast, get_args

from transport import admission
from workers.serving.hosts import LOOPBACK, allowed_hosts
from workers.serving.versions.gpu_environment import gpu_variables
from workers.system.compile_cache import DEFAULT_LIMIT

UnreadyWhen = Literal["refused", "cut-off", "never"]
"""When a server that learns of no release is not ready: if its credential is refused, always, or never."""


@dataclass(frozen=True)
class Limits:
    """Limits that protect the server from a single client or model."""

    max_batch: int = 64
    queue_rows: int = 4096
    body_bytes: int = 64 * 2**20
    # All bodies that are read or answered at the same time, without the first 256 KiB of each.
    bodies_bytes: int = 2**30
    request_seconds: float = 30.0
    # A batch may take this long, or three times as long as the slowest one so far.
    batch_seconds: float = 2.0
    compile_seconds: float = 60.0
    answer_bytes: int = 512 * 2**20
    load_seconds: float = 300.0
    drain_seconds: float = 30.0
    child_threads: int = 1
    # All processes of a version that needs user code.
    code_memory_bytes: int = 4 * 2**30
    # Programs of one version whose inputs have open sizes, about 1 MB each.
    max_programs: int = 256
    # Compiled programs on disk, of all versions.
    compile_cache_bytes: int = DEFAULT_LIMIT
    # Processes that parse large bodies.
    body_workers: int = 2
    # Fewer if the process may not open enough files.
    connections: int = 4096
    connections_per_address: int = 256
    # Addresses and networks whose connections count only towards `connections`.
    trusted_proxies: list[str] = field(default_factory=lambda: list(admission.LOOPBACK))


@dataclass(frozen=True)
class Settings:
    """A prediction server's settings; `--help` describes the options."""

    host: str
    port: int
    dashboard: str
    token_file: Path
    public_key_file: Path
    home: Path
    artifacts: Path | None = None
    # Environments with packages of user code; a worker on this machine may share them.
    environments: Path | None = None
    address_file: Path | None = None
    # Only the supervisor asks there, so that it gets an answer even when no connection is free.
    health_socket: Path | None = None
    allow_anonymous: bool = False
    # How long the dashboard's last answer about a token holds while it gives no new one.
    token_grace_seconds: float = 24 * 3600.0
    # When a server that learns of no release is not ready.
    unready_when: UnreadyWhen = "refused"
    # Its number among the servers of one home.
    instance: int = 1
    # Further names under which a server on a loopback address answers.
    allowed_hosts: tuple[str, ...] = ()
    # Otherwise each model child is a new interpreter.
    fork_children: bool = True
    limits: Limits = field(default_factory=Limits)

    @property
    def compiled(self) -> Path:
        """The folder for the children's compile cache."""
        return self.home / "compiled"

    @property
    def environment_folder(self) -> Path:
        """The folder for environments: by default its own."""
        return (self.environments or self.home / "environments").absolute()

    @property
    def hosts(self) -> tuple[str, ...] | None:
        """The host names that requests may have; None for any, on an address that is not a loopback one."""
        return (*LOOPBACK, self.host, *self.allowed_hosts) if is_loopback(self.host) else None

    @property
    def needs_token(self) -> bool:
        """Whether callers need a token: not on a loopback address, nor where anonymous access is allowed."""
        return not (self.allow_anonymous or is_loopback(self.host))


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach `host`. An unknown name counts as reachable from outside."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def parse(arguments: Sequence[str], environment: Mapping[str, str] = os.environ) -> Settings:
    """Parse the command line; `TRAINYARD_SERVING_*` variables set the defaults."""
    parser = _parser(environment)
    options = parser.parse_args(arguments)
    try:
        gpu_variables(environment)
        hosts = allowed_hosts(environment)
    except ValueError as error:
        parser.error(str(error))
    limits = Limits(
        max_batch=options.max_batch,
        queue_rows=options.queue_rows,
        body_bytes=options.body_limit,
        child_threads=options.child_threads,
        code_memory_bytes=options.code_memory_bytes,
        max_programs=options.max_programs,
        compile_cache_bytes=options.compile_cache_bytes,
        request_seconds=options.request_seconds,
        connections=options.max_connections,
        connections_per_address=options.max_connections_per_address,
        trusted_proxies=_networks(options.trusted_proxies),
    )
    return Settings(
        host=options.host,
        port=options.port,
        dashboard=options.dashboard.rstrip("/"),
        token_file=options.token_file,
        public_key_file=options.public_key_file,
        home=options.home.absolute(),
        artifacts=options.artifacts,
        environments=options.environments,
        address_file=options.address_file,
        health_socket=options.health_socket,
        allowed_hosts=hosts,
        token_grace_seconds=options.token_grace_seconds,
        unready_when=options.unready_when,
        allow_anonymous=environment.get("TRAINYARD_SERVING_OPEN") == "1",
        fork_children=environment.get("TRAINYARD_SERVING_FORK") != "0",
        limits=limits,
    )


def _networks(text: str) -> list[str]:
    """Return a comma-separated list; `none` is an empty one."""
    networks = [word.strip() for word in text.split(",") if word.strip()]
    return [] if networks == ["none"] else networks


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds, such as 86400")
    return seconds


def _unready_when(text: str) -> UnreadyWhen:
    for policy in get_args(UnreadyWhen):
        if text == policy:
            return cast(UnreadyWhen, policy)
    raise argparse.ArgumentTypeError(f"{text!r}: choose from {', '.join(get_args(UnreadyWhen))}")


def _parser(environment: Mapping[str, str]) -> argparse.ArgumentParser:
    defaults = Limits()
    parser = argparse.ArgumentParser("python -m workers.serving", description="Serves approved models.")

    def add(name: str, kind: Callable[[str], object], help_: str, default: object = None) -> None:
        variable = f"TRAINYARD_SERVING_{name.upper().replace('-', '_')}"
        fallback = environment.get(variable) or default
        required = fallback is None and help_.startswith("(required)")
        parser.add_argument(
            f"--{name}", type=kind, default=fallback, required=required, help=f"{help_} [{variable}]"
        )

    add("host", str, "address to listen on", "127.0.0.1")
    add("port", int, "port to listen on; 0 chooses a free one", 8501)
    add("address-file", Path, "JSON file to write the address to once the server listens")
    add("health-socket", Path, "unix socket on which only the supervisor asks whether the server answers")
    add("dashboard", str, "(required) URL of the dashboard")
    add("token-file", Path, "(required) file with this server's credential, see the command `serving-token`")
    add("public-key-file", Path, "(required) Ed25519 key that signs releases, PEM or base64")
    add("home", Path, "(required) folder of the server's state and cached artifacts")
    add("artifacts", Path, "the dashboard's artifact folder, if it is on this machine")
    add("environments", Path, "folder of a worker's environments with packages, if it is on this machine")
    add("max-batch", int, "maximum rows in one call of a model, a power of two", defaults.max_batch)
    add("queue-rows", int, "maximum rows waiting for one version", defaults.queue_rows)
    add("request-seconds", float, "maximum seconds of a request", defaults.request_seconds)
    add("body-limit", int, "maximum bytes in one request", defaults.body_bytes)
    add("max-programs", int, "maximum compiled programs of a version with open sizes", defaults.max_programs)
    add(
        "compile-cache-bytes", int, "maximum bytes of compiled programs on disk", defaults.compile_cache_bytes
    )
    add("max-connections", int, "maximum open connections", defaults.connections)
    add(
        "max-connections-per-address",
        int,
        "maximum open connections from one address",
        defaults.connections_per_address,
    )
    add(
        "trusted-proxies",
        str,
        "addresses and networks of proxies, which that limit does not concern",
        ",".join(admission.LOOPBACK),
    )
    add(
        "token-grace-seconds",
        _seconds,
        "how long known callers are answered while the dashboard is away",
        24 * 3600.0,
    )
    add(
        "unready-when",
        _unready_when,
        "when a server that learns of no release is not ready: refused, cut-off (also unanswered) or never",
        "refused",
    )
    add("child-threads", int, "threads of one model child", defaults.child_threads)
    add(
        "code-memory-bytes",
        int,
        "maximum bytes of memory of a version that needs code of users",
        defaults.code_memory_bytes,
    )
    return parser
