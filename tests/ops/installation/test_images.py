"""The container files without Docker; `test_compose_services.py` runs the commands of the services."""

import json
from string import Template

import yaml

from tests.ops.conftest import ROOT
from workers.system import kernel

COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES = COMPOSE["services"]
OURS = [name for name, service in SERVICES.items() if service["image"].startswith("trainyard")]


def dockerfile() -> list[tuple[str, str]]:
    """Return the Dockerfile's instructions, continued lines joined."""
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    lines = [line.strip() for line in text.splitlines()]
    return [(line.split()[0], line.split(maxsplit=1)[1]) for line in lines if line and line[0] != "#"]


def test_the_image_installs_from_the_lock_with_hashes_and_does_not_run_as_root() -> None:
    instructions = dockerfile()
    assert any("--require-hashes -r" in text for name, text in instructions if name == "RUN")
    assert [text for name, text in instructions if name == "USER"] == ["trainyard"]
    assert any(name == "HEALTHCHECK" for name, _ in instructions)


def test_the_image_copies_only_what_exists_and_starts_everything() -> None:
    instructions = dockerfile()
    copied = [text.split()[0] for name, text in instructions if name == "COPY" and "--from" not in text]
    defaults = dict(text.split("=", 1) for name, text in instructions if name == "ARG")
    assert all((ROOT / Template(path).substitute(defaults)).exists() for path in copied)
    (command,) = [
        json.loads(text)
        for name, text in instructions
        if name == "CMD" and text.startswith('["python", "manage')
    ]
    assert command[:3] == ["python", "manage.py", "up"]


def test_the_worker_of_compose_is_no_root_and_may_give_runners_users_of_their_own() -> None:
    options = dict(option.lstrip("-").partition("=")[::2] for option in SERVICES["worker"]["entrypoint"][1:])
    assert (options["reuid"], options["regid"]) == ("trainyard", "trainyard")
    needed = {name.removeprefix("CAP_").lower() for name in kernel.CAPABILITIES}
    for capabilities in (options["inh-caps"], options["ambient-caps"]):
        assert {capability.removeprefix("+") for capability in capabilities.split(",")} == needed


def test_files_of_a_private_checkout_are_readable_for_the_user_of_the_image() -> None:
    instructions = dockerfile()
    opened = next(
        index for index, instruction in enumerate(instructions) if instruction[1].startswith("chmod -R a+rX")
    )
    assert instructions.index(("COPY", ". /srv/trainyard")) < opened
    assert opened < instructions.index(("COPY", "--from=build /srv/trainyard /srv/trainyard"))


def test_compose_names_every_part_and_declares_its_volumes() -> None:
    assert set(SERVICES) == {"web", "scheduler", "worker", "serving", "backup", "postgres", "valkey"}
    mounted = {volume.split(":")[0] for service in SERVICES.values() for volume in service.get("volumes", ())}
    assert mounted <= set(COMPOSE["volumes"])


def test_compose_has_no_default_password_and_listens_only_on_this_machine() -> None:
    assert "TRAINYARD_DB_PASSWORD:?" in SERVICES["postgres"]["environment"]["POSTGRES_PASSWORD"]
    published = [port for service in SERVICES.values() for port in service.get("ports", ())]
    assert all(port.startswith("127.0.0.1:") for port in published)


def test_prediction_servers_of_compose_can_be_several_with_a_port_each() -> None:
    serving = SERVICES["serving"]
    assert not {"container_name", "hostname"} & set(serving)
    # A range of ports from the environment; Docker would give one server another port of it at each start.
    assert serving["ports"] == ["127.0.0.1:${SERVING_PORTS:-8501}:8501"]


def test_the_web_server_of_compose_migrates_and_the_others_wait_for_it() -> None:
    assert "--migrate" in SERVICES["web"]["command"]
    assert {name for name in OURS if "web" in SERVICES[name].get("depends_on", ())} == {*OURS} - {"web"}
