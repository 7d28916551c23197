"""Completion for bash, zsh and fish: files that hold every word, so that TAB starts no process.

`python -m release.completion --write packaging/completion`, or `--check`
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from release import bash, fish, zsh
from release.tree import program

HEAD = "fabricscope, written by `make completion` from its commands"


def files() -> dict[str, str]:
    """The files by name, as shells look for them."""
    tree = program()
    return {
        "fabricscope.bash": bash.completion(tree, HEAD),
        "_fabricscope": zsh.completion(tree, HEAD),
        "fabricscope.fish": fish.completion(tree, HEAD),
    }


def main() -> int:
    """Write them, or say which are not current."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--check", action="store_true")
    asked.add_argument("--write", action="store_true")
    asked.add_argument("folder", type=Path)
    told = asked.parse_args()
    stale = []
    for name, text in files().items():
        path = told.folder / name
        if not path.is_file() or path.read_text() != text:
            stale.append(name)
            if told.write:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
    if stale and not told.write:
        print(f"not current: {', '.join(stale)} (make completion)", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
