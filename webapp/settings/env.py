"""Reads settings from environment variables; an invalid value stops the start with a message."""

import ipaddress
import os
import re
import secrets
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

from jobs import known_variables, private_files, program
from jobs.atomic_files import create_once
from jobs.keys.secret_keys import BadKeyFile, SecretKeys, parse
from jobs.logs.masking import mask
from jobs.spec.data.addresses import BadAddress, canonical_host
from webapp.ops.home import Home

KEY_VARIABLE = "TRAINYARD_SECRET_KEY_FILE"


def settle_variables() -> None:
    """Refuse unknown `TRAINYARD_…` variables, and remove empty ones."""
    try:
        known_variables.settle()
    except known_variables.UnknownVariable as error:
        raise ImproperlyConfigured(str(error)) from error


def home() -> Path:
    """Return `TRAINYARD_HOME`, the folder with all state, which only its owner can access.

    It is created if absent. From here on, this process and its children create private files only.
    """
    private_files.restrict_new_files()
    return _private(private_files.make_home_private, Home.from_environment().root, "TRAINYARD_HOME")


def _private(check: Callable[[Path], object], path: Path, name: str) -> Path:
    """Apply a check from `jobs.private_files`; a refusal stops the start with its message.

    Args:
        check: the check.
        path: the file or folder.
        name: the variable that changes it.
    """
    try:
        check(path)
    except private_files.NotPrivate as error:
        raise ImproperlyConfigured(f"{name}: {error}") from error
    except OSError as error:
        raise ImproperlyConfigured(f"{name}: {path} cannot be used: {error.strerror or error}") from error
    return path


def flag(name: str, *, default: bool = False) -> bool:
    """Return a boolean: 0, 1, true or false; `default` if the variable is absent."""
    text = os.environ.get(name, "").lower()
    if text == "":
        return default
    if text in ("0", "false"):
        return False
    if text in ("1", "true"):
        return True
    raise ImproperlyConfigured(f"{name}={text!r}: give 1 or 0")


def share(name: str, default: float) -> float:
    """Return a number from 0 to 1."""
    text = os.environ.get(name) or str(default)
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise ImproperlyConfigured(f"{name}={text!r}: give a share from 0 to 1, such as 0.01")
    return number


def words(name: str) -> list[str]:
    """Return a comma-separated list."""
    return [word.strip() for word in os.environ.get(name, "").split(",") if word.strip()]


def secret_key_file(home_folder: Path) -> Path:
    """Return the secret key's file."""
    return Path(os.environ.get(KEY_VARIABLE) or home_folder / "secret.key")


