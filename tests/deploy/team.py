"""The installation of docs/guide/20-several-machines.md: each part on a machine of its own."""

import json
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import boto3
import httpx2

from tests.browser.proxies.front_door import DEPLOY, NGINX_HEAD, program
from tests.deploy.network import Machine, Network, postgres_programs
from tests.ops.conftest import PATIENCE, ROOT, wait_for
from tests.ops.guide_commands import Command, command
from webapp.demo.client import Client

PAGE = 20
NUMBERS = {
    "database": 2,
    "broker": 3,
    "store": 4,
    "proxy": 5,
    "web-1": 11,
    "web-2": 12,
    "scheduler-1": 13,
    "scheduler-2": 14,
    "worker-1": 21,
    "worker-2": 22,
    "serving-1": 31,
    "serving-2": 32,
    "elsewhere": 41,
    "client": 100,
}
ALIASES = {"trainyard.example": "proxy", "predictions.trainyard.example": "proxy"}
DASHBOARD, PREDICTIONS = "https://trainyard.example", "https://predictions.trainyard.example"
QUICK = {
    "DJANGO_SETTINGS_MODULE": "webapp.settings.main",
    "TRAINYARD_REQUIRE_SECOND_FACTOR": "0",
    "TRAINYARD_STANDBY": "0",
    "TRAINYARD_MIN_FREE_BYTES": "100000000",
    "TRAINYARD_NODE_POLL": "0.5",
    "TRAINYARD_NODE_RETRY_LIMIT": "1",
    "TRAINYARD_NODE_RENEW": "2",
    "TRAINYARD_NODE_UPLOAD": "0.2",
    "TRAINYARD_CHECKPOINT_SECONDS": "0.5",
}
"""Short intervals, so that tests are fast."""
STORE_KEYS = {"aws_access_key_id": "key", "aws_secret_access_key": "secret", "region_name": "us-east-1"}
PROJECT = "team"
FIRST_WEB = command(PAGE, "manage.py web --host 0.0.0.0 --migrate")
WEB = command(PAGE, "manage.py web --host 0.0.0.0")
SCHEDULER = command(PAGE, "manage.py scheduler")
WORKER = command(PAGE, "manage.py worker --slots 1")
SERVING = command(PAGE, "manage.py serve --host")


