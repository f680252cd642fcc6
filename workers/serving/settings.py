"""Reads a prediction server's settings from the command line, then from the environment."""

import ipaddress
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from jobs.logs.masking import mask
from workers.serving.hosts import LOOPBACK, allowed_hosts
from workers.serving.limits import Limits as Limits
from workers.serving.options import UnreadyWhen, option_parser, variable_of
from workers.serving.versions.gpu_environment import gpu_variables


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
    # The share of requests with a line in the log.
    access_log: float = 0.0
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
    parser = option_parser(environment, Limits())
    options = parser.parse_args(arguments)
    try:
        gpu_variables(environment)
        hosts = allowed_hosts(environment)
        _check_dashboard(options.dashboard)
        proxies = _networks(options.trusted_proxies)
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
        trusted_proxies=proxies,
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
        access_log=options.access_log,
        allow_anonymous=environment.get("TRAINYARD_SERVING_OPEN") == "1",
        fork_children=environment.get("TRAINYARD_SERVING_FORK") != "0",
        limits=limits,
    )


def _networks(text: str) -> list[str]:
    """Return a comma-separated list; `none` is an empty one."""
    networks = [word.strip() for word in text.split(",") if word.strip()]
    if networks == ["none"]:
        return []
    for network in networks:
        try:
            ipaddress.ip_network(network)
        except ValueError as error:
            variable = variable_of("trusted-proxies")
            raise ValueError(
                f"{variable}: {network!r} is no address and no network, such as 10.0.0.0/24"
            ) from error
    return networks


def _check_dashboard(text: str) -> None:
    try:
        parts = urlsplit(text)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_address = False
    if not is_address:
        raise ValueError(f"{mask(text)!r} is no address of a dashboard, such as http://127.0.0.1:8000")
