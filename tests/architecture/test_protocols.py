"""A protocol of the server is its modules and an entry in a table; no other module names it."""

import ast
import inspect
import re
from collections.abc import Iterator

import pytest

from tests.architecture.sources import ROOT, imports, modules
from workers.serving.protocols.protocol import predictions_by_name
from workers.serving.protocols.table import PROTOCOLS

SERVING = "workers.serving."
PROTOCOL_MODULES = "workers.serving.protocols."
SHARED = {
    f"{PROTOCOL_MODULES}{name}" for name in ("catalog_view", "protocol", "quick_bodies", "table", "target")
}
"""The modules in the folder of protocols that belong to none."""
DRIVEN = (
    "workers.serving.app",
    "workers.serving.direct",
    "workers.serving.direct_http",
    "workers.serving.bodies",
)
NAMES = re.compile(r"tfs|tensorflow|oip|open.?inference|\binfer\b|/v[12]\b", re.IGNORECASE)


def driven_modules() -> list[str]:
    """Return the application, the direct path and the body workers' modules."""
    return [name for name in modules() if name in DRIVEN or name.startswith("workers.serving.bodies")]


def named_in(source: str) -> Iterator[str]:
    """Yield the protocol names in a module's text, and the names of operations in its strings."""
    yield from NAMES.findall(source)
    operations = predictions_by_name(PROTOCOLS)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and node.value in operations:
            yield node.value


def test_modules_outside_the_folder_of_protocols_import_none_of_a_single_protocol() -> None:
    outside = [
        name for name in modules() if name.startswith(SERVING) and not name.startswith(PROTOCOL_MODULES)
    ]
    imported = {target for name in outside for target in imports(name) if target.startswith(PROTOCOL_MODULES)}
    assert imported <= SHARED


@pytest.mark.parametrize("module", driven_modules())
def test_the_application_the_direct_path_and_the_body_workers_name_no_protocol(module: str) -> None:
    path = ROOT / f"{module.replace('.', '/')}.py"
    source = (path if path.exists() else path.with_suffix("") / "__init__.py").read_text()
    assert list(named_in(source)) == []


def test_the_application_the_direct_path_and_the_body_workers_read_the_table() -> None:
    table = f"{PROTOCOL_MODULES}table"
    context = "workers.serving.request_context"
    assert all(table in imports(name) for name in (context, "workers.serving.bodies.worker"))
    assert all(context in imports(name) for name in ("workers.serving.app", "workers.serving.direct"))


def test_the_check_finds_names_of_protocols() -> None:
    source = 'if verb == "predict" and path.startswith("/v1/"):\n    tfs_predict.parse()'
    assert sorted(named_in(source)) == ["/v1", "predict", "tfs"]


def test_no_protocol_imports_another() -> None:
    of_protocols = {inspect.getmodule(protocol.route).__name__ for protocol in PROTOCOLS}  # type: ignore[union-attr]
    assert len(of_protocols) == len(PROTOCOLS)
    for name in of_protocols:
        assert not imports(name) & (of_protocols - {name})
