"""States that a value of a test is there, for values that may be None elsewhere."""


def present[T](value: T | None) -> T:
    """Return a value that must not be None."""
    assert value is not None
    return value
