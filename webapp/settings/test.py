"""The test suite's settings: each test process has its own home and database file.

A run has one folder with a home for each pytest-xdist worker, which its child processes share.
"""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

if "TRAINYARD_TEST_HOME" not in os.environ:
    os.environ["TRAINYARD_TEST_HOME"] = tempfile.mkdtemp(prefix="trainyard-test-")
    atexit.register(shutil.rmtree, os.environ["TRAINYARD_TEST_HOME"], ignore_errors=True)
_home = Path(os.environ["TRAINYARD_TEST_HOME"], os.environ.get("PYTEST_XDIST_WORKER", "main"))
_home.mkdir(mode=0o700, exist_ok=True)
os.environ["TRAINYARD_HOME"] = str(_home)
# Test models are so small that optimizing their compilation takes longer than training them, and BLAS threads
# that wait for one another spin (a Gaussian process took 3 × the CPU time).
_FAST_COMPILATION = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
os.environ.setdefault("XLA_FLAGS", _FAST_COMPILATION)
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from webapp.settings.main import *  # noqa: E402, F403  once the home is known
from webapp.settings.main import DATABASES, HOME  # noqa: E402

# A file, not memory, because the processes of the flow tests share the database.
DATABASES["default"].setdefault("TEST", {})
if str(DATABASES["default"]["ENGINE"]).endswith("sqlite3"):
    DATABASES["default"]["TEST"] = {"NAME": str(Path(HOME) / "test.sqlite3")}
# Test processes have one installation each, and their database is made later.
TRAINYARD_COOKIE_SUFFIX = "-tests"
SESSION_COOKIE_NAME = f"session{TRAINYARD_COOKIE_SUFFIX}"
CSRF_COOKIE_NAME = f"csrf{TRAINYARD_COOKIE_SUFFIX}"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
# Each test client creates the middleware: find static files on request instead of all of them at each start.
WHITENOISE_AUTOREFRESH = True
