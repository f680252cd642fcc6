"""Reads and writes the rows of one table, and computes a checksum of them."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import batched
from typing import Any

import psycopg
from django.apps import apps
from django.db import DatabaseError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.recorder import MigrationRecorder
from django.db.models import AutoField, Field, Model

from webapp.ops.errors import OpsError
from webapp.ops.moves.values import Kind, applied, kind_of

CHUNK = 1000
"""Rows in memory at a time."""

type Row = tuple[Any, ...]


class Checksum:
    """The number of rows and a sum of their digests, so that their order does not matter."""

    def __init__(self) -> None:
        self.rows, self._sum = 0, 0

    def add(self, comparable: Row) -> None:
        """Add a row."""
        self.rows += 1
        self._sum += int.from_bytes(hashlib.sha256(repr(comparable).encode("utf-8", "replace")).digest())

    @property
    def text(self) -> str:
        """The sum, in hexadecimal digits."""
        return f"{self._sum % 2**256:064x}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Checksum) and (self.rows, self.text) == (other.rows, other.text)

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True)
class Table:
    """A table with its columns.

    Attributes:
        serial: the column that the database numbers; None if it numbers none.
    """

    name: str
    columns: tuple[str, ...]
    kinds: tuple[Kind, ...]
    serial: str | None

    def count(self, connection: BaseDatabaseWrapper) -> int:
        """Return the number of rows."""
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT count(*) FROM {connection.ops.quote_name(self.name)}")  # noqa: S608
            return int(cursor.fetchone()[0])

    def rows(self, connection: BaseDatabaseWrapper) -> Iterator[Row]:
        """Yield all rows, in any order; the memory has some of them at a time."""
        quote = connection.ops.quote_name
        columns = ", ".join(map(quote, self.columns))
        with connection.chunked_cursor() as cursor:
            cursor.execute(f"SELECT {columns} FROM {quote(self.name)}")  # noqa: S608  names of models
            while rows := cursor.fetchmany(CHUNK):
                for row in rows:
                    yield tuple(
                        applied(kind.read, value) for kind, value in zip(self.kinds, row, strict=True)
                    )

    def comparable(self, row: Row) -> Row:
        """Return a row as it is in both kinds of database."""
        return tuple(applied(kind.comparable, value) for kind, value in zip(self.kinds, row, strict=True))

    def write(self, connection: BaseDatabaseWrapper, rows: Iterable[Row]) -> None:
        """Write rows to the empty table.

        Raises:
            OpsError: a row does not fit; the message names it.
        """
        last: list[Row] = []
        try:
            if connection.vendor == "postgresql":
                self._copy(connection, rows, last)
            else:
                self._insert(connection, rows, last)
        except (psycopg.Error, DatabaseError, UnicodeError) as error:
            near = f", at or before the row with {self.columns[0]} {last[-1][0]}" if last else ""
            raise OpsError(f"{self.name} cannot be moved{near}: {str(error).strip()}") from error

    def _copy(self, connection: BaseDatabaseWrapper, rows: Iterable[Row], last: list[Row]) -> None:
        quote = connection.ops.quote_name
        columns = ", ".join(map(quote, self.columns))
        with (
            connection.cursor() as cursor,
            cursor.copy(f"COPY {quote(self.name)} ({columns}) FROM STDIN") as copy,
        ):
            for row in rows:
                last[:] = [row]
                copy.write_row(row)

    def _insert(self, connection: BaseDatabaseWrapper, rows: Iterable[Row], last: list[Row]) -> None:
        quote = connection.ops.quote_name
        columns, places = ", ".join(map(quote, self.columns)), ", ".join(["%s"] * len(self.columns))
        statement = f"INSERT INTO {quote(self.name)} ({columns}) VALUES ({places})"  # noqa: S608
        with connection.cursor() as cursor:
            for batch in batched(rows, CHUNK):
                last[:] = batch[-1:]
                cursor.executemany(statement, [self._for_sqlite(row) for row in batch])

    def _for_sqlite(self, row: Row) -> Sequence[Any]:
        return [applied(kind.to_sqlite, value) for kind, value in zip(self.kinds, row, strict=True)]


def all_models() -> list[type[Model]]:
    """Return the models of all tables, with those of relations and of the applied migrations."""
    return [MigrationRecorder.Migration, *apps.get_models(include_auto_created=True)]


def all_tables() -> list[Table]:
    """Return all tables of the program."""
    tables = {}
    for model in all_models():
        fields: list[Field[Any, Any]] = list(model._meta.concrete_fields)
        serial = next((field.column for field in fields if isinstance(field, AutoField)), None)
        name = model._meta.db_table
        kinds = tuple(map(kind_of, fields))
        columns = tuple(str(field.column) for field in fields)
        tables[name] = Table(name, columns, kinds, serial)
    return list(tables.values())
