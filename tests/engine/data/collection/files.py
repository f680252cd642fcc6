"""Files: compression, workbooks, indices, titles above the header, encodings."""

from tests.engine.data.collection.case import TableCase

CASES: tuple[TableCase, ...] = ()
