"""Dates and times in the formats that programs and people write."""

from tests.engine.data.collection.case import TableCase

CASES: tuple[TableCase, ...] = ()