class Team:
    """The machines with their programs, and clients of people who work with them.

    Attributes:
        program: the folder of the program that is started next.
        serves: whether a test has released a version.
        training: the job that trains without an end, once a test has begun it.
    """

    ada: Client
    grace: Client
    tokens: dict[str, str]
    predict_token: str

    def __init__(self, folder: Path) -> None:
        self.network = Network(folder, NUMBERS, ALIASES)
        self.program = ROOT
        self.serves = False
        self.training: int | None = None
        self.folder, self.certificate = folder, folder / "ca.pem"
        self._inside: Inside | None = None

    def __getitem__(self, name: str) -> Machine:
        return self.network[name]

    # The start, in the order of the page

    def open(self) -> None:
        """Start everything, and meet both people."""
        self._make_certificate()
        self._start_database()
        self._start_broker()
        self._start_store()
        for name in ("web-1", "web-2", "scheduler-1", "scheduler-2", "worker-1", "worker-2"):
            self.configure(name)
        self.start_page("web-1", "web", FIRST_WEB)
        home = self["web-1"].disk / "state"
        wait_for(lambda: (home / "release.pub").exists() and self.is_up("web-1"), "the first web server")
        for name in ("web-2", "scheduler-1", "scheduler-2"):
            self.copy_keys(name)
        self.start_page("web-2", "web", WEB)
        for name in ("scheduler-1", "scheduler-2"):
            self.start_page(name, "scheduler", SCHEDULER)
        for name in ("worker-1", "worker-2"):
            self.start_page(name, "worker", WORKER)
        self._start_proxy()
        with ThreadPoolExecutor(2) as threads:
            list(threads.map(self._make_credential, ("serving-1", "serving-2")))
        # Not in these threads, with which the programs would end.
        for name in ("serving-1", "serving-2"):
            self.start_page(name, "serving", SERVING)
        self.tokens = self.call("tests.flow.people", "tokens")
        self.ada, self.grace = (
            Client(DASHBOARD, token, name, patience=PATIENCE) for name, token in self.tokens.items()
        )
        self.predict_token = self.call("tests.deploy.inside", "predict_token")
        wait_for(lambda: self.is_up("web-2"), "the second web server")
        self.ada.post("/projects", {"slug": PROJECT, "name": "Team"}, okay=(409,))
        self.ada.put(f"/projects/{PROJECT}/members", {"user": "grace", "role": "approver"})

    def _make_certificate(self) -> None:
        names = ",".join(f"DNS:{name}" for name in (*ALIASES, "broker"))
        subject = ["-subj", "/CN=trainyard.example", "-addext", f"subjectAltName={names}"]
        kind = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
        key = self.folder / "ca.key"
        made = ["openssl", "req", *kind, *subject, "-keyout", str(key), "-out", str(self.certificate)]
        subprocess.run(made, check=True, capture_output=True)
        for name, machine in self.network.machines.items():
            shutil.copy(self.certificate, machine.disk / "ca.pem")
            if name in ("broker", "proxy"):
                shutil.copy(self.certificate, machine.disk / f"{name}.pem")
                shutil.copy(key, machine.disk / f"{name}.key")

    def _start_database(self) -> None:
        machine = self["database"]
        self.postgres = Postgres(machine)
        self.postgres.create()
        self.postgres.start()
        roles = command(PAGE, "CREATE ROLE").script({"sudo -u postgres psql": " ".join(self.postgres.psql)})
        wait_for(self.postgres.answers, "PostgreSQL")
        machine.run("sh", "-euc", roles)

    def _start_broker(self) -> None:
        machine = self["broker"]
        machine.run("sh", "-euc", command(PAGE, "cat > /srv/broker.conf").script())
        self.start_broker()

    def start_broker(self) -> None:
        """Start the broker with the configuration that it has."""
        self.start_page("broker", "redis", command(PAGE, "redis-server /srv/broker.conf"))

    def _start_store(self) -> None:
        script = "from moto.server import main; main()"
        self["store"].start("s3", [sys.executable, "-c", script, "-H", "0.0.0.0", "-p", "9000"])
        address = f"http://{self['store'].address}:9000"

        def create() -> bool:
            try:
                httpx2.get(address, trust_env=False, timeout=2)
            except httpx2.HTTPError:
                return False
            boto3.client("s3", endpoint_url=address, **STORE_KEYS).create_bucket(Bucket="trainyard")
            return True

        wait_for(create, "the store")

    def _start_proxy(self) -> None:
        """Start nginx with the configuration in deploy/, for two servers of each kind."""
        machine = self["proxy"]
        text = (DEPLOY / "nginx" / "trainyard.conf").read_text()
        for pattern, new in (
            (r"/etc/ssl/trainyard/fullchain\.pem", "/srv/proxy.pem"),
            (r"/etc/ssl/trainyard/privkey\.pem", "/srv/proxy.key"),
            (r"server 127\.0\.0\.1:8000;", "server web-1:8000; server web-2:8000;"),
            (r"server 127\.0\.0\.1:8501;", "server serving-1:8501; server serving-2:8501;"),
        ):
            text, count = re.subn(pattern, new, text)
            assert count, f"{pattern} is not in the configuration"
        (machine.disk / "site.conf").write_text(text)
        (machine.disk / "nginx.conf").write_text(NGINX_HEAD.format(folder="/srv"))
        rest = ["-p", "/srv", "-c", "/srv/nginx.conf", "-g", "daemon off; master_process off; user root;"]
        machine.start("nginx", [program("nginx"), *rest])

    def _make_credential(self, name: str) -> None:
        """Make a credential of a prediction server, and bring it there."""
        made = command(PAGE, "manage.py serving-token serving-1")
        self["web-1"].run("sh", "-euc", made.script({"serving-1": name}), environment=QUICK)
        self._copy("web-1", f"{name}.token", name, "serving.token")
        self._copy("web-1", "state/release.pub", name, "release.pub")

    def _copy(self, source: str, path: str, target: str, name: str) -> None:
        shutil.copy(self[source].disk / path, self[target].disk / name)

    def configure(self, name: str) -> None:
        """Write a machine's variables."""
        self[name].run("sh", "-euc", command(PAGE, "cat > /srv/trainyard.env").script())

    def copy_keys(self, name: str) -> None:
        """Bring the keys of the installation to a machine."""
        script = command(PAGE, "install -d -m 700").script()
        self[name].run("sh", "-euc", script)
        copies = command(PAGE, "scp -p web-1").script({"scp": "cp", "web-1:/srv": str(self["web-1"].disk)})
        self[name].run("sh", "-euc", copies)

    def start_page(self, machine: str, name: str, started: Command) -> None:
        """Start a command of the page."""
        self[machine].start_command(name, started, QUICK, self.program)

    # Its state

    def is_up(self, name: str) -> bool:
        """Return whether a web server is ready for requests."""
        return answers(f"http://{self[name].address}:8000/healthz", Host="trainyard.example")

    def call(self, module: str, function: str, *arguments: Any) -> Any:
        """Call a function on the machine `web-1`, on the database of the installation."""
        self._inside = self._inside or Inside(self["web-1"])
        return self._inside.call(module, function, *arguments)

    def close(self) -> None:
        """End everything."""
        if self._inside is not None:
            self._inside.close()
        self.network.close()


