"""dist/fabricscope-wheelhouse-VERSION-pyXY-ARCH.tar: all that pip needs to install fabricscope without a network.

`python -m release.wheelhouse [--wheels DIR] [--python X.Y] [--machine ARCH] [FOLDER]`
"""

from __future__ import annotations

import argparse
import io
import os
import tarfile
import tempfile
from pathlib import Path

from agent.version import VERSION
from release.payload import DIST, MACHINE, PYTHON, wheels


def build(folder: Path, found: Path | None = None, python: str = PYTHON, machine: str = MACHINE) -> Path:
    """Write the archive into a folder, from a folder of wheels where one is given. Returns its place."""
    name = f"fabricscope-wheelhouse-{VERSION}-py{python.replace('.', '')}-{machine}"
    with tempfile.TemporaryDirectory() as scratch:
        if found is None:
            found = Path(scratch)
            wheels(found, python, machine)
        content = {path.name: path.read_bytes() for path in found.glob("*.whl")}
    content["README"] = readme(name, python).encode()
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / f"{name}.tar"
    temporary = place.with_name(f".{place.name}.tmp")
    with tarfile.open(temporary, "w") as archive:  # wheels are compressed
        for each, data in sorted(content.items()):
            entry = tarfile.TarInfo(f"{name}/{each}")  # root's, without a time: the same wheels, the same bytes
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    temporary.replace(place)
    return place


def readme(name: str, python: str) -> str:
    """The two lines that install it."""
    return f"""\
python{python} -m venv /opt/fabricscope
/opt/fabricscope/bin/pip install --no-index --find-links {name} fabricscope
"""


def main() -> None:
    """Build it, and say where it is and how it is installed."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--wheels", type=Path, help="a folder of wheels to pack; else PyPI")
    asked.add_argument("--python", default=PYTHON, metavar="X.Y", help=f"the hosts' Python ({PYTHON})")
    asked.add_argument("--machine", default=MACHINE, metavar="ARCH", help=f"the hosts' uname -m ({MACHINE})")
    asked.add_argument("folder", type=Path, nargs="?", default=DIST)
    told = asked.parse_args()
    place = build(told.folder, told.wheels, told.python, told.machine)
    print(f"{os.path.relpath(place)}: {place.stat().st_size / 1e6:.1f} MB. On the host, unpacked:")
    print(readme(place.name.removesuffix(".tar"), told.python), end="")


if __name__ == "__main__":
    main()
