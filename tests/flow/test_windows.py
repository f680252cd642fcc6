"""From a table of sensors to a served model that takes windows of rows."""

import json

import pytest

from tests.engine.sequences import sensor_csv, sensor_rows
from tests.flow.specs import search, spec, whole_line
from tests.flow.yard import RunningYard

pytestmark = pytest.mark.timeout(1800)

ROLES = {"hour": "time", "sensor": "group", "load": "ignore"}


def test_windows_of_a_table_are_searched_combined_and_answered(flow_yard: RunningYard) -> None:
    columns = json.dumps([{"name": name, "role": role} for name, role in ROLES.items()])
    flow_yard.upload("sensors", "sensors.csv", sensor_csv().encode(), target="warm", columns=columns)
    space = [{"name": "kind", "kind": "choice", "values": ["gru", "conv"]}]
    body = spec(
        "sensors",
        data={"dataset": "sensors", "window": {"rows": 3}},
        model={"kind": "template", "template": "sequence", "args": {"units": 8}},
        fit={"epochs": 30, "batch_size": 16, "learning_rate": 0.03, "seed": 3},
        search=search("grid", metric="val_accuracy", space=space, executions_per_trial=1, parallel_trials=1),
        after=whole_line("warmth"),
    )
    job = flow_yard.until_completed(flow_yard.submit(body))
    versions = {entry["what"]: entry["number"] for entry in job["results"]["versions"]}
    assert versions.keys() == {"best", "ensemble", "quantized"}
    rules = {"slices": [{"column": "sensor", "value": "a", "min_rows": 2}]}
    flow_yard.grace.put("/models/warmth/gates", {"rules": rules, "comment": "A test."})
    flow_yard.promote("warmth", versions["ensemble"])
    hours = [row for row in sensor_rows(shuffled=False) if row["sensor"] == "b"]
    rows = [{"power": row["power"], "mode": row["mode"]} for row in hours]
    asked = [{"rows": rows[start : start + 3]} for start in range(20)]
    served, answers = flow_yard.predict("warmth", asked)
    assert served == versions["ensemble"]
    right = [(answer[0] > 0.5) == (hours[start + 2]["warm"] == "yes") for start, answer in enumerate(answers)]
    assert sum(right) >= 15
    whole, last = flow_yard.predict("warmth", [{"rows": rows[:12]}, {"rows": rows[9:12]}])[1]
    assert whole == last
