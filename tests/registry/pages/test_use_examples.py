"""The tab "Use it": the meaning of the answer, and examples that the prediction server answers."""

import asyncio
import json
import re
import shlex
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest

from jobs.models import DatasetVersion, ModelVersion
from tests.factories import make_dataset, make_experiment, make_job, make_model, profile
from tests.people import People, browser_of
from tests.serving.in_process import DOUBLING, Served, Serving, connect, listening, request
from tests.serving.table_models import CLASSES, DESCRIBED, ROWS_OF_WINDOW, VISITS, rows_of, served_table
from workers.serving.settings import Limits

pytestmark = pytest.mark.django_db


def registered(people: People, served: Served, *, task: str, target: str, **fields: Any) -> ModelVersion:
    """Make a version that is served, trained on the visits."""
    (version,) = make_model("m", project=people.project, by=people.owner).versions.all()
    names = [column.name for column in served.signature.columns]
    described = profile(
        task=task,
        target=target,
        features=names,
        class_labels=list(served.class_labels),
        columns=[DESCRIBED[name].model_dump(mode="json") for name in names],
        preview=rows_of({name: VISITS[name] for name in names}, [0, 7, 12]),
    )
    data = DatasetVersion.objects.filter(dataset=make_dataset("visits", project=people.project))
    data.update(profile_json=described)
    spec = {"version": 1, "data": {"dataset": "visits"}, "model": {"kind": "template", "template": "mlp"}}
    experiment = make_experiment(project=people.project, by=people.owner, spec=spec | {"fit": {"epochs": 3}})
    version.source_job = make_job(
        by=people.owner, experiment=experiment, payload={"dataset_version": data.get().pk}
    )
    version.signature = served.signature.model_dump(mode="json")
    version.class_labels = list(served.class_labels)
    for name, value in fields.items():
        setattr(version, name, value)
    version.save()
    return version


def page_of(people: People) -> str:
    answer = browser_of(people.viewer).get("/models/m/versions/1", {"tab": "use"})
    assert answer.status_code == 200
    return unescape(answer.content.decode())


def commands(page: str) -> list[tuple[str, Any]]:
    """Return the path and the body of each curl command on a page."""
    shown = re.findall(r'id="use-(?:curl|form-\d+)">([^<]*)</pre>', page)
    words = [shlex.split(command) for command in shown]
    asked = [(urlsplit(line[2]), line) for line in words]
    return [
        (address.path + "?" * bool(address.query) + address.query, json.loads(line[line.index("-d") + 1]))
        for address, line in asked
    ]


def answers(served: Served, asked: list[tuple[str, Any]]) -> list[Any]:
    """Send the requests to a server in this process."""

    async def send() -> list[Any]:
        received = []
        async with listening(Serving(Limits(), served=served)) as serving:
            for path, body in asked:
                client = await connect(serving)
                head, content = await client.ask(request(body, path))
                client.writer.close()
                assert head.startswith(b"HTTP/1.1 200 "), (path, body, content)
                received.append(json.loads(content))
        return received

    return asyncio.run(send())


def with_probabilities(served: Served) -> Served:
    """Return a model whose outputs are the probabilities of its classes."""

    def compute(x: Any) -> Any:
        scores = np.exp(np.tanh(served.compute(x)))
        return (scores / scores.sum(axis=1, keepdims=True)).astype(np.float32)

    return served._replace(compute=compute)


def numbers(answer: dict[str, Any]) -> Any:
    """Return the numbers for the only row of an answer, without the names of classes."""
    (row,) = answer.get("predictions") or answer["results"]
    if isinstance(row, dict):
        row = list(row["probabilities"].values())
    values = row if isinstance(row, list) else [row]
    return np.array([value[1] if isinstance(value, list) else value for value in values])


@pytest.mark.parametrize("window", [None, ROWS_OF_WINDOW])
@pytest.mark.parametrize(("outputs", "verb"), [(3, "classify"), (1, "regress")])
def test_all_examples_of_a_table_run_and_give_the_same_answer(
    people: People, tmp_path: Path, outputs: int, verb: str, window: int | None
) -> None:
    names = ("store", "amount", "city") if window else tuple(VISITS)
    served = served_table(tmp_path, {n: VISITS[n] for n in names}, outputs=outputs, window=window)
    if outputs == 3:
        served = with_probabilities(served)
    registered(people, served, task="multiclass" if outputs == 3 else "regression", target="label")
    asked = commands(page_of(people))
    labelled = ["predict?labels=1"] if outputs == 3 else []
    assert [path.rpartition(":")[2] for path, _ in asked] == ["predict", *labelled, "predict", verb]
    first, *others = map(numbers, answers(served, asked))
    for other in others:
        np.testing.assert_allclose(other, first, rtol=1e-6)


def test_the_examples_of_a_tensor_run(people: People) -> None:
    served = DOUBLING._replace(class_labels=tuple("abcd"))
    (version,) = make_model("m", project=people.project, by=people.owner).versions.all()
    version.signature, version.class_labels = served.signature.model_dump(mode="json"), list("abcd")
    version.save()
    asked = commands(page_of(people))
    assert [path.rpartition(":")[2] for path, _ in asked] == [
        "predict",
        "predict?labels=1",
        "predict",
        "classify",
    ]
    # This model doubles numbers: they are no probabilities.
    asked = [(path, body) for path, body in asked if "?" not in path]
    assert len(answers(served, asked)) == 3


def test_the_answer_of_a_classifier_is_the_probability_of_each_class(people: People, tmp_path: Path) -> None:
    registered(people, served_table(tmp_path, VISITS), task="multiclass", target="kind")
    meaning = "Each prediction has the probability of each class of kind, in this order: "
    page = page_of(people)
    assert f"{meaning}{', '.join(CLASSES)}." in page
    # Both forms of the answer.
    plain, labelled = [
        json.loads(text) for text in re.findall(r'tabindex="0">({"predictions[^<]*|{\s+"pred[^<]*)<', page)
    ]
    (row,) = labelled["predictions"]
    assert list(row["probabilities"]) == list(CLASSES)
    assert list(row["probabilities"].values()) == plain["predictions"][0]
    assert row["label"] == CLASSES[int(np.argmax(plain["predictions"][0]))]


def test_the_answer_of_a_binary_classifier_names_its_class(people: People, tmp_path: Path) -> None:
    served = served_table(tmp_path, VISITS, outputs=1)._replace(class_labels=("no", "yes"))
    registered(people, served, task="binary", target="churned")
    page = page_of(people)
    assert "the probability of the class yes of churned; no has 1 minus this number." in page
    assert ":classify" in page
    assert '{"predictions": [[0.8]]}' in page and '"label": "yes"' in page


def test_labels_that_apply_together_are_a_list(people: People, tmp_path: Path) -> None:
    registered(people, served_table(tmp_path, VISITS), task="multilabel", target="tags")
    page = page_of(people)
    assert f'"label": [\n        "{CLASSES[0]}",\n        "{CLASSES[-1]}"\n      ]' in page


def test_the_answer_of_a_regression_has_the_units_of_its_column(people: People, tmp_path: Path) -> None:
    registered(people, served_table(tmp_path, VISITS, outputs=1), task="regression", target="price")
    page = page_of(people)
    assert "Each prediction is a value of price, in the units of this column." in page
    assert "labels=1" not in page


def test_the_answer_of_an_uploaded_model_is_called_a_score(people: People, tmp_path: Path) -> None:
    registered(people, served_table(tmp_path, VISITS), task="multiclass", target="kind", what="uploaded")
    assert "the score of each class" in page_of(people)
