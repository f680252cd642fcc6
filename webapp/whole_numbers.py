"""Reads whole numbers from addresses and hidden fields, whose values a person may have changed."""


def read_whole(text: str, digits: int = 9) -> int | None:
    """Return the number in a text; None if it is none, or has more digits.

    Digits of other scripts are none here, and Python refuses numbers of thousands of digits.
    """
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= digits else None


def number_or_text(text: str) -> int | str:
    """Return the number in a text, or the text if it is none, for an error that shows it."""
    number = read_whole(text)
    return text if number is None else number
