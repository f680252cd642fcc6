"""A new database has exactly the tables that all migrations make, which it does not run."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.ops.conftest import ROOT, needs_postgres, new_database

TABLES = """
import json, sys
import django
django.setup()
from django.core.management import call_command
from django.conf import settings
from django.db import connection
from tests.database import single_steps
from webapp.ops import new_database
from webapp.ops.home import Home
Home(settings.HOME).create()
match sys.argv[1]:
    case "at once":
        assert new_database.is_empty()
        new_database.create()
        assert not new_database.is_empty()
    case "squashed":
        call_command("migrate", verbosity=0)
    case "single":
        executor = single_steps()
        executor.migrate(executor.loader.graph.leaf_nodes())
        call_command("migrate", verbosity=0)  # the content types and permissions
with connection.cursor() as cursor:
    cursor.execute(sys.argv[2])
    tables = cursor.fetchall()
    rows = {}
    for name in connection.introspection.table_names(cursor):
        cursor.execute(f"SELECT count(*) FROM {name}")
        rows[name] = cursor.fetchone()[0]
    cursor.execute("SELECT app, name FROM django_migrations")
    print(json.dumps({"tables": tables, "rows": rows, "migrations": sorted(cursor.fetchall())}))
"""
SQLITE = "SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'"
POSTGRES = """
    SELECT 'column', table_name || '.' || column_name, concat_ws(' ', data_type, character_maximum_length,
        is_nullable, column_default, is_identity, identity_generation)
    FROM information_schema.columns WHERE table_schema = 'public'
    UNION ALL SELECT 'index', indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'
    UNION ALL SELECT 'constraint', conrelid::regclass || '.' || conname, pg_get_constraintdef(oid)
    FROM pg_constraint WHERE connamespace = 'public'::regnamespace
    UNION ALL SELECT 'trigger', tgrelid::regclass || '.' || tgname, pg_get_triggerdef(oid)
    FROM pg_trigger WHERE NOT tgisinternal"""

RENAMED = {
    "jobs_auditevent_number_fac325e3_uniq": "jobs_auditevent_number_key",
    "jobs_audithead_count_check": "jobs_audithead_number_check",
}
"""Constraints named after earlier states of their columns. Django looks for constraints by their columns."""


def make_tables(way: str, query: str, home: Path, **environment: str) -> dict[str, Any]:
    """Make a new database's tables in one of the ways. Return its whole content."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("TRAINYARD_")}
    settings = {"TRAINYARD_HOME": str(home), "DJANGO_SETTINGS_MODULE": "webapp.settings.main"}
    done = subprocess.run(
        [sys.executable, "-c", TABLES, way, query],
        cwd=ROOT,
        env=inherited | settings | environment,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    text = done.stdout
    for name, present in RENAMED.items():
        text = text.replace(name, present)
    schema: dict[str, Any] = json.loads(text)
    schema["tables"] = {(kind, name): _comparable(kind, sql) for kind, name, sql in schema["tables"]}
    return schema


def _comparable(kind: str, sql: str | None) -> str | list[str] | None:
    """Split a SQLite table's definition at its commas: the columns may be in any order."""
    if sql is None or kind != "table":
        return sql
    parts, depth = [""], 0
    for letter in sql[sql.index("(") + 1 : sql.rindex(")")]:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return sorted(part.strip() for part in parts)


def assert_equal(at_once: dict[str, Any], squashed: dict[str, Any], single: dict[str, Any]) -> None:
    assert len(at_once["rows"]) > 50
    _assert_equal(at_once, squashed)
    # The squashed migration is recorded once those that it replaces are applied.
    _assert_equal(single, squashed)


def _assert_equal(one: dict[str, Any], other: dict[str, Any]) -> None:
    for part, rows in one.items():
        differences = rows.items() ^ other[part].items() if part == "rows" else rows
        assert rows == other[part], differences


def test_all_ways_make_the_same_tables(tmp_path: Path) -> None:
    assert_equal(*(make_tables(way, SQLITE, tmp_path / way) for way in ("at once", "squashed", "single")))


@needs_postgres
def test_all_ways_make_the_same_tables_in_postgres(tmp_path: Path) -> None:
    schemas = []
    for way in ("at once", "squashed", "single"):
        with new_database() as (url, _):
            schemas.append(make_tables(way, POSTGRES, tmp_path / way, TRAINYARD_DATABASE_URL=url))
    assert_equal(*schemas)
