"""Pages find their templates, scripts and styles, and shared scripts need no wing."""

import ast
import os
import re
from pathlib import Path

from django.template import Engine
from django.template.base import Node, NodeList, TextNode
from django.template.defaulttags import CommentNode, LoadNode, PartialDefNode
from django.template.loader_tags import BlockNode, ExtendsNode

from webapp.pages.runs.job_tabs import MODULES

ROOT = Path(__file__).resolve().parents[2]
TEMPLATES = ROOT / "templates"
STATIC = ROOT / "webapp" / "static"
SCRIPTS = STATIC / "js"
TEMPLATE_NAME = re.compile(r"[\w/-]+\.html(#[\w-]+)?")


def texts(folder: Path, *endings: str) -> dict[Path, str]:
    return {path: path.read_text() for path in sorted(folder.rglob("*")) if path.suffix in endings}


def imports(script: Path, text: str) -> set[Path]:
    """Return the files that a script imports by relative paths, also for their types."""
    return {
        Path(os.path.normpath(script.parent / target))
        for target in re.findall(r'["\'](\.{1,2}/[^"\']+)["\']', text)
    }


def test_the_templates_that_modules_name_exist() -> None:
    missing = {
        (str(path.relative_to(ROOT)), node.value)
        for path, text in texts(ROOT / "webapp", ".py").items()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and TEMPLATE_NAME.fullmatch(node.value)
        if not (TEMPLATES / node.value.partition("#")[0]).exists()
    }
    assert not missing


def test_the_templates_and_static_files_that_templates_name_exist() -> None:
    missing = set()
    for path, text in texts(TEMPLATES, ".html").items():
        parts = re.findall(r"""\{% (?:extends|include) ["']([^"'#]+\.html)""", text)
        files = re.findall(r"""\{% static ["']([^"']+)["']""", text)
        references = [*(TEMPLATES / name for name in parts), *(STATIC / name for name in files)]
        missing |= {(path.name, str(file)) for file in references if not file.exists()}
    assert not missing


def test_a_template_that_extends_another_has_all_its_parts_in_blocks() -> None:
    """Django shows nothing of the rest, and a block inside an `if` is shown whether or not the `if` holds."""
    outside = set()
    for path in texts(TEMPLATES, ".html"):
        name = str(path.relative_to(TEMPLATES))
        first = next((node for node in template(name) if isinstance(node, ExtendsNode)), None)
        outside |= {(name, str(node)) for node in first.nodelist if not is_shown(node)} if first else set()
    assert not outside


def template(name: str) -> NodeList:
    return Engine.get_default().get_template(name).nodelist


def is_shown(node: Node) -> bool:
    """Return whether a node in a template that extends another acts as it is written."""
    if isinstance(node, TextNode):
        return not node.s.strip()
    return isinstance(node, BlockNode | LoadNode | CommentNode | PartialDefNode)


def test_the_modules_that_the_page_of_a_search_preloads_exist() -> None:
    assert not [name for name in MODULES if not (STATIC / f"{name}.js").exists()]


def test_the_files_that_scripts_import_exist() -> None:
    missing = {
        (script.name, str(target))
        for script, text in texts(SCRIPTS, ".js", ".ts").items()
        for target in imports(script, text)
        if not target.exists() and not target.with_suffix(".d.ts").exists()
    }
    assert not missing


def test_shared_scripts_import_no_script_of_a_wing() -> None:
    allowed = (SCRIPTS / "shared", STATIC / "vendor")
    strangers = {
        (str(script.relative_to(SCRIPTS)), str(target.relative_to(STATIC)))
        for script, text in texts(SCRIPTS / "shared", ".js", ".ts").items()
        for target in imports(script, text)
        if not any(target.is_relative_to(folder) for folder in allowed)
    }
    assert not strangers
