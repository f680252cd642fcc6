"""Draws a metric against the size or the latency of several models."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from webapp.report_figures.geometry import Frame, Tick, scale_of, unit_frame

WIDE = 10
"""A horizontal axis is logarithmic if its largest value is more than this multiple of the smallest one."""
TICKS = 4


class Point(NamedTuple):
    """A model: its number in the comparison, its cost, and the metric with its interval."""

    number: int
    title: str
    cost: float
    value: float
    low: float | None
    high: float | None


class Dot(NamedTuple):
    """A point as it is drawn; `high` and `low` are the ends of its interval, or None."""

    number: int
    title: str
    x: float
    y: float
    high: float | None
    low: float | None


class TradeOff(NamedTuple):
    """A chart of a metric against a cost."""

    frame: Frame
    dots: list[Dot]
    is_log: bool


def draw_trade_off(
    points: Sequence[Point], in_words: Callable[[float], str], in_digits: Callable[[float], str]
) -> TradeOff:
    """Return the chart of at least two points; `in_words` shows a cost, `in_digits` a metric."""
    costs = [point.cost for point in points]
    is_log = min(costs) > 0 and max(costs) / min(costs) > WIDE
    forward = math.log if is_log else float
    across = scale_of([forward(cost) for cost in costs])
    up = scale_of([value for point in points for value in (point.value, point.low, point.high)])
    empty = unit_frame(360, 260)
    shares = [at / (TICKS - 1) for at in range(TICKS)]
    back = math.exp if is_log else float
    frame = empty._replace(
        x_ticks=tuple(
            Tick(
                empty.x(0.08 + 0.84 * share),
                in_words(_at(across.low, across.high, 0.08 + 0.84 * share, back)),
            )
            for share in shares
        ),
        y_ticks=tuple(
            Tick(empty.y(share), in_digits(up.low + share * (up.high - up.low))) for share in shares
        ),
    )
    dots = [
        Dot(
            point.number,
            point.title,
            frame.x(across.at(forward(point.cost)) / 100),
            frame.y(up.at(point.value) / 100),
            None if point.high is None else frame.y(up.at(point.high) / 100),
            None if point.low is None else frame.y(up.at(point.low) / 100),
        )
        for point in points
    ]
    return TradeOff(frame, dots, is_log)


def _at(low: float, high: float, share: float, back: Callable[[float], float]) -> float:
    return back(low + share * (high - low))
