"""Reads settings from environment variables; an invalid value stops the start with a message."""

import ipaddress
import os
import re
import secrets
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

from jobs import private_files, program
from jobs.atomic_files import create_once
from jobs.spec.data.addresses import BadAddress, canonical_host
from webapp.ops.home import Home


def home() -> Path:
    """Return `TRAINYARD_HOME`, the folder with all state, which only its owner can access.

    It is created if absent. From here on, this process and its children create private files only.
    """
    private_files.restrict_new_files()
    return _private(private_files.make_home_private, Home.from_environment().root)


def _private(check: Callable[[Path], object], path: Path) -> Path:
    """Apply a check from `jobs.private_files`; a refusal stops the start with its message."""
    try:
        check(path)
    except private_files.NotPrivate as error:
        raise ImproperlyConfigured(str(error)) from error
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


def words(name: str) -> list[str]:
    """Return a comma-separated list."""
    return [word.strip() for word in os.environ.get(name, "").split(",") if word.strip()]


def secret_key_file(home_folder: Path) -> Path:
    """Return the secret key's file."""
    return Path(os.environ.get("TRAINYARD_SECRET_KEY_FILE") or home_folder / "secret.key")


def secret_key(home_folder: Path) -> str:
    """Return the secret key; it is created once with mode 0600.

    A worker creates none: it signs nothing. Without a file it has no key, and Django refuses to sign.
    """
    path = secret_key_file(home_folder)
    _private(private_files.make_file_private, path)
    if not path.exists():
        if os.environ.get(program.KEYLESS_VARIABLE):
            return ""
        create_once(path, secrets.token_urlsafe(64).encode())
    key = path.read_text().strip()
    if len(key) < 50:
        raise ImproperlyConfigured(f"the key in {path} is too short; delete the file to create a new one")
    return key


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
    parts = urlsplit(url)
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
    raise ImproperlyConfigured(f"TRAINYARD_DATABASE_URL={url!r}: give sqlite:///path or postgres://…")


def sqlite(path: Path) -> dict[str, object]:
    """Return settings for SQLite with many writers: WAL, and transactions that begin with the write lock."""
    # The database may lie outside the home.
    for suffix in ("", "-wal", "-shm", "-journal"):
        _private(private_files.make_file_private, path.with_name(path.name + suffix))
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
        return url
    # It may be in a folder for all users: no other user may have put a socket there.
    _private(private_files.require_private_folder, Home(home_folder).broker_socket.parent)
    return Home(home_folder).broker_url


def artifacts(home_folder: Path) -> str:
    """Return the artifact store's folder, which only its owner can access, or its fsspec URL."""
    location = os.environ.get("TRAINYARD_ARTIFACTS") or str(home_folder / "artifacts")
    if "://" not in location:
        _private(private_files.make_folder_private, Path(location))
    return location


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
        *("static", "storage", "styleguide", "tokens", "workers", "ws"),
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
