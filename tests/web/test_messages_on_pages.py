"""Messages on pages: the names of fields are their labels, and codes and REST's names are left out."""

import pytest
from django.template import Context, Template

from jobs.spec.problems import Problem
from webapp.templatetags.problem_labels import label_of
from webapp.templatetags.words import sentence, shown_message


@pytest.mark.parametrize(
    ("pointer", "label"),
    [
        ("/file", "File"),
        ("/max_bad_share", "Damaged rows"),
        ("/spec/after/retrain/epochs_factor", "Retrain the best, factor"),
        ("/spec/after/retrain/patience", "Retrain the best, patience"),
        ("/spec/search/space/2/min", "Search, space, row 3, min"),
        ("/spec/model/args/learning_rate", "Model, args, learning_rate"),
        ("/columns/unit~1price/type", "Columns, unit/price, type"),
    ],
)
def test_a_problem_has_the_label_of_its_field(pointer: str, label: str) -> None:
    assert label_of(pointer) == label


def test_the_summary_links_a_label_to_its_field() -> None:
    wrong = [Problem("/file", "'empty.csv' is empty"), Problem("", "it is not possible")]
    page = Template("{% problems wrong %}").render(Context({"wrong": wrong}))
    assert '<a href="#at/file">File</a>: &#x27;empty.csv&#x27; is empty' in page
    assert "/file:" not in page


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("train.py reported no metrics.", "train.py reported no metrics."),
        ("val_loss is infinite", "val_loss is infinite"),
        ("src/train reported", "src/train reported"),
        ("the script train.py ended", "The script train.py ended"),
        ("leave these rows out (rows_without_target = leave_out), or", "Leave these rows out, or"),
        ("use another seed (fit.seed), or", "Use another seed, or"),
        ("it ended (see train.py)", "It ended (see train.py)"),
    ],
)
def test_a_message_keeps_names_and_leaves_out_those_of_rest(message: str, shown: str) -> None:
    assert shown_message(message) == shown
    assert "leave_out" not in sentence(message)
