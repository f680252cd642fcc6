"""From reviews in JSON Lines to a served model that takes raw texts."""

import json

import pytest

from tests.engine.texts import json_lines
from tests.flow.specs import search, spec
from tests.flow.yard import PROJECT, RunningYard

pytestmark = pytest.mark.timeout(1800)


def test_a_transformer_of_texts_is_searched_and_answers_raw_reviews(flow_yard: RunningYard) -> None:
    columns = json.dumps([{"name": "title", "role": "ignore"}])  # a second text would double the compilation
    content = json_lines(240).encode()
    flow_yard.upload("reviews", "reviews.jsonl", content, target="opinion", columns=columns)
    read = flow_yard.ada.get("/datasets/reviews/versions/1", project=PROJECT)["columns"]
    assert {column["name"]: column["type"] for column in read}["review"] == "text"
    space = [{"name": "learning_rate", "kind": "choice", "values": [0.02, 0.03]}]
    body = spec(
        "reviews",
        model={"kind": "template", "template": "text_transformer", "args": {"dim": 8, "blocks": 1}},
        fit={"epochs": 8, "batch_size": 32, "seed": 3},
        search=search(metric="val_accuracy", space=space, executions_per_trial=1, parallel_trials=1),
        after={
            "retrain": {"top": 2, "patience": 5, "epochs_cap": 8},
            "ensemble": {"method": "weighted"},
            "register": {"model": "opinions", "what": ["ensemble"]},
        },
    )
    job = flow_yard.until_completed(flow_yard.submit(body))
    (version,) = job["results"]["versions"]
    assert version["what"] == "ensemble"
    flow_yard.promote("opinions", version["number"])
    asked = ["The room was GREAT!", "the view was awful, very", "", None]
    served, answers = flow_yard.predict("opinions", [{"review": text} for text in asked])
    assert served == version["number"]
    (good,), (bad,), (empty,), (missing,) = answers
    assert bad < 0.5 < good
    assert empty == missing
