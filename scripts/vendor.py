#!/usr/bin/env python
"""Downloads the browser libraries into webapp/static/vendor/ and writes VENDOR.json.

Run by a developer who upgrades a version or needs another icon; users need neither Node nor a network. It
downloads the pinned releases with `npm pack`, copies only the files that pages load, removes the references
to source maps (which are not shipped), and builds one sprite of the icons listed in icons.txt. A library with
a file in scripts/bundles/, which exports what pages use, is bundled from the packages that package-lock.json
pins.
"""

import hashlib
import json
import re
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VENDOR = ROOT / "webapp" / "static" / "vendor"
BUNDLES = ROOT / "scripts" / "bundles"

MIT = """The MIT License (MIT)

{copyright}

Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files (the "Software"), to deal
in the Software without restriction, including without limitation the rights
to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all
copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
SOFTWARE.
"""


@dataclass(frozen=True)
class Library:
    """A released package, and the files that are copied from it: path in the package -> file name here."""

    name: str
    package: str
    version: str
    licence: str
    files: Mapping[str, str]
    copyright: str = ""  # set if the package contains no licence file
    icons: tuple[str, ...] = field(default=())
    bundle: str = ""  # the name of the file that is made of scripts/bundles/<name>.js
    types: Mapping[str, str] = field(default_factory=dict)  # declarations for the type check of scripts

    @property
    def folder(self) -> str:
        """Return the name of the folder; it contains the version, so a new version has a new address."""
        return f"{self.name}-{self.version}"


ICONS = tuple(Path(__file__).with_name("icons.txt").read_text().split())

LIBRARIES = (
    Library(
        name="tabler",
        package="@tabler/core",
        version="1.6.1",
        licence="MIT",
        files={"dist/css/tabler.min.css": "tabler.min.css", "dist/js/tabler.min.js": "tabler.min.js"},
        copyright="Copyright (c) 2018-2026 The Tabler Authors\n"
        "Copyright (c) 2018-2026 codecalm.net Paweł Kuna\n\n"
        "Contains Bootstrap, copyright (c) 2011-2025 The Bootstrap Authors, and Popper,\n"
        "copyright (c) 2019 Federico Zivolo, both under the same licence.",
    ),
    Library(
        name="htmx",
        package="htmx.org",
        version="4.0.1",
        licence="0BSD",
        files={"dist/htmx.min.js": "htmx.min.js", "LICENSE": "LICENSE"},
    ),
    Library(
        name="uplot",
        package="uplot",
        version="1.6.32",
        licence="MIT",
        files={
            "dist/uPlot.esm.js": "uPlot.esm.js",
            "dist/uPlot.min.css": "uPlot.min.css",
            "LICENSE": "LICENSE",
        },
        types={"uPlot.esm.d.ts": 'export { default } from "uplot";\n'},
    ),
    Library(
        name="echarts",
        package="echarts",
        version="6.1.0",
        licence="Apache-2.0",
        files={
            "LICENSE": "LICENSE",
            "NOTICE": "NOTICE",
            "licenses/LICENSE-d3": "LICENSE-d3",
        },
        bundle="echarts.esm.min.js",
        types={"echarts.esm.min.d.ts": 'export { getInstanceByDom, init } from "echarts";\n'},
    ),
    Library(
        # All its packages have the same authors and licence.
        name="codemirror",
        package="@codemirror/view",
        version="6.43.15",
        licence="MIT",
        files={"LICENSE": "LICENSE"},
        bundle="codemirror.esm.min.js",
        types={"codemirror.esm.min.d.ts": (BUNDLES / "codemirror.js").read_text()},
    ),
    Library(
        name="tus-js-client",
        package="tus-js-client",
        version="4.3.1",
        licence="MIT",
        # The declarations describe the object `tus`, which this file adds to the window.
        files={"dist/tus.min.js": "tus.min.js", "lib/index.d.ts": "tus.d.ts", "LICENSE": "LICENSE"},
        types={"tus.min.d.ts": "export {};\n"},
    ),
    Library(
        name="inter",
        package="@fontsource-variable/inter",
        version="5.3.0",
        licence="OFL-1.1",
        files={"files/inter-latin-wght-normal.woff2": "inter-latin.woff2", "LICENSE": "LICENSE"},
    ),
    Library(
        name="tabler-icons",
        package="@tabler/icons",
        version="3.51.0",
        licence="MIT",
        files={"LICENSE": "LICENSE"},
        icons=ICONS,
    ),
)


def main() -> None:
    """Replace the vendored folders."""
    described = []
    subprocess.run(["sh", ROOT / "scripts" / "setup-node"], check=True)  # noqa: S603, S607 - a fixed argv
    with tempfile.TemporaryDirectory() as scratch:
        for old in VENDOR.glob("*-[0-9]*"):
            shutil.rmtree(old)
        for library in LIBRARIES:
            package = _unpack(library, Path(scratch))
            described.append(_install(library, package))
    (VENDOR / "VENDOR.json").write_text(json.dumps(described, indent=2) + "\n")


def _unpack(library: Library, scratch: Path) -> Path:
    packed = subprocess.run(  # noqa: S603 - a fixed argv
        ["npm", "pack", "--silent", f"{library.package}@{library.version}"],  # noqa: S607 - the developer's npm
        cwd=scratch,
        check=True,
        capture_output=True,
        text=True,
    )
    target = scratch / library.name
    with tarfile.open(scratch / packed.stdout.split()[-1]) as archive:
        archive.extractall(target, filter="data")
    return target / "package"


def _install(library: Library, package: Path) -> dict[str, object]:
    folder = VENDOR / library.folder
    folder.mkdir(parents=True)
    for member, name in library.files.items():
        (folder / name).write_bytes(_without_source_map((package / member).read_bytes()))
    if library.bundle:
        _bundle(BUNDLES / f"{library.name}.js", folder / library.bundle)
    for name, text in library.types.items():
        (folder / name).write_text(text)
    if library.copyright:
        (folder / "LICENSE").write_text(MIT.format(copyright=library.copyright))
    if library.icons:
        (folder / "sprite.svg").write_text(_sprite(package / "icons" / "outline", library.icons))
    return {
        "name": library.name,
        "package": library.package,
        "version": library.version,
        "licence": library.licence,
        "folder": library.folder,
        "sha256": {
            file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(folder.iterdir())
        },
    }


def _bundle(entry: Path, target: Path) -> None:
    options = ["--bundle", "--minify", "--format=esm", "--legal-comments=none", "--log-level=warning"]
    command = [ROOT / "node_modules" / ".bin" / "esbuild", entry, *options, f"--outfile={target}"]
    subprocess.run(command, cwd=ROOT, check=True)  # noqa: S603 - a fixed argv


def _without_source_map(content: bytes) -> bytes:
    return re.sub(rb"\n?(//# sourceMappingURL=\S+|/\*# sourceMappingURL=\S+ ?\*/)\s*$", b"\n", content)


def _sprite(folder: Path, names: tuple[str, ...]) -> str:
    symbols = [_symbol(name, (folder / f"{name}.svg").read_text()) for name in sorted(set(names))]
    return '<svg xmlns="http://www.w3.org/2000/svg">\n' + "\n".join(symbols) + "\n</svg>\n"


def _symbol(name: str, svg: str) -> str:
    inside = re.sub(r"^.*?<svg[^>]*>|</svg>\s*$|<!--.*?-->", "", svg, flags=re.DOTALL)
    shapes = " ".join(line.strip() for line in inside.strip().splitlines())
    return f'<symbol id="{name}" viewBox="0 0 24 24">{shapes}</symbol>'


if __name__ == "__main__":
    main()
