"""The names of all environment variables of Trainyard. A part that starts refuses any other `TRAINYARD_…`.

A misspelt name would otherwise be ignored in silence, and its default would apply. All parts may share one
file of variables, so each part accepts the names that only another one reads.
"""

import ast
import difflib
import functools
import os
import re
import sys
from collections.abc import Iterator, Mapping, MutableMapping
from typing import NamedTuple

from jobs.program import ROOT, resource_folder
from jobs.removed_settings import REMOVED

PREFIX = "TRAINYARD_"

OPERATOR: Mapping[str, str] = {
    "TRAINYARD_HOME": "every part",
    "TRAINYARD_DATABASE_URL": "every part",
    "TRAINYARD_UPGRADE_WITHOUT_COPY": "up, web",
    "TRAINYARD_REDIS_URL": "every part",
    "TRAINYARD_BROKER": "up",
    "TRAINYARD_ARTIFACTS": "every part",
    "TRAINYARD_ARTIFACT_CACHE_BYTES": "every part",
    "TRAINYARD_SECRET_KEY_FILE": "web, scheduler",
    "TRAINYARD_LOG_JSON": "every part",
    "TRAINYARD_ACCESS_LOG": "web",
    "TRAINYARD_STATUS_ADDRESS": "scheduler, worker",
    "TRAINYARD_MIN_FREE_BYTES": "web, scheduler, worker",
    "TRAINYARD_PUBLIC_URL": "every part",
    "TRAINYARD_ALLOWED_HOSTS": "web, serving",
    "TRAINYARD_REQUIRE_SECOND_FACTOR": "web",
    "TRAINYARD_TRUSTED_PROXIES": "web",
    "TRAINYARD_MAX_CONNECTIONS": "web",
    "TRAINYARD_MAX_CONNECTIONS_PER_ADDRESS": "web",
    "TRAINYARD_MAX_UPLOAD_BYTES": "web, scheduler",
    "TRAINYARD_MAX_RESUMABLE_BYTES": "web",
    "TRAINYARD_MAX_EXPANDED_BYTES": "web, scheduler",
    "TRAINYARD_MAX_TABLE_BYTES": "web, scheduler",
    "TRAINYARD_IN_MEMORY_BYTES": "worker",
    "TRAINYARD_DATA_ROOTS": "web, scheduler",
    "TRAINYARD_FETCH_ALLOW": "web, scheduler",
    "TRAINYARD_PROJECT_JOBS": "web, scheduler",
    "TRAINYARD_PROJECT_UPLOADS": "web",
    "TRAINYARD_PROJECT_EVENTS_PER_SECOND": "worker",
    "TRAINYARD_PROJECT_BYTES": "web, scheduler, worker",
    "TRAINYARD_RUNNER_UIDS": "worker",
    "TRAINYARD_STANDBY": "worker",
    "TRAINYARD_FORK_RUNNERS": "worker",
    "TRAINYARD_COMPILE_CACHE_BYTES": "worker",
    "TRAINYARD_SANDBOX_CGROUP": "worker, serving",
    "TRAINYARD_SANDBOX_LEVELS": "worker, serving",
    "TRAINYARD_PACKAGE_INDEX": "worker, serving",
    "TRAINYARD_PACKAGE_FOLDER": "worker, serving",
    "TRAINYARD_PACKAGE_HOSTS": "worker, serving",
    "TRAINYARD_PACKAGE_SECONDS": "worker",
    "TRAINYARD_ENVIRONMENTS_BYTES": "worker, serving",
    "TRAINYARD_SERVING_OPEN": "serving",
    "TRAINYARD_SERVING_FORK": "serving",
    "TRAINYARD_SERVING_GPU_FRACTION": "serving",
    "TRAINYARD_SERVING_URL": "web",
    "TRAINYARD_TOKEN": "chief",
}
"""Variables for operators, each with the parts that read it. The rest is in `FAMILIES`."""

COMPOSE = (
    "TRAINYARD_DB_PASSWORD",
    "TRAINYARD_BROKER_PASSWORD",
    "TRAINYARD_COMPOSE_SUBNET",
    "TRAINYARD_COMPOSE_GATEWAY",
    "TRAINYARD_COMPOSE_WORKER_SLOTS",
    "TRAINYARD_COMPOSE_WEB_MEMORY",
    "TRAINYARD_COMPOSE_SCHEDULER_MEMORY",
    "TRAINYARD_COMPOSE_WORKER_MEMORY",
    "TRAINYARD_COMPOSE_SERVING_MEMORY",
    "TRAINYARD_COMPOSE_BACKUP_MEMORY",
    "TRAINYARD_COMPOSE_DATABASE_MEMORY",
    "TRAINYARD_COMPOSE_BROKER_MEMORY",
    "TRAINYARD_COMPOSE_BACKUP_EVERY",
    "TRAINYARD_COMPOSE_BACKUPS_KEPT",
)
"""Variables that only `docker-compose.yml` reads. It passes its whole file of variables to each container."""

INTERNAL = (
    "TRAINYARD_DEBUG",
    "TRAINYARD_DEMO",
    "TRAINYARD_PART",
    "TRAINYARD_WITHOUT_KEY",
    "TRAINYARD_WITHOUT_FILES",
    "TRAINYARD_NODE_SOCKET",
    "TRAINYARD_NODE_PID",
    "TRAINYARD_RUNNER_MODULE",
    "TRAINYARD_CHECKPOINT_SECONDS",
    "TRAINYARD_KILL_POINT",
    # Scripts of users get these.
    "TRAINYARD_DATA",
    "TRAINYARD_MESH",
    "TRAINYARD_OUTPUT",
    "TRAINYARD_SEED",
    # For the release of a version and the set-up of a checkout.
    "TRAINYARD_SIGNING_KEY",
    "TRAINYARD_SETUP_LOCKED",
)
"""Variables that one of our processes sets for another one, or a developer."""