class Inside:
    """A process on a machine that answers calls on the database that the machine's variables name."""

    def __init__(self, machine: Machine, program: Path = ROOT) -> None:
        script = 'set -a; . /srv/trainyard.env; exec "$0" manage.py shell --no-imports -c "$1"'
        answer = "from tests.flow.inside import answer_calls; answer_calls()"
        self._process = subprocess.Popen(
            [*machine.enter, "sh", "-euc", script, sys.executable, answer],
            cwd=program,
            env={**machine.environment, **QUICK},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def call(self, module: str, function: str, *arguments: Any) -> Any:
        """Return the result of a function of a module, called there."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps([module, function, arguments]) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        assert "answer" in answer, answer["error"]
        return answer["answer"]

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


class Postgres:
    """A PostgreSQL server on a machine, in its folder `postgres`."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        programs = postgres_programs()
        assert programs is not None
        self._programs = programs
        account = "postgres" if Path("/var/lib/postgresql").exists() else "nobody"
        self._as = (
            "setpriv",
            f"--reuid={account}",
            "--regid=nogroup",
            "--clear-groups",
            "--pdeathsig",
            "KILL",
        )
        self._account = account

    @property
    def psql(self) -> tuple[str, ...]:
        """The command line of its administrator."""
        return (
            shutil.which("psql") or str(self._programs / "psql"),
            "-q",
            "-v",
            "ON_ERROR_STOP=1",
            "-h",
            "/srv/postgres",
            "-U",
            "postgres",
        )

    def create(self) -> None:
        folder = self._machine.disk / "postgres"
        folder.mkdir()
        shutil.chown(folder, self._account)
        kind = ("-A", "scram-sha-256", "--auth-local=trust", "--no-sync", "--no-locale", "-E", "UTF8")
        self._machine.run(
            *self._as, str(self._programs / "initdb"), "-D", "/srv/postgres/db", "-U", "postgres", *kind
        )
        with (folder / "db" / "pg_hba.conf").open("a") as file:
            file.write("host all all 10.77.0.0/24 scram-sha-256\n")

    def start(self) -> None:
        options = {
            "listen_addresses": "*",
            "unix_socket_directories": "/srv/postgres",
            "max_connections": "200",
            "fsync": "off",
            "synchronous_commit": "off",
            "full_page_writes": "off",
        }
        settings = [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
        self._machine.start(
            "postgres", [*self._as, str(self._programs / "postgres"), "-D", "/srv/postgres/db", *settings]
        )

    def answers(self) -> bool:
        """Return whether it accepts queries."""
        try:
            self._machine.run(*self.psql, "-c", "SELECT 1", timeout=10)
        except AssertionError:
            return False
        return True


def answers(url: str, **headers: str) -> bool:
    """Return whether an address answers with status 200."""
    try:
        return httpx2.get(url, headers=headers, timeout=5).is_success
    except httpx2.HTTPError:
        return False
