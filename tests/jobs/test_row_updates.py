"""Statements in SQL that update rows."""

import pytest
from django.db.models import F

from jobs.actions.row_updates import update_rows
from jobs.models import Trial
from jobs.sql import one_of


def test_a_condition_has_a_place_for_each_value() -> None:
    assert one_of("state", 2) == "state IN (%s, %s)"
    with pytest.raises(ValueError, match="state is compared with no values"):
        one_of("state", 0)


def test_an_expression_is_refused_before_the_statement_is_built() -> None:
    with pytest.raises(TypeError, match="restarts: an expression is no value"):
        update_rows(Trial, {"restarts": F("restarts") + 1}, "id = %s", [1])
