"""dist/fabricscope.pyz: one file that runs where there is a python3 of the version it was made with, and no pip.

`python -m release.zipapp [--wheels DIR] [OUTPUT]`
"""

from __future__ import annotations

import argparse
import hashlib
import io
import os
import tempfile
import zipfile
from pathlib import Path

from agent.version import VERSION
from release.wheelhouse import DIST, MACHINE, PYTHON, download_wheels, install_tree

SHEBANG = b"#!/usr/bin/env python3\n"
EPOCH = (1980, 1, 1, 0, 0, 0)  # what a zip takes for no date: the same files give the same bytes


def build_zipapp(output: Path, wheels: Path | None = None) -> None:
    """Write the file, from a folder of wheels where one is given."""
    with tempfile.TemporaryDirectory() as scratch:
        if wheels is None:
            wheels = Path(scratch, "wheels")
            download_wheels(wheels)
        folder = Path(scratch, "lib")
        install_tree(folder, wheels)
        write_archive(output, folder)


def write_archive(output: Path, folder: Path, python: str = PYTHON, machine: str = MACHINE) -> None:
    """Write the file from a folder that holds the program and its libraries."""
    payload, index = pack_folder(folder)
    name = f"fabricscope-{VERSION}-{hashlib.sha256(payload).hexdigest()[:16]}"
    outer = io.BytesIO()
    with zipfile.ZipFile(outer, "w") as archive:
        _add(archive, "__main__.py", Path(__file__).with_name("bootstrap.py").read_bytes(), zipfile.ZIP_DEFLATED)
        _add(archive, "INDEX", f"{name} {python} {machine}\n{index}".encode(), zipfile.ZIP_DEFLATED)
        _add(archive, "PAYLOAD", payload, zipfile.ZIP_STORED)
    output.parent.mkdir(parents=True, exist_ok=True)
    temporary = output.with_name(f".{output.name}.tmp")
    temporary.write_bytes(SHEBANG + outer.getvalue())
    temporary.chmod(0o755)
    temporary.replace(output)


def pack_folder(folder: Path) -> tuple[bytes, str]:
    """All files of a folder as one zip, and a line for each: its size and its name."""
    data, lines = io.BytesIO(), []
    with zipfile.ZipFile(data, "w") as archive:
        for path in sorted(file for file in folder.rglob("*") if file.is_file()):
            content = path.read_bytes()
            name = path.relative_to(folder).as_posix()
            _add(archive, name, content, zipfile.ZIP_DEFLATED)
            lines.append(f"{len(content)} {name}\n")
    return data.getvalue(), "".join(lines)


def _add(archive: zipfile.ZipFile, name: str, content: bytes, kind: int) -> None:
    entry = zipfile.ZipInfo(name, EPOCH)
    entry.external_attr = 0o644 << 16
    archive.writestr(entry, content, kind, 9)


def main() -> None:
    """Build it, and state where it is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wheels", type=Path, help="a folder of wheels to build from; else PyPI")
    parser.add_argument("output", type=Path, nargs="?", default=DIST / "fabricscope.pyz")
    arguments = parser.parse_args()
    build_zipapp(arguments.output, arguments.wheels)
    size = arguments.output.stat().st_size / 1e6
    print(f"{os.path.relpath(arguments.output)}: {size:.1f} MB, Python {PYTHON}, {MACHINE}")


if __name__ == "__main__":
    main()
