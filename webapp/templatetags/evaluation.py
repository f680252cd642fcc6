"""Template tags of evaluation reports: metrics with intervals, confusion matrix, residuals."""

from typing import Any

from django import template

register = template.Library()

SHADES = 9
WIDTH, HEIGHT = 480, 160


@register.filter
def plain(value: Any, missing: str = "–") -> str:
    """Format a hyperparameter's value: floats with four significant digits, other values unchanged."""
    if value is None:
        return missing
    return f"{value:.4g}" if isinstance(value, float) else str(value)


@register.inclusion_tag("components/evaluation.html")
def evaluation(report: dict[str, Any]) -> dict[str, Any]:
    """Show a report of `workers.engine.evaluation.evaluate` (as JSON)."""
    return {
        "report": report,
        "metrics": [{"name": name, **values} for name, values in report.get("metrics", {}).items()],
        "matrix": _matrix(report),
        "outputs": [_residuals(output) for output in report.get("outputs", [])],
    }


def _matrix(report: dict[str, Any]) -> dict[str, Any] | None:
    confusion = report.get("confusion")
    if not confusion or not isinstance(confusion[0], list) or isinstance(confusion[0][0], list):
        return None
    labels = report.get("class_labels") or [str(n) for n in range(len(confusion))]
    rows = []
    for label, counts in zip(labels, confusion, strict=False):
        total = sum(counts) or 1
        cells = [
            {"count": c, "shade": round(SHADES * c / total), "right": labels[i] == label}
            for i, c in enumerate(counts)
        ]
        rows.append({"label": label, "cells": cells, "total": sum(counts)})
    return {"labels": labels, "rows": rows}


def _residuals(output: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": output.get("name", ""),
        "facts": output.get("residuals", {}),
        "bars": _bars(output.get("histogram", {})),
        "dots": _dots(output.get("pairs", [])),
        "width": WIDTH,
        "height": HEIGHT,
    }


def _bars(histogram: dict[str, Any]) -> list[dict[str, Any]]:
    counts, edges = histogram.get("counts", []), histogram.get("edges", [])
    if not counts:
        return []
    top, width = max(counts) or 1, WIDTH / len(counts)
    return [
        {
            "x": round(i * width + 1, 1),
            "y": round(HEIGHT * (1 - count / top), 1),
            "w": round(width - 2, 1),
            "h": round(HEIGHT * count / top, 1),
            "title": f"{edges[i]:.3g} to {edges[i + 1]:.3g}: {count}",
        }
        for i, count in enumerate(counts)
    ]


def _dots(pairs: list[list[float]]) -> list[dict[str, float]]:
    if not pairs:
        return []
    values = [value for pair in pairs for value in pair]
    low, span = min(values), (max(values) - min(values)) or 1.0
    return [
        {"x": round(HEIGHT * (y - low) / span, 1), "y": round(HEIGHT * (1 - (p - low) / span), 1)}
        for y, p in pairs[:500]
    ]
