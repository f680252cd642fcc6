"""Trying a version on its page."""

from copy import deepcopy
from typing import Any

import pytest

from tests.module_rows import ModuleRows
from tests.people import browser_of
from tests.registry.conftest import Yard
from tests.registry.pages.test_pages import make_filled


@pytest.fixture(scope="module")
def module_yard(module_rows: ModuleRows, tmp_path_factory: pytest.TempPathFactory) -> Yard:
    folder = tmp_path_factory.mktemp("versions")
    return module_rows(lambda: make_filled(folder))


@pytest.fixture
def filled(module_yard: Yard, db: None) -> Yard:
    return deepcopy(module_yard)


def test_the_card_is_shown_as_text_never_as_markup(filled: Yard) -> None:
    browser = browser_of(filled.member)
    browser.post("/models/digits/versions/1/card", {"card": "<script>alert(1)</script>"})
    page = browser.get("/models/digits/versions/1?tab=card").content.decode()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page


def test_trying_shows_the_probabilities(filled: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []

    def predict(model: str, version: int, instances: list[Any]) -> list[list[float]]:
        calls.append((model, version, instances))
        return [[0.0] * 7 + [0.9, 0.1, 0.0]]

    monkeypatch.setattr("webapp.prediction.predict", predict)
    answer = browser_of(filled.viewer).post("/models/digits/versions/2/predict", {"instance": "[1, 2]"})
    assert calls == [("digits", 2, [[1, 2]])]
    assert "90.0 %" in answer.content.decode()


def test_trying_reports_an_unavailable_prediction_server(
    filled: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAINYARD_SERVING_URL", "http://127.0.0.1:9")
    answer = browser_of(filled.viewer).post("/models/digits/versions/2/predict", {"instance": "[1]"})
    assert "did not answer" in answer.content.decode()


def test_a_version_that_is_not_served_cannot_be_tried(filled: Yard) -> None:
    version = filled.version()
    path = f"/models/digits/versions/{version.number}/predict"
    assert browser_of(filled.viewer).post(path, {"instance": "[1]"}).status_code == 404