TESTS = (
    "TRAINYARD_CHAOS",
    "TRAINYARD_CHAOS_KILLS",
    "TRAINYARD_CHAOS_MUTANTS",
    "TRAINYARD_CHAOS_PATIENCE",
    "TRAINYARD_CHAOS_SEARCH_KILLS",
    "TRAINYARD_CHAOS_SEED",
    "TRAINYARD_EVERY_ROLE",
    "TRAINYARD_FUZZ_FILES",
    "TRAINYARD_FUZZ_SECONDS",
    "TRAINYARD_REQUIRE_BROWSER",
    "TRAINYARD_REQUIRE_NODE",
    "TRAINYARD_REQUIRE_PATH_BROKER",
    "TRAINYARD_REQUIRE_POSTGRES",
    "TRAINYARD_REQUIRE_NAMESPACES",
    "TRAINYARD_REQUIRE_PROXIES",
    "TRAINYARD_REQUIRE_SANDBOXES",
    "TRAINYARD_SCREENSHOTS",
    "TRAINYARD_TEST_HOME",
    "TRAINYARD_TEST_OUTAGES",
    "TRAINYARD_TEST_POSTGRES_URL",
    "TRAINYARD_TEST_TABLES",
    "TRAINYARD_WRITE_CORE_SECONDS",
)
"""Variables of the tests. The parts that they start inherit them."""


class UnknownVariable(Exception):
    """A `TRAINYARD_…` that is set is no variable of Trainyard. The text names it and what would do."""


class Family(NamedTuple):
    """Variables that one piece of code declares: the fields of a class, or the options of a command line.

    Its names are read from the source. Importing it would load half a worker into the web server.

    Attributes:
        prefix: what precedes the name of a field or option.
        module: the module with the code.
        declared_by: the class with the fields; empty if the module makes an `Option` of each name.
        part: the part that reads them.
    """

    prefix: str
    module: str
    declared_by: str
    part: str

    def names(self) -> frozenset[str]:
        """Return the names of its variables."""
        return _names(self)


FAMILIES = (
    Family("TRAINYARD_NODE_", "workers.supervise.timing", "Timing", "worker"),
    Family("TRAINYARD_LIMIT_", "workers.supervise.limits.limits", "TaskLimits", "worker"),
    Family("TRAINYARD_SANDBOX_", "workers.supervise.limits.sandbox_limits", "SandboxLimits", "worker"),
    Family("TRAINYARD_SERVING_", "workers.serving.options", "", "serving"),
)

_PLAIN = frozenset({*OPERATOR, *COMPOSE, *INTERNAL, *TESTS, *REMOVED})
# Kubernetes announces a service whose name begins with "trainyard" to each container by such variables.
_ANNOUNCED_SERVICE = re.compile(
    r"_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$"
)
_ADDRESS = re.compile(r"(tcp|udp|sctp)://")


def settle(environment: MutableMapping[str, str] = os.environ) -> None:
    """Refuse unknown variables, and remove empty ones, so that empty means not set everywhere.

    Raises:
        UnknownVariable: with a sentence for each of them.
    """
    for name in [name for name, value in environment.items() if _is_ours(name) and not value.strip()]:
        del environment[name]
    if unknown := sorted(_unknown(environment)):
        page = resource_folder("docs") / "configuration.md"
        sentences = [f"{name} is no variable of Trainyard{_advice(name)}." for name in unknown]
        raise UnknownVariable(" ".join([*sentences, f"All of them are listed in {page}."]))


def settle_or_exit() -> None:
    """Settle this process's variables; an unknown one ends it with the sentence."""
    try:
        settle()
    except UnknownVariable as error:
        sys.exit(str(error))


def is_known(name: str) -> bool:
    """Return whether some part of Trainyard reads a variable of this name."""
    return name in _PLAIN or any(
        name in family.names() for family in FAMILIES if name.startswith(family.prefix)
    )


def all_names() -> frozenset[str]:
    """Return all names, those of the families too."""
    return _PLAIN.union(*(family.names() for family in FAMILIES))


def _is_ours(name: str) -> bool:
    return name.upper().startswith(PREFIX)


def _unknown(environment: Mapping[str, str]) -> Iterator[str]:
    for name, value in environment.items():
        if _is_ours(name) and not is_known(name) and not _announces_service(name, value):
            yield name


def _announces_service(name: str, value: str) -> bool:
    return bool(_ANNOUNCED_SERVICE.search(name) or (name.endswith("_PORT") and _ADDRESS.match(value)))


def _advice(name: str) -> str:
    offered = all_names().difference(INTERNAL, TESTS, REMOVED)
    nearest = difflib.get_close_matches(name.upper(), offered, n=1, cutoff=0.75)
    return f": remove it, or write {nearest[0]} if that was meant" if nearest else ": remove it"


@functools.cache
def _names(family: Family) -> frozenset[str]:
    file = ROOT.joinpath(*family.module.split(".")).with_suffix(".py")
    module = ast.parse(file.read_text(encoding="utf-8"))
    words = _fields(module, family.declared_by) if family.declared_by else _options(module)
    return frozenset(family.prefix + word.upper().replace("-", "_") for word in words)


def _fields(module: ast.Module, name: str) -> Iterator[str]:
    """Yield the names of a class's fields."""
    for node in module.body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            for line in node.body:
                if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
                    yield line.target.id


def _options(module: ast.Module) -> Iterator[str]:
    """Yield the name of each `Option` that a module makes."""
    for call in ast.walk(module):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "Option":
            yield ast.literal_eval(call.args[0])
