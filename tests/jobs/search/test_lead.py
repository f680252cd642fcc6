"""Whether the best configuration's lead exceeds the spread between repeated trainings."""

import numpy as np
import pytest
from scipy.stats import ttest_ind

from jobs.queries.search.lead import lead_of_folds, lead_of_samples

BEST, NEXT = [0.95, 0.97, 0.96], [0.90, 0.91, 0.92]


def test_the_interval_is_welchs() -> None:
    lead = lead_of_samples(BEST, [*NEXT, 0.93], maximize=True)
    interval = ttest_ind(BEST, [*NEXT, 0.93], equal_var=False).confidence_interval()
    assert (lead.low, lead.high) == pytest.approx((interval.low, interval.high))
    assert (lead.verdict, lead.method, lead.trainings) == ("clear", "welch", (3, 4))


def test_a_lower_score_leads_if_lower_is_better() -> None:
    lead = lead_of_samples([0.1, 0.11], [0.5, 0.52], maximize=False)
    assert lead.value == pytest.approx(0.405)
    assert lead.verdict == "clear"


def test_a_small_lead_is_unclear_and_says_how_many_trainings_would_settle_it() -> None:
    lead = lead_of_samples([0.95, 0.97], [0.94, 0.96], maximize=True)
    assert lead.low is not None and lead.low < 0 < lead.value
    assert (lead.verdict, lead.needed is not None and lead.needed > 2) == ("unclear", True)
    assert lead_of_samples([0.95001, 0.97], [0.95, 0.97], maximize=True).needed is None, (
        "more than is allowed"
    )


@pytest.mark.parametrize(("best", "other"), [([0.9], [0.8]), ([0.9, 0.91], [0.8]), ([0.9, 0.9], [0.8, 0.8])])
def test_without_a_known_spread_nothing_is_claimed(best: list[float], other: list[float]) -> None:
    lead = lead_of_samples(best, other, maximize=True)
    assert (lead.verdict, lead.low, lead.high, lead.needed) == ("unknown", None, None, None)
    assert lead.value > 0


def test_the_interval_of_folds_is_paired_and_wider_than_for_independent_differences() -> None:
    best = {(1, fold): 0.9 + fold / 100 for fold in range(1, 6)}
    other = {(1, fold): 0.87 + fold / 100 + (fold % 2) / 1000 for fold in range(1, 6)}
    lead = lead_of_folds(best, other, folds=5, maximize=True)
    differences = [best[fold] - other[fold] for fold in best]
    plain = np.std(differences, ddof=1) / np.sqrt(5) * 2.7764451
    assert lead.high is not None
    # Nadeau and Bengio: 1/5 + 1/4 in place of 1/5.
    assert lead.high - lead.value == pytest.approx(plain * np.sqrt((1 / 5 + 1 / 4) / (1 / 5)))
    assert (lead.verdict, lead.method) == ("clear", "paired_folds")


def test_configurations_without_a_common_fold_are_not_compared() -> None:
    with pytest.raises(ValueError, match="different folds"):
        lead_of_folds({(1, 1): 0.9}, {(1, 2): 0.8}, folds=2, maximize=True)


@pytest.mark.parametrize("trainings", [2, 3, 5])
def test_the_interval_covers_the_true_difference_as_often_as_it_claims(trainings: int) -> None:
    rng = np.random.default_rng(trainings)
    leads = [
        lead_of_samples(list(rng.normal(0, 1, trainings)), list(rng.normal(0, 1, trainings)), maximize=True)
        for _ in range(300)
    ]
    covered = sum(
        lead.low <= 0 <= lead.high for lead in leads if lead.low is not None and lead.high is not None
    )
    assert covered / len(leads) >= 0.93, "a bootstrap of 2, 3 or 5 trainings covers 69, 78 and 88 of 100"


def test_the_best_of_many_equal_configurations_is_rarely_called_clear() -> None:
    rng = np.random.default_rng(0)
    wrong = 0
    for _ in range(200):
        runs = rng.normal(0, 1, (20, 3))
        second, first = np.argsort(runs.mean(axis=1))[-2:]
        wrong += lead_of_samples(list(runs[first]), list(runs[second]), maximize=True).verdict == "clear"
    assert wrong / 200 <= 0.05
