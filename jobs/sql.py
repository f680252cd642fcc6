"""Builds conditions for the few statements that are written in SQL."""


def one_of(column: str, count: int) -> str:
    """Return the condition that a column has one of `count` values.

    Raises:
        ValueError: there are none; SQL has no empty lists.
    """
    if count < 1:
        raise ValueError(f"{column} is compared with no values")
    return f"{column} IN ({', '.join(['%s'] * count)})"
