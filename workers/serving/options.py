"""The options of a prediction server, and the variables that set their defaults."""

import argparse
import re
from collections.abc import Callable, Iterator, Mapping
from math import inf
from pathlib import Path
from typing import Literal, NamedTuple, NoReturn, cast, get_args

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


class Option(NamedTuple):
    """An option of the command line; `variable_of` names its variable.

    It is required if its help begins with "(required)" and it has no default.
    """

    name: str
    kind: Callable[[str], object]
    help: str
    default: object = None


PLACES = (
    Option("host", str, "address to listen on", "127.0.0.1"),
    Option("port", _port, "port to listen on; 0 chooses a free one", 8501),
    Option("address-file", Path, "JSON file to write the address to once the server listens"),
    Option("health-socket", Path, "unix socket on which only the supervisor asks whether the server answers"),
    Option("dashboard", str, "(required) URL of the dashboard"),
    Option(
        "token-file", Path, "(required) file with this server's credential, see the command `serving-token`"
    ),
    Option("public-key-file", Path, "(required) Ed25519 key that signs releases, PEM or base64"),
    Option("home", Path, "(required) folder of the server's state and cached artifacts"),
    Option("artifacts", Path, "the dashboard's artifact folder, if it is on this machine"),
    Option("environments", Path, "folder of a worker's environments with packages, if it is on this machine"),
)
"""Where the server listens, and where its files are."""


def _request_limits(defaults: Limits) -> Iterator[Option]:
    """Yield the limits of requests and models."""
    yield Option("max-batch", int, "maximum rows in one call of a model, a power of two", defaults.max_batch)
    yield Option("queue-rows", int, "maximum rows waiting for one version", defaults.queue_rows)
    yield Option("request-seconds", float, "maximum seconds of a request", defaults.request_seconds)
    yield Option("body-limit", int, "maximum bytes in one request", defaults.body_bytes)
    programs = "maximum compiled programs of a version with open sizes"
    yield Option("max-programs", int, programs, defaults.max_programs)
    compiled = "maximum bytes of compiled programs on disk"
    yield Option("compile-cache-bytes", int, compiled, defaults.compile_cache_bytes)
    yield Option("child-threads", int, "threads of one model child", defaults.child_threads)
    memory = "maximum bytes of memory of a version that needs code of users"
    yield Option("code-memory-bytes", int, memory, defaults.code_memory_bytes)


def _callers(defaults: Limits) -> Iterator[Option]:
    """Yield the limits of connections, and what callers get while the dashboard is away."""
    yield Option("max-connections", int, "maximum open connections", defaults.connections)
    from_one = "maximum open connections from one address"
    yield Option("max-connections-per-address", int, from_one, defaults.connections_per_address)
    proxies = "addresses and networks of proxies, which that limit does not concern"
    yield Option("trusted-proxies", str, proxies, ",".join(admission.LOOPBACK))
    grace = "how long known callers are answered while the dashboard is away"
    yield Option("token-grace-seconds", _seconds, grace, 24 * 3600.0)
    unready = (
        "when a server that learns of no release is not ready: refused, cut-off (also unanswered) or never"
    )
    yield Option("unready-when", _unready_when, unready, "refused")
    yield Option("access-log", _share, "share of the requests with a line in the log, from 0 to 1", 0.0)


def option_parser(environment: Mapping[str, str], defaults: Limits) -> argparse.ArgumentParser:
    """Return the parser; variables of the environment set the defaults."""
    parser = _Parser("python -m workers.serving", description="Serves approved models.")
    for option in (*PLACES, *_request_limits(defaults), *_callers(defaults)):
        variable = variable_of(option.name)
        default = environment.get(variable) or option.default
        parser.add_argument(
            f"--{option.name}",
            type=option.kind,
            default=default,
            required=default is None and option.help.startswith("(required)"),
            help=f"{option.help} [{variable}]",
        )
    return parser
