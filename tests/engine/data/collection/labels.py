"""Labels of classes that differ in their writing only."""

from tests.engine.data.collection.case import TableCase

CASES: tuple[TableCase, ...] = ()
