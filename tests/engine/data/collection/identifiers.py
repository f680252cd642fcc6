"""Identifiers: columns whose values name their row."""

from tests.engine.data.collection.case import TableCase

CASES: tuple[TableCase, ...] = ()
