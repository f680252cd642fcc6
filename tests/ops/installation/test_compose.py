"""The Compose files keep their promises, read as Docker Compose reads them."""

import ipaddress
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from jobs import known_variables
from jobs.known_variables import settle
from tests.ops.conftest import ROOT
from tests.ops.installation import compose
from tests.ops.installation.compose import PASSWORDS, MissingVariable, as_in_container, can_confine
from webapp import prediction
from workers.serving import settings as serving
from workers.supervise.limits.limits import TaskLimits
from workers.supervise.limits.sandbox_limits import SandboxLimits
from workers.supervise.timing import Timing

EXAMPLE = ROOT / "deploy" / "trainyard.env.example"
GIBIBYTES = {"m": 1 / 1024, "g": 1.0}


@pytest.fixture(scope="module")
def whole() -> dict[str, Any]:
    return compose.load("docker-compose.yml", variables=PASSWORDS)


@pytest.fixture(scope="module")
def services(whole: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = whole["services"]
    return found


def ours(services: dict[str, Any]) -> dict[str, Any]:
    return {name: each for name, each in services.items() if each["image"].startswith("trainyard")}


def example() -> dict[str, str]:
    """Return the variables of the example file, as if each line were enabled."""
    lines = re.findall(r"^#(TRAINYARD_\w+)=(.*)$", EXAMPLE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(dict(lines)) == len(lines)
    return dict(lines)


def test_the_files_follow_the_specification_of_compose() -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"]
    done = subprocess.run([*command, *compose.FILES], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("password", PASSWORDS)
def test_without_a_password_nothing_starts(password: str) -> None:
    variables = {name: word for name, word in PASSWORDS.items() if name != password}
    with pytest.raises(MissingVariable, match=password):
        compose.load("docker-compose.yml", variables=variables)


def test_every_variable_of_the_table_is_in_the_example_and_reaches_each_container(
    services: dict[str, Any],
) -> None:
    families = {name for family in known_variables.FAMILIES for name in family.names()}
    fixed = {"TRAINYARD_NODE_LEASE"}
    assert example().keys() == {*known_variables.OPERATOR, *known_variables.COMPOSE, *families} - fixed
    for service in ours(services).values():
        assert service["env_file"] == [{"path": ".env", "required": False}]


def test_a_file_with_passwords_gets_neither_into_the_repository_nor_into_the_image() -> None:
    for name in (".gitignore", ".dockerignore"):
        assert ".env" in (ROOT / name).read_text().splitlines()


def test_the_values_in_the_example_are_the_defaults() -> None:
    values = dict(example())
    settle(values)
    assert Timing.from_environment(values) == Timing()
    assert TaskLimits.from_environment(values) == TaskLimits()
    assert SandboxLimits.from_environment(values) == SandboxLimits()
    needed = ["--dashboard=http://x", "--token-file=x", "--public-key-file=x", "--home=x"]
    assert serving.parse(needed, values) == serving.parse(needed, {})


def test_the_dashboard_has_the_same_settings_with_all_defaults_of_the_example(tmp_path: Path) -> None:
    code = (
        "from django.conf import settings; import django; django.setup();"
        "names = [name for name in sorted(dir(settings._wrapped)) if name.startswith('TRAINYARD_')];"
        "print([(name, getattr(settings, name)) for name in names])"
    )
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("TRAINYARD_")}
    printed = []
    for values in ({}, example()):
        environment = inherited | values | {"TRAINYARD_HOME": str(tmp_path)}
        environment["DJANGO_SETTINGS_MODULE"] = "webapp.settings.main"
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
        printed.append(done.stdout)
    assert printed[0] == printed[1]


def test_each_variable_that_only_compose_reads_is_read_by_it_with_the_default_of_the_example() -> None:
    text = (ROOT / "docker-compose.yml").read_text()
    for name in known_variables.COMPOSE:
        expected = rf"\$\{{{name}(:\?|:-{re.escape(example()[name])}\}})"
        assert re.search(expected, text), name


def test_the_network_has_the_address_that_the_proxy_comes_from(
    whole: dict[str, Any], services: dict[str, Any]
) -> None:
    (network,) = whole["networks"]["default"]["ipam"]["config"]
    assert ipaddress.ip_address(network["gateway"]) in ipaddress.ip_network(network["subnet"])
    for name in ("TRAINYARD_TRUSTED_PROXIES", "TRAINYARD_SERVING_TRUSTED_PROXIES"):
        trusted = services["web"]["environment"][name].split(",")
        assert network["gateway"] in trusted
        # Code of users runs in the other containers: no address of theirs is believed.
        networks = [ipaddress.IPv4Network(other) for other in trusted if ":" not in other]
        assert not any(ipaddress.IPv4Network(network["subnet"]).subnet_of(other) for other in networks)


def test_own_addresses_in_the_file_replace_those_of_compose() -> None:
    own = {
        "TRAINYARD_DATABASE_URL": "postgresql://db.example/yard",
        "TRAINYARD_REDIS_URL": "rediss://broker.example",
        "TRAINYARD_TRUSTED_PROXIES": "10.0.0.7",
        "TRAINYARD_SERVING_URL": "https://predictions.example",
    }
    web = compose.load("docker-compose.yml", variables=PASSWORDS | own)["services"]["web"]
    assert web["environment"].items() >= own.items()


def test_try_it_asks_the_prediction_server(services: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINYARD_SERVING_URL", services["web"]["environment"]["TRAINYARD_SERVING_URL"])
    command = services["serving"]["command"]
    assert prediction.address() == f"http://serving:{command[command.index('--port') + 1]}"


def test_the_broker_has_the_password_that_the_parts_give(services: dict[str, Any]) -> None:
    command = services["valkey"]["command"]
    password = command[command.index("--requirepass") + 1]
    assert services["web"]["environment"]["TRAINYARD_REDIS_URL"] == f"redis://:{password}@valkey:6379/0"
    assert services["valkey"]["environment"]["REDISCLI_AUTH"] == password


def test_each_service_has_a_limit_of_memory(services: dict[str, Any]) -> None:
    limits = {name: service["mem_limit"] for name, service in services.items()}
    assert all(float(limit[:-1]) * GIBIBYTES[limit[-1]] >= 0.5 for limit in limits.values()), limits


def test_a_worker_has_a_number_of_slots_that_its_memory_suffices_for(services: dict[str, Any]) -> None:
    command = services["worker"]["command"]
    slots = int(command[command.index("--slots") + 1])
    assert float(services["worker"]["mem_limit"].removesuffix("g")) * 0.9 / slots >= 2


def test_with_gpus_worker_and_prediction_server_have_an_image_with_the_plugin() -> None:
    before = compose.load("docker-compose.yml", variables=PASSWORDS)["services"]
    after = compose.load(*compose.FILES, variables=PASSWORDS)["services"]
    changed = {name for name in after if after[name] != before[name]}
    assert changed == {"worker", "serving"}
    for name in changed:
        assert (ROOT / after[name]["build"]["args"]["LOCK"]).exists()
        (device,) = after[name]["deploy"]["resources"]["reservations"]["devices"]
        assert device == {"driver": "nvidia", "count": "all", "capabilities": ["gpu"]}
        assert after[name]["image"] != before[name]["image"]
        assert after[name].get("entrypoint") == before[name].get("entrypoint")
    assert "--slots" not in after["worker"]["command"]


def test_only_the_worker_has_capabilities(services: dict[str, Any]) -> None:
    assert {name for name, service in services.items() if service.get("cap_add")} == {"worker"}


@pytest.mark.skipif(not can_confine(), reason="needs root on Linux, to become another user")
def test_the_worker_isolates_runs_and_offers_a_sandbox_with_its_user_and_capabilities(
    services: dict[str, Any], home_of_image: Path
) -> None:
    worker = services["worker"]
    command = [sys.executable, *worker["command"][1:], "--check"]
    done = subprocess.run(
        as_in_container(worker, command, home_of_image.parent),
        cwd=ROOT,
        env={
            **compose.image_environment(),
            "PATH": os.environ["PATH"],
            "TRAINYARD_HOME": str(home_of_image),
        },
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Each runner has a user id of its own" in done.stdout
    assert "Sandbox landlock for code of users: offered" in done.stdout
    # The image has none, so no message asks to install it.
    assert "bubblewrap for code of users: not offered: TRAINYARD_SANDBOX_LEVELS leaves it out" in done.stdout


def test_the_image_has_no_program_that_cannot_work_in_it() -> None:
    assert "bubblewrap" not in yaml.safe_dump(compose.image_environment())
    installed = re.search(r"--no-install-recommends ([\w -]+)", (ROOT / "Dockerfile").read_text())
    assert installed is not None
    assert installed[1].split() == ["postgresql-client"]
