"""The options of a prediction server, and the variables that set their defaults."""

import argparse
import re
from collections.abc import Callable, Mapping
from math import inf
from pathlib import Path
from typing import Literal, NoReturn, cast, get_args

from jobs.logs.start_errors import PartParser, writes_json
from transport import admission
from workers.serving.limits import Limits

HIGHEST_PORT = 65_535
UnreadyWhen = Literal["refused", "cut-off", "never"]
"""When a server that learns of no release is not ready: if its credential is refused, always, or never."""


class _Parser(PartParser):
    """Ends with one sentence that names the variable, too. A list of all options would fill the log."""

    def error(self, message: str) -> NoReturn:
        """Print the sentence and exit."""
        for option in re.findall(r"^argument --([a-z-]+):", message):
            message += f" [{variable_of(option)}]"
        if writes_json():
            super().error(message)
        self.exit(2, f"{self.prog}: error: {message}; --help lists the options\n")


def variable_of(option: str) -> str:
    """Return the variable that sets an option."""
    return f"TRAINYARD_SERVING_{option.upper().replace('-', '_')}"


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds, such as 86400")
    return seconds


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no share from 0 to 1, such as 0.01")
    return share


def _port(text: str) -> int:
    if not (text.isascii() and text.isdecimal()) or int(text) > HIGHEST_PORT:
        raise argparse.ArgumentTypeError(f"{text!r} is no port: ports go from 0 to {HIGHEST_PORT}")
    return int(text)


def _unready_when(text: str) -> UnreadyWhen:
    for policy in get_args(UnreadyWhen):
        if text == policy:
            return cast(UnreadyWhen, policy)
    raise argparse.ArgumentTypeError(f"{text!r}: choose from {', '.join(get_args(UnreadyWhen))}")


def option_parser(environment: Mapping[str, str], defaults: Limits) -> argparse.ArgumentParser:
    """Return the parser; variables of the environment set the defaults."""
    parser = _Parser("python -m workers.serving", description="Serves approved models.")

    def add(name: str, kind: Callable[[str], object], help_: str, default: object = None) -> None:
        variable = variable_of(name)
        fallback = environment.get(variable) or default
        required = fallback is None and help_.startswith("(required)")
        parser.add_argument(
            f"--{name}", type=kind, default=fallback, required=required, help=f"{help_} [{variable}]"
        )

    add("host", str, "address to listen on", "127.0.0.1")
    add("port", _port, "port to listen on; 0 chooses a free one", 8501)
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
    add("access-log", _share, "share of the requests with a line in the log, from 0 to 1", 0.0)
    add("child-threads", int, "threads of one model child", defaults.child_threads)
    add(
        "code-memory-bytes",
        int,
        "maximum bytes of memory of a version that needs code of users",
        defaults.code_memory_bytes,
    )
    return parser
