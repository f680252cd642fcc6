"""The sentence that is shown before a report's figures."""

import pytest

from jobs.messages.reports.ensemble import EnsembleReport
from jobs.messages.reports.evaluation import Calibration, CalibrationBin
from jobs.messages.reports.quantization import Agreement
from jobs.messages.reports.verdicts import is_clearly_better, verdict
from tests.reports import ensemble_report, evaluation_report, quantization_report
from workers.engine.evaluation.members import ensemble_warnings


def test_a_quantization_names_size_agreement_speed_and_accuracy() -> None:
    assert verdict(quantization_report()) == (
        "int8 is 3.9× smaller, agrees on 99.4 % of 360 test rows, and is 1.4× slower on this CPU; "
        "test accuracy falls from 0.975 to 0.972, within its 95 % interval."
    )


def test_a_faster_model_on_another_device_names_the_device() -> None:
    report = quantization_report(p50=(0.5, 0.125), platform="gpu", hardware="NVIDIA X1, 1 of 8 threads")
    assert "and is 4× faster on NVIDIA X1; " in verdict(report)


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"accuracy": (0.9, 0.7)}, "test accuracy falls from 0.9 to 0.7, which is worse."),
        ({"accuracy": (0.9, 0.9)}, "test accuracy stays at 0.9."),
        ({"accuracy": (0.9, 0.95)}, "test accuracy rises from 0.9 to 0.95."),
        ({"file": (100, 300)}, "int8 is 3× larger, "),
        ({"file": (31894, 32140)}, "int8 is as large as the original, "),
        ({"file": (32140, 31894)}, "int8 is as large as the original, "),
        ({"p50": (0.2, 0.205)}, "and is as fast on this CPU;"),
        ({"agreement": Agreement(share=0.9999)}, "agrees on 99.9 % of"),
        ({"agreement": Agreement(share=1.0)}, "agrees on 100 % of"),
        ({"agreement": Agreement(mean_difference=0.012)}, "differs by 0.012 standard deviations"),
        ({"latency": {}}, "int8 is 3.9× smaller and agrees on"),
    ],
)
def test_each_part_of_a_quantization_follows_its_figures(changes: dict[str, object], part: str) -> None:
    assert part in verdict(quantization_report(**changes))  # type: ignore[arg-type]


def test_bins_without_rows_have_no_bias() -> None:
    empty = CalibrationBin(low=0.0, high=1.0, rows=0, confidence=0.5, accuracy=0.25)
    assert Calibration(ece=0.25, bins=(empty,)).bias is None
    assert Calibration(ece=0.25, bins=(empty.model_copy(update={"rows": 4}),)).bias == 0.25


def test_an_ensemble_of_independent_members_beats_its_best_member() -> None:
    sentence = verdict(ensemble_report((2.0, 2.0, 2.0)))
    assert sentence.startswith("The ensemble of 3 members beats its best member, Retrain trial ")
    assert "log loss 0." in sentence
    assert (
        "on 240 validation rows, each scored with weights fitted on other rows (95 % interval of the gain 0."
        in sentence
    )


def test_an_ensemble_with_equal_weights_has_no_rows_left_out() -> None:
    sentence = verdict(ensemble_report((2.0, 2.0, 2.0), method="mean"))
    assert "on 240 validation rows (95 % interval of the gain 0." in sentence


def test_a_lead_that_may_be_luck_is_called_so() -> None:
    report = ensemble_report((2.0, 2.0))
    gain = report.fit.gain
    assert gain is not None
    unsure = gain.model_copy(update={"low": -0.01, "high": 0.02})
    sentence = verdict(report.model_copy(update={"fit": report.fit.model_copy(update={"gain": unsure})}))
    assert "is not clearly better than its best member" in sentence
    assert "may be luck (95 % interval of the gain -0.01 to 0.02); accuracy is" in sentence


@pytest.mark.parametrize(
    ("accuracy", "is_better", "part"),
    [
        (0.8, True, "beats its best member, Retrain trial 1: log loss"),
        (0.8, True, "; accuracy is equal, 0.8."),
        (0.9, True, "; accuracy is better, 0.9 against 0.8."),
        (0.7, False, "is not clearly better than its best member"),
        (0.7, False, "; accuracy is worse, 0.7 against 0.8."),
    ],
)
def test_one_judgement_follows_the_loss_and_the_accuracy(accuracy: float, is_better: bool, part: str) -> None:
    report = ensemble_report((2.0, 2.0, 2.0))
    values = {"ensemble": accuracy, report.best_single: 0.8}
    candidates = tuple(
        candidate.model_copy(
            update={
                "metrics": candidate.metrics
                | {
                    "accuracy": candidate.metrics["accuracy"].model_copy(
                        update={"value": values[candidate.name]}
                    )
                }
            }
        )
        if candidate.name in values
        else candidate
        for candidate in report.candidates
    )
    changed = report.model_copy(update={"candidates": candidates})
    assert is_clearly_better(changed) is is_better
    assert part.replace("Retrain trial 1", report.title(report.best_single)) in verdict(changed)
    warned = {code for code, _ in ensemble_warnings(changed, ())}
    assert ("ensemble_not_better" in warned) is not is_better


def test_an_ensemble_whose_weights_leave_one_member_is_no_ensemble() -> None:
    report = ensemble_report((1.0, 2.0))
    first, second = report.weights
    alone = (first.model_copy(update={"weight": 1.0}), second.model_copy(update={"weight": 0.0}))
    assert "is one member alone" in verdict(report.model_copy(update={"weights": alone}))


def test_a_report_of_an_earlier_release_has_a_verdict_too() -> None:
    body = ensemble_report((2.0, 2.0)).model_dump(mode="json")
    del body["members"]
    del body["fit"]["gain"]
    sentence = verdict(EnsembleReport.model_validate(body))
    assert sentence.startswith("The ensemble of 2 members is better than its best member, m")


@pytest.mark.parametrize(
    ("task", "parts"),
    [
        (
            "binary",
            ["Right on ", " of 240 test rows (95 % interval ", "confidence is off by", "ROC curve 0."],
        ),
        ("multiclass", ["Right on ", "confidence is off by"]),
        ("multilabel", ["of the labels, and on all labels of "]),
        ("regression", ["Off by ", "where always predicting the mean is off by ", "of the variance."]),
    ],
)
def test_an_evaluation_says_how_often_it_is_right_or_how_far_off(task: str, parts: list[str]) -> None:
    sentence = verdict(evaluation_report(task))
    assert [part for part in parts if part not in sentence] == []


def test_a_finding_on_weighted_rows_names_their_column() -> None:
    for report in (evaluation_report(), quantization_report(), ensemble_report()):
        assert verdict(report.model_copy(update={"weighted_by": "w"})) == f"{verdict(report)} Weighted by w."


def test_rows_without_a_finite_prediction_are_named() -> None:
    report = evaluation_report().model_copy(update={"nonfinite_rows": 2})
    assert verdict(report).endswith(" 2 rows got no finite prediction.")
