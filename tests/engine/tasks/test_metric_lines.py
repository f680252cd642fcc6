"""Which lines of a script are metrics."""

import pytest

from workers.engine.scripts.metric_lines import MetricLine, MetricLines, NotUnderstood


@pytest.mark.parametrize(
    ("line", "step", "metrics"),
    [
        ('{"step": 2, "metrics": {"val_loss": 0.5}}', 2, {"val_loss": 0.5}),
        ('{"epoch": 0, "val_loss": 0.5}', 0, {"val_loss": 0.5}),
        ('{"val_loss": 0.5, "loss": 1, "epoch": 7}', 7, {"val_loss": 0.5, "loss": 1.0}),
        ('{"step": 300, "epoch": 1, "loss": 0.25}', 300, {"loss": 0.25}),
        ('  {"epoch": 3.0, "loss": 0.25}  ', 3, {"loss": 0.25}),
    ],
)
def test_a_line_of_numbers_with_a_step_or_an_epoch_is_metrics(
    line: str, step: int, metrics: dict[str, float]
) -> None:
    assert MetricLines().read(line.encode()) == MetricLine(step, metrics)


@pytest.mark.parametrize(
    "line",
    [
        "epoch 0 val_loss 0.5",
        '{"epoch": 0}',
        '{"val_loss": 0.5}',
        '{"epoch": 0, "message": "reading the data"}',
        '{"epoch": 0, "val_loss": 0.5, "optimizer": "adam"}',
        '{"epoch": 0, "done": true}',
        '{"epoch": 0, "history": [0.5]}',
        '[{"epoch": 0, "val_loss": 0.5}]',
    ],
)
def test_other_lines_are_the_log(line: str) -> None:
    assert MetricLines().read(line.encode()) is None


def test_an_epoch_that_is_no_whole_number_is_refused_with_its_value() -> None:
    with pytest.raises(NotUnderstood, match=r"step must be a whole number from 0, not '0.5'"):
        MetricLines().read(b'{"epoch": 0.5, "val_loss": 0.5}')


def test_a_missing_value_is_a_gap() -> None:
    line = MetricLines().read(b'{"epoch": 1, "val_loss": null}')
    assert line is not None and line.metrics["val_loss"] != line.metrics["val_loss"]
