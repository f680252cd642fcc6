"""Updates rows by statements in SQL, where every short trial needs several.

Building such a statement from models takes several times as long as running it.
"""

from collections.abc import Mapping, Sequence

from django.db import connection
from django.db.models import Field, Model


def update_rows(
    model: type[Model], values: Mapping[str, object], condition: str, parameters: Sequence[int | str]
) -> bool:
    """Set columns in the rows that meet a condition, and return whether there are any.

    Args:
        model: the rows' model.
        values: the new values by field. They are plain values; `F` and other expressions are refused.
        condition: in SQL, with `%s` for each parameter.
        parameters: the condition's parameters.

    Raises:
        TypeError: a value is an expression.
    """
    for name, value in values.items():
        if hasattr(value, "resolve_expression"):
            raise TypeError(f"{name}: an expression is no value")
    fields = [(_field(model, name), value) for name, value in values.items()]
    assignments = ", ".join(f'"{field.column}" = %s' for field, _ in fields)
    prepared = [field.get_db_prep_save(value, connection) for field, value in fields]
    statement = f'UPDATE "{model._meta.db_table}" SET {assignments} WHERE {condition}'  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(statement, [*prepared, *parameters])
        return bool(cursor.rowcount)


def _field(model: type[Model], name: str) -> "Field[object, object]":
    field = model._meta.get_field(name)
    assert isinstance(field, Field)  # noqa: S101
    return field
