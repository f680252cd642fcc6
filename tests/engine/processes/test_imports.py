"""Work of the engine that a new process can do without importing large libraries."""

import subprocess
import sys
from pathlib import Path

from tests.engine.tasks.test_register import plain, save


def test_the_scan_needs_no_keras(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib; from workers.engine.models.untrusted import scan;"
        f"scan(pathlib.Path({str(save(tmp_path, plain))!r}));"
        "sys.exit(bool({'keras', 'jax'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_the_code_of_networks_does_not_import_scikit_learn() -> None:
    code = (
        "import sys; from workers.runner.libraries import import_keras; import_keras(); "
        "import workers.engine.tasks.train, workers.engine.tasks.trial; "
        "sys.exit('sklearn' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={"KERAS_BACKEND": "jax", "PATH": ""})


def test_a_bundled_set_is_profiled_without_importing_scikit_learn(tmp_path: Path) -> None:
    program = (
        "import sys; from tests.engine.helpers import profiled; from pathlib import Path;"
        f"profiled(Path({str(tmp_path)!r}), bundled='iris'); print('sklearn' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"]


def test_a_profile_needs_neither_keras_nor_jax(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from tests.engine.helpers import profiled;"
        f"profiled(Path({str(tmp_path)!r}), bundled='iris');"
        "print([m for m in ('keras', 'jax', 'django') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
