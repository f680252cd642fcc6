"""How one prediction server is set up: command line first, environment second."""

import argparse
import ipaddress
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Limits:
    """Bounds that keep one bad client or model from taking the server down."""

    max_batch: int = 64
    queue_rows: int = 4096
    body_bytes: int = 64 * 2**20
    request_seconds: float = 30.0
    batch_seconds: float = 60.0
    load_seconds: float = 300.0
    drain_seconds: float = 30.0
    child_threads: int = 1


@dataclass(frozen=True)
class Settings:
    """Everything the router needs to know at start."""

    host: str
    port: int
    dashboard: str
    token_file: Path
    public_key_file: Path
    home: Path
    artifacts: Path | None = None
    address_file: Path | None = None
    open_to_all: bool = False
    limits: Limits = field(default_factory=Limits)

    @property
    def needs_token(self) -> bool:
        """Callers must show a token: we listen beyond this machine and nobody waived it."""
        return not (self.open_to_all or is_loopback(self.host))


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach `host`; an unknown name counts as reachable."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def parse(arguments: Sequence[str], environment: Mapping[str, str] = os.environ) -> Settings:
    """Read the command line; `TRAINYARD_SERVING_*` gives what it leaves out."""
    given = _parser(environment).parse_args(arguments)
    limits = Limits(
        max_batch=given.max_batch,
        queue_rows=given.queue_rows,
        body_bytes=given.body_limit,
        child_threads=given.child_threads,
        request_seconds=given.request_seconds,
    )
    return Settings(
        host=given.host,
        port=given.port,
        dashboard=given.dashboard.rstrip("/"),
        token_file=given.token_file,
        public_key_file=given.public_key_file,
        home=given.home.absolute(),
        artifacts=given.artifacts,
        address_file=given.address_file,
        open_to_all=environment.get("TRAINYARD_SERVING_OPEN") == "1",
        limits=limits,
    )


def _parser(environment: Mapping[str, str]) -> argparse.ArgumentParser:
    defaults = Limits()
    parser = argparse.ArgumentParser("python -m workers.serving", description="Serves approved models.")

    def add(name: str, kind: type, help_: str, default: object = None) -> None:
        variable = f"TRAINYARD_SERVING_{name.upper().replace('-', '_')}"
        fallback = environment.get(variable, default)
        required = fallback is None and help_.startswith("(required)")
        parser.add_argument(
            f"--{name}", type=kind, default=fallback, required=required, help=f"{help_} [{variable}]"
        )

    add("host", str, "address to listen on", "127.0.0.1")
    add("port", int, "port to listen on; 0 picks a free one", 8501)
    add("address-file", Path, "JSON file that gets the address once the server listens")
    add("dashboard", str, "(required) URL of the dashboard")
    add("token-file", Path, "(required) file with a token of scope serve")
    add("public-key-file", Path, "(required) Ed25519 key that signs releases, PEM or base64")
    add("home", Path, "(required) folder of our own state and cached artifacts")
    add("artifacts", Path, "the dashboard's artifact folder, where it is on this machine")
    add("max-batch", int, "most rows in one call of a model, a power of two", defaults.max_batch)
    add("queue-rows", int, "most rows waiting for one version", defaults.queue_rows)
    add("request-seconds", float, "most seconds that a request may take", defaults.request_seconds)
    add("body-limit", int, "most bytes in one request", defaults.body_bytes)
    add("child-threads", int, "threads of one model child", defaults.child_threads)
    return parser
