"""Settings of the test suite: a home and a database file of its own for each test process."""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

if "TRAINYARD_TEST_HOME" in os.environ:  # a child process of a test shares its parent's home
    os.environ["TRAINYARD_HOME"] = os.environ["TRAINYARD_TEST_HOME"]
else:
    _home = tempfile.mkdtemp(prefix="trainyard-test-")
    atexit.register(shutil.rmtree, _home, ignore_errors=True)
    os.environ["TRAINYARD_HOME"] = os.environ["TRAINYARD_TEST_HOME"] = _home

from webapp.settings.main import *  # noqa: F403
from webapp.settings.main import DATABASES, HOME

# A file, not memory: web, workers and scheduler of the flow tests open the same database.
DATABASES["default"].setdefault("TEST", {})
if str(DATABASES["default"]["ENGINE"]).endswith("sqlite3"):
    DATABASES["default"]["TEST"] = {"NAME": str(Path(HOME) / "test.sqlite3")}
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
