"""Numbers with currencies, units, marks of thousands, and columns that are nearly numeric."""

from tests.engine.data.collection.case import TableCase

CASES: tuple[TableCase, ...] = ()