def secret_keys(home_folder: Path) -> SecretKeys:
    """Return the secret key, with those of a rotation; it is created once with mode 0600.

    A worker creates none: it signs nothing. Without a file it has no key, and Django refuses to sign.
    """
    path = _private(private_files.make_file_private, secret_key_file(home_folder), KEY_VARIABLE)
    try:
        if not path.exists():
            if os.environ.get(program.KEYLESS_VARIABLE):
                return SecretKeys("")
            create_once(path, secrets.token_urlsafe(64).encode())
        return parse(path.read_text())
    except BadKeyFile as error:
        raise ImproperlyConfigured(
            f"{path}: {error}; put it back from a backup, or delete the file to create a new key"
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise ImproperlyConfigured(f"{KEY_VARIABLE}: {path} cannot be used: {reason}") from error


# Seconds and tries; `tcp_user_timeout` is in milliseconds. By default the driver waits for a machine that
# vanished for a quarter of an hour, or for ever.
SILENCE = {
    "connect_timeout": "5",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "20000",
    # For the server: it would keep the transaction and the locks of a machine that vanished for two hours.
    # It gives up sooner than the lease of an attempt ends, so that the work can be placed elsewhere.
    "options": (
        "-c tcp_keepalives_idle=5 -c tcp_keepalives_interval=2 -c tcp_keepalives_count=4 "
        "-c tcp_user_timeout=13000"
    ),
}
"""Options of PostgreSQL's driver that end a connection of which one end became silent."""


def database(home_folder: Path) -> dict[str, object]:
    """Return Django's database settings from `TRAINYARD_DATABASE_URL`; by default SQLite in the home."""
    url = os.environ.get("TRAINYARD_DATABASE_URL") or f"sqlite:///{home_folder / 'trainyard.sqlite3'}"
    return database_at(url, "TRAINYARD_DATABASE_URL")


def database_at(url: str, name: str = "the address") -> dict[str, object]:
    """Return Django's settings of the database at an address. An error's message begins with `name`."""
    parts = _parts_of(name, url)
    if parts.scheme == "sqlite":
        return sqlite(Path(unquote(parts.path)))
    if parts.scheme in ("postgres", "postgresql"):
        # As in libpq: `?host=` names a socket folder, `?sslmode=` and others go to the driver.
        options = dict(parse_qsl(parts.query))
        host = unquote(parts.hostname or options.pop("host", ""))
        return {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": unquote(parts.path.lstrip("/")),
            "USER": unquote(parts.username or ""),
            "PASSWORD": unquote(parts.password or ""),
            "HOST": host,
            "PORT": str(parts.port or ""),
            # A pool, which only the web server has, refuses connections that stay open.
            "CONN_MAX_AGE": 0,
            "OPTIONS": {**SILENCE, **options},
        }
    raise ImproperlyConfigured(f"{name}={mask(url)!r}: give sqlite:///path or postgres://…")


def _parts_of(name: str, url: str) -> SplitResult:
    """Return the parts of an address, whose port can be read."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise ImproperlyConfigured(f"{name}={mask(url)!r} is no address: {error}") from error
    return parts


def sqlite(path: Path) -> dict[str, object]:
    """Return settings for SQLite with many writers: WAL, and transactions that begin with the write lock."""
    if not path.parent.is_dir():
        raise ImproperlyConfigured(
            f"TRAINYARD_DATABASE_URL: there is no folder {str(path.parent)!r} for the database; create it"
        )
    # The database may lie outside the home.
    for suffix in ("", "-wal", "-shm", "-journal"):
        _private(
            private_files.make_file_private, path.with_name(path.name + suffix), "TRAINYARD_DATABASE_URL"
        )
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(path),
        # Under ASGI a connection that stays open after its request is never used again.
        "CONN_MAX_AGE": 0,
        "OPTIONS": {
            # A deferred transaction that writes after a read fails at once with "database is locked" if
            # another one wrote in between; the timeout does not apply to it.
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=ON;",
        },
    }


def redis_url(home_folder: Path) -> str:
    """Return the broker's URL; by default the socket that `up`'s broker opens."""
    if url := os.environ.get("TRAINYARD_REDIS_URL"):
        parts = _parts_of("TRAINYARD_REDIS_URL", url)
        if parts.scheme not in ("redis", "rediss", "unix") or not (parts.hostname or parts.path):
            raise ImproperlyConfigured(
                f"TRAINYARD_REDIS_URL={mask(url)!r}: give redis://host:6379/0, rediss://… or unix:///path?db=0"
            )
        return url
    # It may be in a folder for all users: no other user may have put a socket there.
    _private(private_files.require_private_folder, Home(home_folder).broker_socket.parent, "TRAINYARD_HOME")
    return Home(home_folder).broker_url


def artifacts(home_folder: Path) -> str:
    """Return the artifact store's folder, which only its owner can access, or its fsspec URL."""
    location = os.environ.get("TRAINYARD_ARTIFACTS") or str(home_folder / "artifacts")
    if "://" in location:
        _require_protocol(location.partition("://")[0])
        return location
    folder = Path(location)
    try:
        # The store makes its folder in the home by itself, when it is needed.
        if os.environ.get("TRAINYARD_ARTIFACTS"):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ImproperlyConfigured(
            f"TRAINYARD_ARTIFACTS: the folder {folder} cannot be made: {error.strerror or error}"
        ) from error
    _private(private_files.make_folder_private, folder, "TRAINYARD_ARTIFACTS")
    return location


def _require_protocol(protocol: str) -> None:
    """Require that fsspec knows the protocol of an artifact store."""
    from fsspec.registry import known_implementations  # slow, and not needed for folders

    if protocol not in known_implementations:
        raise ImproperlyConfigured(
            f"TRAINYARD_ARTIFACTS: {protocol!r} is no protocol of a store, such as s3 or gs"
        )


def whole_number(name: str, default: int, *, of: str = "", least: int = 1) -> int:
    """Return a whole number, at least `least`. The error message names the unit `of`."""
    text = os.environ.get(name) or str(default)
    if not text.isdecimal() or int(text) < least:
        unit = f" of {of}" if of else ""
        raise ImproperlyConfigured(f"{name}={text!r}: give a number{unit}, such as {default}")
    return int(text)


def networks(name: str, default: Sequence[str]) -> list[str]:
    """Return IP addresses and networks from a comma-separated list; `none` is an empty list."""
    hosts = words(name) or list(default)
    if hosts == ["none"]:
        return []
    for host in hosts:
        try:
            ipaddress.ip_network(host)
        except ValueError as error:
            raise ImproperlyConfigured(
                f"{name}: {host!r} is no address and no network, such as 10.0.0.0/24 ({error})"
            ) from error
    return hosts


def hosts_and_ports(name: str) -> frozenset[tuple[str, int]]:
    """Return `host:port` pairs from a comma-separated list; patterns are refused."""
    allowed = set[tuple[str, int]]()
    for address in words(name):
        host, _, port = address.rpartition(":")
        try:
            bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
            if not port.isdecimal() or not 0 < int(port) < 65536 or (":" in bare and bare == host):
                raise BadAddress("the port is missing or not valid")
            allowed.add((canonical_host(bare), int(port)))
        except BadAddress as error:
            raise ImproperlyConfigured(
                f"{name}: {address!r} is no host with a port, such as data.internal:443 or [fd00::1]:9000 "
                f"({error})"
            ) from error
    return frozenset(allowed)


def data_roots(private: Sequence[Path]) -> tuple[str, ...]:
    """Return the folders in `TRAINYARD_DATA_ROOTS`, below which files may be read as data.

    Args:
        private: the installation's files and folders. Everyone who may write in a project can read the
            folders' files, so they must not overlap.
    """
    name = "TRAINYARD_DATA_ROOTS"
    for text in words(name):
        path = Path(text)
        if not path.is_absolute() or ".." in path.parts:
            raise ImproperlyConfigured(f"{name}: {text!r} is no absolute path of a folder")
        root = path.resolve()
        for reserved in private:
            if root.is_relative_to(reserved.resolve()) or reserved.resolve().is_relative_to(root):
                raise ImproperlyConfigured(
                    f"{name}: {text!r} overlaps with {reserved}, which belongs to the installation; "
                    "give folders that have data alone"
                )
    return tuple(str(Path(path)) for path in words(name))


PATH_OF_PUBLIC_URL = re.compile(r"(/[A-Za-z0-9][A-Za-z0-9._-]*)*")
OWN_PLACES = frozenset(
    (
        *("account", "accounts", "admin", "api", "approvals", "audit", "code", "datasets"),
        *("delete", "deletions", "docs", "endpoints", "healthz", "help", "jobs", "login"),
        *("models", "p", "people", "projects", "queue", "readyz", "search", "settings"),
        *("livez", "metrics", "static", "storage", "styleguide", "tokens", "workers", "ws"),
    )
)
"""The first parts of the dashboard's own paths."""


def public_url() -> str:
    """Return the public address (`https://host[:port][/path]`); empty on a local machine."""
    url = os.environ.get("TRAINYARD_PUBLIC_URL", "").rstrip("/")
    if not url:
        return ""
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_address = False
    if not is_address or "@" in parts.netloc:
        raise ImproperlyConfigured(
            f"TRAINYARD_PUBLIC_URL={url!r}: give https://host, https://host:port or https://host/path"
        )
    if parts.query or parts.fragment or not PATH_OF_PUBLIC_URL.fullmatch(parts.path):
        raise ImproperlyConfigured(
            f"TRAINYARD_PUBLIC_URL={url!r}: its path may have letters, digits, '.', '_' and '-', such as "
            "https://host/trainyard, and nothing may follow it"
        )
    # A proxy may remove the path or pass it on: its first part must show which of the two it did.
    if (first := parts.path.strip("/").partition("/")[0]) in OWN_PLACES:
        raise ImproperlyConfigured(
            f"TRAINYARD_PUBLIC_URL={url!r}: the dashboard has pages of its own below /{first}; give another "
            "path, such as /trainyard"
        )
    return url


def demo(public: str) -> bool:
    """Return whether this is a demo, as `manage.py demo` sets it; a public installation cannot be one."""
    if (is_demo := flag("TRAINYARD_DEMO")) and public:
        raise ImproperlyConfigured(
            "TRAINYARD_DEMO=1 allows to kill runners on the pages; unset it, or TRAINYARD_PUBLIC_URL"
        )
    return is_demo


def allowed_hosts(public: str) -> list[str]:
    """Return the allowed host names: loopback, the public address, `TRAINYARD_ALLOWED_HOSTS`."""
    hosts = words("TRAINYARD_ALLOWED_HOSTS")
    # The origin check of WebSockets uses the list too: with * it would let every site in.
    if "*" in hosts:
        raise ImproperlyConfigured(
            "TRAINYARD_ALLOWED_HOSTS=* would allow requests under any host name; list the hosts"
        )
    name = urlsplit(public).hostname
    return ["localhost", "127.0.0.1", "[::1]", *([name] if name else []), *hosts]
