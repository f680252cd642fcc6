"""Chooses the order of day, month and year in which a column's dates are written, by all of its dates."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from workers.engine.arrays import Array


class Order:
    """A format of a family, with the moments that it gives to the column's texts.

    Attributes:
        form: the format.
        moments: (texts,), NaT for those that it does not fit.
        rows: how many rows it fits.
    """

    def __init__(self, form: str, moments: Array, counts: Array) -> None:
        self.form, self.moments = form, moments
        self.rows = int(counts[~np.isnat(moments)].sum())


Evidence = Literal["steps", "order", "days"]


@dataclass(frozen=True)
class Choice:
    """The chosen order, and which others remain possible.

    Attributes:
        order: the chosen one.
        others: formats that fit as many rows, and give other dates.
        evidence: what has chosen, if no date is impossible: the steps between the dates, their order, or
            which of the others have unlikely days.
        rival: a format that fits rows which the chosen one does not, and how many.
        doubt: another meaning of the texts; see `families.Family`.
    """

    order: Order
    others: tuple[str, ...] = ()
    evidence: Evidence | None = None
    rival: tuple[str, int] | None = None
    doubt: str = ""


EVEN_SHARE, EVEN_LEAD = 0.6, 0.2
"""Steps choose an order if this share of them is equal, and exceeds the share of the other order so much."""
SETTLED_SHARE, ERROR_SHARE, MOST_ERRORS = 0.8, 0.03, 3
"""A standard order is chosen unless another one fits more rows, and these are no typing errors."""
MIN_STEPS = 2
MIN_FIRST_DAYS = 4
"""So many dates are the first of a month by chance seldom."""
MIN_EVEN = 10
"""Fewer numbers may look like dates in even steps by chance."""
MIN_RISING = 6
"""Fewer dates may rise by chance."""
MIN_CERTAIN = 12
"""More dates than this in the order of the rows leave no doubt."""
NEAR_SHARE = 0.95
"""An order with the year elsewhere is considered if it fits so many rows; the others may be typing errors."""
LATE_SHARE = 0.02
"""An order is unlikely if more of its dates are after today, and those of another one are not."""
FEW_DAYS, EARLY_DAY, LATE_DAY = 20, 3, 28
"""Days of the month from 3 to 28 at least are all of them; an unlikely order has days of a shorter range."""
MIN_LIKELY, MOST_DOUBTS = 20, 2
"""More days than this in an order leave no doubt about another one that both reasons make unlikely."""
UNUSUAL = "%m.%d.%y"
"""An order that is chosen if it must be, and otherwise not worth a question."""


def choose_order(orders: Sequence[Order], counts: Array, *, is_settled: bool) -> Choice:
    """Return the order in which a column's dates are written.

    Impossible dates decide first; then whether the dates rise from row to row in one order alone; then, if
    years may be days, whether dates after today or few days of the month make an order unlikely; then even
    steps between them.

    Args:
        orders: at least one, the most usual first.
        counts: how many rows have each text.
        is_settled: whether the first order is meant if no date is impossible.
    """
    most = max(order.rows for order in orders)
    errors = max(MOST_ERRORS, ERROR_SHARE * most)
    if is_settled and orders[0].rows >= max(SETTLED_SHARE * most, most - errors):
        return Choice(orders[0], rival=_rival(orders[0], orders, counts))
    fitting = [order for order in orders if order.rows == most]
    fitting += [order for order in orders if _may_be_meant(order, fitting[0])]
    if all(_are_equal(order, fitting[0]) for order in fitting):
        return Choice(fitting[0], rival=_rival(fitting[0], orders, counts))
    best, evidence = _by_evidence(fitting)
    rival = _rival(best, orders, counts)
    is_certain = evidence == "order" and len(counts) > MIN_CERTAIN
    if is_certain or (evidence == "days" and _are_unlikely(fitting, best)):
        return Choice(best, evidence=evidence, rival=rival)
    others = (order for order in fitting if order is not best and not order.form.endswith(UNUSUAL))
    return Choice(best, tuple(other.form for other in others if differ(best, other).any()), evidence, rival)


def _may_be_meant(order: Order, best: Order) -> bool:
    """Return whether an order fits nearly all rows and has the year elsewhere: 21 may be a year or a day."""
    is_near = NEAR_SHARE * best.rows <= order.rows < best.rows
    return is_near and _is_year_first(order) != _is_year_first(best)


def _by_evidence(fitting: Sequence[Order]) -> tuple[Order, Evidence | None]:
    """Return the order that fits best, and by what; the first one if nothing decides."""
    rising = [order for order in fitting if _rises(order.moments)]
    if len(rising) == 1:
        return rising[0], "order"
    likely = likely_orders(fitting)
    if len(likely) == 1:
        return likely[0], "days"
    steps = [(order, *_evenness(order.moments)) for order in likely]
    # A year of months looks like days in January too, but days seldom stop before the 13th.
    monthly = [order for order, share, is_monthly in steps if is_monthly and share >= EVEN_SHARE]
    if monthly:
        return monthly[0], "steps"
    (best, share, _), (_, second_share, _) = sorted(steps, key=lambda step: -step[1])[:2]
    if share >= EVEN_SHARE and share - second_share >= EVEN_LEAD:
        return best, "steps"
    return likely[0], None


def differ(one: Order, other: Order) -> Array:
    """Return which texts have a date in both orders, and not the same one, (texts,)."""
    return ~np.isnat(one.moments) & ~np.isnat(other.moments) & (one.moments != other.moments)


def _are_equal(one: Order, other: Order) -> bool:
    return np.array_equal(one.moments, other.moments, equal_nan=True)


def _rival(chosen: Order, orders: Sequence[Order], counts: Array) -> tuple[str, int] | None:
    misfits = np.isnat(chosen.moments)
    rows = [(int(counts[misfits & ~np.isnat(order.moments)].sum()), order.form) for order in orders]
    most, form = max(rows)
    return (form, most) if most else None


def likely_orders(orders: Sequence[Order]) -> list[Order]:
    """Return the orders whose dates are the least unlikely.

    Of two orders with the year in different places, one is unlikely if it alone has dates after today, or if
    it has few days of the month, which are years, and the other one has all of them.
    """
    doubts = [_count_doubts(order, orders) for order in orders]
    return [order for order, count in zip(orders, doubts, strict=True) if count == min(doubts)]


def _are_unlikely(orders: Sequence[Order], best: Order) -> bool:
    """Return whether all other orders are so unlikely that they are not worth a question."""
    days = np.unique(best.moments[~np.isnat(best.moments)].astype("datetime64[D]"))
    others = [order for order in orders if order is not best]
    return len(days) >= MIN_LIKELY and all(_count_doubts(order, [best]) == MOST_DOUBTS for order in others)


def _count_doubts(order: Order, orders: Sequence[Order]) -> int:
    others = [other for other in orders if _is_year_first(other) != _is_year_first(order)]
    is_late = _late_share(order) >= LATE_SHARE and any(_late_share(other) < LATE_SHARE for other in others)
    first, last = _ends_of_days(order)
    has_few_days = last - first <= FEW_DAYS and any(
        start <= EARLY_DAY and end >= LATE_DAY for start, end in map(_ends_of_days, others)
    )
    return is_late + has_few_days


def _is_year_first(order: Order) -> bool:
    return order.form.lower().find("%y") < order.form.find("%d")


def _late_share(order: Order) -> float:
    """Return which share of the dates is after today."""
    dates = order.moments[~np.isnat(order.moments)]
    return float((dates > np.datetime64("now") + np.timedelta64(1, "D")).mean()) if len(dates) else 0.0


def _ends_of_days(order: Order) -> tuple[int, int]:
    """Return the first and the last day of the month that dates have."""
    days = order.moments[~np.isnat(order.moments)].astype("datetime64[D]")
    places = (days - days.astype("datetime64[M]").astype("datetime64[D]")).astype(np.int64) + 1
    return int(places.min(initial=LATE_DAY)), int(places.max(initial=0))


def _evenness(moments: Array) -> tuple[float, bool]:
    """Return which share of the steps between dates is the usual one, and whether these are months.

    If all are the first day of a month, all steps count as equal.
    """
    days = np.unique(moments[~np.isnat(moments)].astype("datetime64[D]"))
    if len(days) <= MIN_STEPS:
        return 0.0, False
    months = days.astype("datetime64[M]")
    places = (days - months.astype("datetime64[D]")).astype(np.int64)
    if len(days) >= MIN_FIRST_DAYS and (places == 0).all():
        return 1.0, True
    is_monthly = bool((places == places[0]).all())
    steps = np.diff(months if is_monthly else days).astype(np.int64)
    different, counts = np.unique(steps, return_counts=True)
    # Days of a month look like one day in each year if they are taken for years.
    is_yearly = different[counts.argmax()] % 12 == 0
    return float(counts.max() / len(steps)), is_monthly and not is_yearly


def is_even(moments: Array) -> bool:
    """Return whether dates follow each other in even steps, over the end of a month at least."""
    days = np.unique(moments.astype("datetime64[D]"))
    if len(days) < MIN_EVEN or days[0].astype("datetime64[M]") == days[-1].astype("datetime64[M]"):
        return False
    return _evenness(days)[0] >= EVEN_SHARE


def _rises(moments: Array) -> bool:
    """Return whether the dates rise or fall from text to text, which are in the order of their first rows."""
    dates = moments[~np.isnat(moments)].astype(np.int64)
    steps = np.diff(dates)
    return len(dates) >= MIN_RISING and bool((steps >= 0).all() or (steps <= 0).all())
