"""Keeps the SQL for the queries in every request and heartbeat: building it takes longer than running it.

These read the session, the user, the user's roles, a request's token, and a worker's new attempts.
All other queries are ordinary ones, since this module needs private parts of Django.

The SQL depends on the database's vendor and on nothing that changes while a process runs, so each process
compiles it once for the default database. No rows are kept: every call reads the database.
"""

import copy
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.db.models import Expression, Field, Model, QuerySet
from django.db.models.sql.compiler import SQLCompiler


class Parameter(Expression):
    """A placeholder for a value that each call of a prepared query passes; it is never NULL."""

    def __init__(self, name: str, output_field: "Field[Any, Any]") -> None:
        super().__init__(output_field=output_field)
        self.name = name

    def as_sql(self, compiler: SQLCompiler, connection: Any) -> tuple[str, tuple[Any, ...]]:  # noqa: ARG002
        """Return a placeholder with this object as its value, which `PreparedQuery` replaces."""
        return "%s", (self,)


class _Compiled[M: Model, Row](NamedTuple):
    """A query and its SQL."""

    queryset: QuerySet[M, Row]
    compiler: SQLCompiler
    sql: str
    parameters: tuple[Any, ...]


class PreparedQuery[M: Model, Row]:
    """A query whose SQL is compiled at its first use.

    Args:
        build: returns the queryset, with a `Parameter` for each value that differs between calls. A condition
            on other values, such as the states of a job, is compiled into the SQL.
    """

    def __init__(self, build: Callable[[], QuerySet[M, Row]]) -> None:
        self._build = build
        self._compiled: dict[str, _Compiled[M, Row]] = {}

    def rows(self, **values: object) -> list[Row]:
        """Run the query with a value for each of its parameters.

        Raises:
            TypeError: a parameter has no value or None, a value has no parameter, or the query has a prefetch
                or a database of its own, which would be ignored, or locks rows.
        """
        queryset, compiler, sql, parameters = self._get()
        current = connections[DEFAULT_DB_ALIAS]
        bound = _bind(parameters, values, current)
        # A copy for each call: threads share the compiled query, but each has its own connection.
        own_compiler = copy.copy(compiler)
        own_compiler.connection = current
        vars(own_compiler)["as_sql"] = lambda *_args, **_options: (sql, bound)
        query = copy.copy(queryset.query)
        vars(query)["get_compiler"] = lambda *_args, **_options: own_compiler
        fresh = type(queryset)(queryset.model, query=query, using=DEFAULT_DB_ALIAS)
        vars(fresh).update((name, vars(queryset)[name]) for name in ("_iterable_class", "_fields"))
        return list(fresh)

    def first(self, **values: object) -> Row | None:
        """Run the query, and return its first row; None without rows. It adds neither an order nor a limit.

        Raises:
            TypeError: as by `rows`.
        """
        return next(iter(self.rows(**values)), None)

    def _get(self) -> _Compiled[M, Row]:
        vendor = connection.vendor
        # Two threads may both compile it; the results are equal.
        if vendor not in self._compiled:
            self._compiled[vendor] = _compile(self._build())
        return self._compiled[vendor]


def _compile[M: Model, Row](queryset: QuerySet[M, Row]) -> _Compiled[M, Row]:
    if vars(queryset)["_prefetch_related_lookups"]:
        raise TypeError("a prepared query cannot have prefetch_related()")
    if vars(queryset)["_db"] is not None:
        raise TypeError("a prepared query cannot have using()")
    if queryset.query.select_for_update:
        raise TypeError("a prepared query cannot have select_for_update()")
    compiler = queryset.query.get_compiler(using=DEFAULT_DB_ALIAS)
    sql, parameters = compiler.as_sql()
    # The connection is that of the first thread, and would stay open after its end.
    vars(compiler)["connection"] = None
    return _Compiled(queryset, compiler, sql, tuple(parameters))


def _bind(parameters: Sequence[Any], values: dict[str, object], current: Any) -> tuple[Any, ...]:
    """Return the values for the database, in placeholder order."""
    names = {parameter.name for parameter in parameters if isinstance(parameter, Parameter)}
    if names != values.keys():
        raise TypeError(f"the query has the parameters {sorted(names)}, not {sorted(values)}")
    # `column = NULL` is never true, and `IS NULL` is another statement.
    if missing := sorted(name for name, value in values.items() if value is None):
        raise TypeError(f"{', '.join(missing)}: None is not a value of a prepared query")
    return tuple(
        parameter.output_field.get_db_prep_value(values[parameter.name], current)
        if isinstance(parameter, Parameter)
        else parameter
        for parameter in parameters
    )
