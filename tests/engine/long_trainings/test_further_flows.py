"""From further kinds of data to a served model's answers, as in `test_short_flows`."""

import datetime
import io
import json
import math
import random
from pathlib import Path

from tests.engine.sequences import sensor_csv, sensor_rows
from tests.engine.short_yard import ShortYard
from tests.engine.test_short_flows import TREES, registered, roles_of
from tests.engine.texts import json_lines
from tests.flow.specs import spec
from tests.imported_model import save_imported_model


def test_a_classification_of_texts_in_json_lines(yard: ShortYard) -> None:
    columns = json.dumps([{"name": "title", "role": "ignore"}])
    content = json_lines(240).encode()
    version = yard.upload("reviews", "reviews.jsonl", content, target="opinion", columns=columns)
    assert roles_of(version)["review"] == ("feature", "text")
    model = {"kind": "template", "template": "text_bow", "args": {}}
    fit = {"epochs": 40, "batch_size": 32, "learning_rate": 0.01, "seed": 3}
    yard.train(spec("reviews", model=model, fit=fit, after=registered("opinions")))
    asked = [{"review": text} for text in ("The room was GREAT!", "the view was awful, very", "", None)]
    answers = yard.answers("opinions", [*asked, yard.example("opinions")])
    (good,), (bad,), (empty,), (missing,), _ = answers
    assert bad < 0.5 < good
    assert empty == missing


def test_a_time_series(yard: ShortYard) -> None:
    version = yard.upload("load", "load.csv", loads())
    assert roles_of(version)["time"] == ("feature", "date")
    columns = [{"name": "time", "role": "time"}]
    yard.ada.post("/datasets/load/versions/1/read?project=flow", {"columns": columns})
    version = yard.until_ready("load", 2, project="flow")
    assert roles_of(version)["time"] == ("time", "date")
    data = {"dataset": "load", "features": ["time", "temperature", "load_yesterday"]}
    yard.train(spec(data=data, model=TREES, fit={"epochs": 30}, after=registered("load")))
    row = {"temperature": None}
    hours = [{**row, "time": f"2026-03-01T{hour:02}:00", "load_yesterday": load_at(hour)} for hour in (3, 15)]
    (night,), (day,), _ = yard.answers("load", [*hours, yard.example("load")])
    assert night < 400 < day


def load_at(hour: int) -> float:
    return 400 + 90 * math.sin((hour - 9) / 24 * math.tau)


def loads() -> bytes:
    """Return an hourly load over 25 days, with the temperature, the load a day before, and gaps."""
    rng = random.Random(5)
    start, text = datetime.datetime(2026, 1, 1), io.StringIO()
    text.write("time,temperature,load_yesterday,load\n")
    for hour in range(24 * 25):
        before = f"{load_at(hour % 24) + rng.gauss(0, 5):.1f}" if hour >= 24 else ""
        temperature = "" if hour % 50 == 3 else f"{rng.gauss(8, 4):.1f}"
        now = load_at(hour % 24) + rng.gauss(0, 5)
        text.write(f"{start + datetime.timedelta(hours=hour)},{temperature},{before},{now:.1f}\n")
    return text.getvalue().encode()


def test_windows_of_a_table_pass_the_gate_of_a_slice_and_answer(yard: ShortYard) -> None:
    columns = [
        {"name": "hour", "role": "time"},
        {"name": "sensor", "role": "group"},
        {"name": "load", "role": "ignore"},
    ]
    yard.upload("sensors", "sensors.csv", sensor_csv().encode(), target="warm", columns=json.dumps(columns))
    body = spec(
        data={"dataset": "sensors", "window": {"rows": 3}},
        model={"kind": "template", "template": "sequence", "args": {"units": 8, "kind": "conv"}},
        fit={"epochs": 40, "batch_size": 16, "learning_rate": 0.03, "seed": 3},
        after=registered("warmth"),
    )
    yard.train(body)
    rules = {"slices": [{"column": "sensor", "value": "a", "min_rows": 2}]}
    yard.grace.put("/models/warmth/gates", {"rules": rules, "comment": "A test."})
    yard.promote("warmth", 1)
    hours = [row for row in sensor_rows(shuffled=False) if row["sensor"] == "b"]
    rows = [{"power": row["power"], "mode": row["mode"]} for row in hours]
    windows = [rows[start : start + 3] for start in range(20)]
    asked = [{"rows": window} for window in (*windows, rows[:12], rows[9:12])]
    served, (*answers, whole, last) = yard.predict("warmth", asked)
    assert served == 1
    right = [(answer[0] > 0.5) == (hours[start + 2]["warm"] == "yes") for start, answer in enumerate(answers)]
    assert sum(right) >= 15
    assert whole == last


def test_a_version_of_an_imported_model_is_fine_tuned_and_its_alias_followed(
    yard: ShortYard, tmp_path: Path
) -> None:
    yard.bundle("iris")
    file = tmp_path / "imported.keras"
    save_imported_model(file)
    yard.ada.post("/models", {"project": "flow", "name": "imported"})
    yard.ada.upload("/models/imported/versions", {}, "imported.keras", file.read_bytes())
    base = yard.until_validated("imported", 1)
    yard.ada.put("/models/imported/aliases/champion", {"version": 1})
    args = {"head": "new", "freeze_to": "body/low"}
    alias = {"kind": "version", "model": "imported", "alias": "champion", "args": args}
    yard.train(spec(model=alias, after=registered("tuned")))
    tuned = yard.ada.get("/models/tuned/versions/1")
    source = tuned["lineage"]["fine_tuned_from"]
    assert (source["model"], source["number"], source["digest"]) == ("imported", 1, base["digest"])
    yard.promote("tuned", 1)
    served, answers = yard.predict("tuned", [[5.1, 3.5, 1.4, 0.2], [6.7, 3.0, 5.2, 2.3]])
    assert served == 1
    assert [len(row) for row in answers] == [3, 3]
