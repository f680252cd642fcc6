"""Reads a chief's settings from the command line and the environment."""

import argparse
import os
from collections.abc import Sequence
from typing import NamedTuple

from pydantic import ValidationError

from jobs import program
from jobs.spec.algorithms import ALGORITHMS
from jobs.spec.external_search import ExternalSearch
from jobs.spec.problems import message_of

TOKEN_VARIABLE = "TRAINYARD_TOKEN"  # noqa: S105  a variable's name
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


class Settings(NamedTuple):
    """A chief's settings.

    Attributes:
        project, name: the search's, which is created if there is none.
        search: its description.
        host, port: the address to listen on; port 0: the previous chief's, or else any free one.
        space: the file with the search space; None if scripts declare it.
        by: the user who owns the search; None if the token names the user.
        token: the user's API token.
        grace: seconds until a disconnected script's trial is given to another one.
    """

    project: str
    name: str
    search: ExternalSearch
    host: str
    port: int
    space: str | None
    by: str | None
    token: str | None
    grace: float


def read_settings(arguments: Sequence[str] | None) -> Settings:
    """Parse the command line; invalid arguments exit with a usage message."""
    parser = _parser()
    options = parser.parse_args(arguments)
    metric, _, direction = options.objective.partition(":")
    try:
        search = ExternalSearch.model_validate(
            {
                "algorithm": options.algorithm,
                "metric": metric,
                "direction": direction or "min",
                "max_trials": options.max_trials,
                "seed": options.seed,
                "lease_seconds": options.lease,
            }
        )
    except ValidationError as error:
        item = error.errors()[0]
        parser.error(f"{'.'.join(str(part) for part in item['loc'])}: {message_of(item)}")
    return Settings(
        project=options.project,
        name=options.name,
        search=search,
        host=options.host,
        port=options.port,
        space=options.space,
        by=options.by,
        token=os.environ.get(TOKEN_VARIABLE),
        grace=options.grace,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=program.command_line("chief", with_home=False),
        description="Implements the chief of KerasTuner's distributed mode: unmodified scripts run the "
        "trials of one search. An open search of the same project and name is resumed.",
    )
    # Rungs need trials that can be continued, and the scripts' trials cannot be.
    algorithms = [name for name, info in ALGORITHMS.items() if not info.has_rungs]
    parser.add_argument("--project", required=True, help="the project of the search")
    parser.add_argument("--name", required=True, help="the name of the search")
    parser.add_argument(
        "--host", default="127.0.0.1", help="address to listen on; callers are not authenticated"
    )
    parser.add_argument("--port", type=int, default=0, help="port to listen on; 0 chooses a free one")
    parser.add_argument("--algorithm", default="random", choices=algorithms)
    parser.add_argument(
        "--objective",
        default="default_objective:min",
        help="the metric that scripts report, with min or max, such as val_accuracy:max",
    )
    parser.add_argument("--max-trials", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--space", help="file with the search space; without it, the first trial defines it")
    parser.add_argument(
        "--lease",
        type=float,
        default=6 * 3600.0,
        help="seconds without a call after which a script loses its trial",
    )
    parser.add_argument(
        "--grace", type=float, default=30.0, help="seconds after which a disconnected script loses its trial"
    )
    parser.add_argument(
        "--by", help=f"the user of the search; default: the owner of the token in {TOKEN_VARIABLE}"
    )
    return parser
