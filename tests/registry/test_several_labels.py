"""The prediction form when a version's rows may have several labels."""

from types import SimpleNamespace
from typing import Any

import pytest
from django.template.loader import render_to_string

from jobs.queries.registry import versions
from webapp.pages.registry import tryout_answer
from webapp.template_context import template_variables


def answered(monkeypatch: pytest.MonkeyPatch, task: str, numbers: list[float]) -> str:
    monkeypatch.setattr(versions, "task_of", lambda version: task)
    version: Any = SimpleNamespace(class_labels=["big", "blue", "red"])
    answer = tryout_answer._with_output(tryout_answer.TryoutAnswer(""), numbers, version)
    markup = render_to_string("registry/answer.html", template_variables(answer))
    return markup.split('<p class="ty-answer">')[1].split("</p>")[0]


@pytest.mark.parametrize(
    ("task", "numbers", "best"),
    [
        ("multilabel", [0.9, 0.1, 0.6], "big, red"),
        ("multilabel", [0.5, 0.1, 0.2], "no label"),
        ("multiclass", [0.1, 0.4, 0.5], "red"),
    ],
)
def test_labels_above_a_half_are_the_answer_and_the_most_probable_class_is(
    monkeypatch: pytest.MonkeyPatch, task: str, numbers: list[float], best: str
) -> None:
    assert answered(monkeypatch, task, numbers) == best
