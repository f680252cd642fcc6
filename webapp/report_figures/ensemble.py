"""Prepares the report of an ensemble: its members, what each adds, and how different they are."""

from typing import Any

from jobs.messages.reports.ensemble import Candidate, EnsembleReport, MemberPair
from jobs.spec.sections.measures import primary_metric
from webapp.report_figures import geometry
from webapp.report_figures.geometry import SHADES
from webapp.report_figures.intervals import methods_of


def context(report: EnsembleReport) -> dict[str, Any]:
    """Return the context of `components/reports/ensemble_report.html`."""
    metric, _ = primary_metric(report.task)
    names = [each.member for each in sorted(report.weights, key=lambda each: -each.weight)]
    weights = {each.member: each.weight for each in report.weights}
    gains = {each.member: each.gain for each in report.leave_one_out}
    bounds = [
        value
        for each in report.candidates
        for value in (each.metrics[metric].value, each.metrics[metric].low, each.metrics[metric].high)
    ]
    scale = geometry.scale_of(bounds)
    gain_bars = dict(zip(names, geometry.shares(names, gains.get), strict=True))
    return {
        "metric": metric,
        "scale": scale,
        "is_regression": report.task == "regression",
        "is_fitted": report.method == "weighted",
        "is_alone": sum(weight > 0 for weight in weights.values()) == 1,
        "harms": any((gain or 0.0) < 0 for gain in gains.values()),
        "intervals": methods_of(each.metrics[metric] for each in report.candidates),
        "rows": [
            {
                "candidate": each,
                "title": _title_of(each, report),
                "value": each.metrics[metric],
                "span": scale.span(
                    each.metrics[metric].value, each.metrics[metric].low, each.metrics[metric].high
                ),
                "weight": weights.get(each.name),
                "weight_bar": round(100 * weights.get(each.name, 0.0), 1),
                "gain": gains.get(each.name),
                "gain_bar": gain_bars.get(each.name, 0.0),
                "gain_css": "ty-harm" if (gains.get(each.name) or 0.0) < 0 else "",
                "is_ensemble": each.name == "ensemble",
                "is_best": each.name == report.best_single,
            }
            for each in sorted(report.candidates, key=lambda each: -weights.get(each.name, -1.0))
        ],
        "matrix": _diversity_matrix(report, names),
        "pairs": [(report.title(pair.a), report.title(pair.b), pair) for pair in report.diversity.pairs],
    }


def _title_of(candidate: Candidate, report: EnsembleReport) -> str:
    titles = {"mean": "Plain mean of all members", "ensemble": "Ensemble"}
    return titles.get(candidate.kind) or report.title(candidate.name)


def _diversity_matrix(report: EnsembleReport, names: list[str]) -> list[dict[str, Any]]:
    """Return a row for each member with its difference to each other member; none if there are many."""
    pairs: dict[frozenset[str], MemberPair] = {frozenset((p.a, p.b)): p for p in report.diversity.pairs}
    top = max((pair.disagreement or 0.0 for pair in pairs.values()), default=0.0) or 1.0

    def cell(a: str, b: str) -> dict[str, Any]:
        value = pairs[frozenset((a, b))].disagreement if a != b else None
        return {"same": a == b, "value": value, "shade": round(SHADES * (value or 0.0) / top)}

    return [
        {"number": number, "name": a, "title": report.title(a), "cells": [cell(a, b) for b in names]}
        for number, a in enumerate(names, start=1)
    ]
