"""The dashboard, the alerts and the guide name only metrics that the parts really give."""

import json
import re
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from jobs.monitoring import exposition
from jobs.monitoring.exposition import Exposition
from jobs.monitoring.scheduler import SchedulerState
from jobs.queries.runs.figures import Figures, PoolFigures, Total
from tests.architecture.sources import ROOT
from tests.monitoring.test_status import Membership
from webapp import metrics as web
from workers.node.status import NodeStatus
from workers.serving.health import Health
from workers.serving.metrics import Metrics
from workers.serving.server_gauges import add_server_gauges

DEPLOY = ROOT / "deploy"
BOARD = json.loads((DEPLOY / "grafana" / "trainyard.json").read_text(encoding="utf-8"))
NAME = re.compile(r"(?:\b|(?<=\())(?:trainyard_|:tensorflow:|process_)[\w:]*|:tensorflow:[\w:]+")
OF_ROUTER = {"trainyard_serving_queue_rows", "trainyard_serving_child_pid", "trainyard_serving_generation"}
"""Gauges that the router adds with the endpoints."""
FIGURES = Figures(
    pools={"default": PoolFigures()},
    jobs={"running": 1},
    replicas={"current": 1, "behind": 0, "silent": 0},
    totals={("runs", "completed/"): Total(3, 1.0), ("collections", "completed"): Total(1, 1.0)},
    has_scheduler=True,
)


@pytest.fixture
async def given(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> set[str]:
    """Return the names of all samples and families of all parts."""
    monkeypatch.setattr(exposition, "MEASURES", {"database": lambda: 0.1, "broker": lambda: 0.1})
    monkeypatch.setattr(exposition._services, "_read_at", float("-inf"))
    monkeypatch.setattr(exposition, "read_figures", lambda: FIGURES)
    monkeypatch.setattr(exposition.installation_families, "_read_at", float("-inf"))
    web.count_request("GET", "/", 200, 0.1)
    node = NodeStatus()
    node.membership = Membership()  # type: ignore[assignment]
    serving = Metrics()
    add_server_gauges(serving, tmp_path, Health("refused", lambda: None))
    serving.request_done("m", "predict", 200, 0.1)
    node_families = list(node._metrics())
    texts = [
        web.text(),
        Exposition(SchedulerState().families).text(),
        Exposition(lambda: node_families).text(),
        serving.text(),
    ]
    # A family twice in one text, or a broken line, would end the scrape.
    for text in texts:
        names = [family.name for family in text_string_to_metric_families(text.decode())]
        assert len(names) == len(set(names))
    lines = b"".join(texts).decode().splitlines()
    samples = {re.split(r"[{ ]", line)[0] for line in lines if line and not line.startswith("#")}
    families = {line.split()[2] for line in lines if line.startswith("# TYPE")}
    return samples | families | OF_ROUTER


def expressions() -> dict[str, str]:
    rules = yaml.safe_load((DEPLOY / "prometheus" / "trainyard-alerts.yml").read_text(encoding="utf-8"))
    alerts = {rule["alert"]: rule["expr"] for group in rules["groups"] for rule in group["rules"]}
    panels = {
        f"{panel['title']} {target['refId']}": target["expr"]
        for panel in BOARD["panels"]
        for target in panel["targets"]
    }
    return alerts | panels


async def test_each_metric_of_the_board_and_of_the_alerts_exists(given: set[str]) -> None:
    named = {name: set(NAME.findall(text)) for name, text in expressions().items()}
    assert len(named) > 35
    assert all(names or "up{" in expressions()[name] for name, names in named.items())
    assert not {name: names - given for name, names in named.items() if names - given}


async def test_each_metric_of_the_guide_exists_and_each_of_the_parts_is_in_it(given: set[str]) -> None:
    page = (ROOT / "docs" / "guide" / "17-watching.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"`(trainyard_\w+)", page))
    assert not listed - given
    own = {name for name in given if name.startswith("trainyard_")}
    base = {re.sub(r"_(bucket|sum|count|created)$", "", name) for name in own}
    missing = {name for name in base if name not in listed and f"{name}_total" not in base | listed}
    assert not missing


def test_the_board_can_be_imported() -> None:
    assert BOARD["schemaVersion"] >= 39
    assert [entry["type"] for entry in BOARD["templating"]["list"]] == ["datasource"]
    numbers = [panel["id"] for panel in BOARD["panels"]]
    assert len(numbers) == len(set(numbers))
    places = [panel["gridPos"] for panel in BOARD["panels"]]
    assert all(place["x"] + place["w"] <= 24 for place in places)
    for panel in BOARD["panels"]:
        assert {target["datasource"]["uid"] for target in panel["targets"]} == {"${datasource}"}
        for target in panel["targets"]:
            assert target["expr"].count("(") == target["expr"].count(")"), target["expr"]


def test_the_scrape_configuration_reads_each_part_with_a_token() -> None:
    text = (DEPLOY / "prometheus" / "prometheus.yml").read_text(encoding="utf-8")
    settings = yaml.safe_load(text)
    jobs = {job["job_name"]: job for job in settings["scrape_configs"]}
    assert set(jobs) == {f"trainyard-{part}" for part in ("web", "scheduler", "worker", "serving")}
    assert all("credentials_file" in job["authorization"] for job in jobs.values())
    assert settings["rule_files"] == ["trainyard-alerts.yml"]


@pytest.mark.parametrize("part", ["scheduler", "worker"])
def test_compose_asks_the_part_itself_whether_it_is_live(part: str) -> None:
    service = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))["services"][part]
    command: list[str] = service["command"]
    port = command[command.index("--status-address") + 1].rpartition(":")[2]
    assert service["healthcheck"]["test"][1:] == ["python", "scripts/probe", f"http://127.0.0.1:{port}/livez"]
