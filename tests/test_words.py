"""Texts for people are in plain English: words that do not occur in them (tests/words.toml)."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

WORDS = tomllib.loads((ROOT / "tests" / "words.toml").read_text())["words"]
PAGES = [*ROOT.glob("docs/*.md"), ROOT / "README.md", *(ROOT / "agent").rglob("*.md")]
MODULES = [path for package in ("agent", "probes", "release") for path in (ROOT / package).rglob("*.py")]
# Names, and words of outputs that are quoted: of a file the texts in which a word may occur
QUOTED = {
    "agent/outputs/verdict.py": ("cannot say OK",),
    "agent/fleet/page/sections.py": ("finding said ",),  # a class of CSS
    "docs/fleet-dataset.md": ("reasons.ndjson says why",),
    "agent/cli/fleet/ingest.py": ("reasons.ndjson says why",),
}


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a page without code blocks; of a module its strings of several words that are no docstrings."""
    if path.suffix == ".md":
        code = False
        for number, line in enumerate(path.read_text().splitlines(), 1):
            code = code != line.startswith("```")
            if not code:
                yield number, line
        return
    tree = ast.parse(path.read_text())
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
        and not _is_command(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.lineno, node.value


def _is_command(node: ast.AST) -> bool:
    """A function whose docstring is the help of a command."""
    return isinstance(node, ast.FunctionDef) and "Annotated" in ast.dump(node.args)


def find_words(path: Path) -> list[str]:
    """Each as `file:line: word: better`."""
    name = path.relative_to(ROOT).as_posix()
    found = []
    for line, text in texts(path):
        for quoted in QUOTED.get(name, ()):
            text = text.replace(quoted, "")
        found += [
            f"{name}:{line}: {match[0]!r}: {better}"
            for pattern, better in WORDS.items()
            if (" " in text) and (match := re.search(pattern, text, re.IGNORECASE))
        ]
    return found


@pytest.mark.parametrize("path", [*PAGES, ROOT / "agent"], ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_text_is_in_plain_english(path: Path) -> None:
    """Pages one by one, the strings of all modules together."""
    found = [row for each in ([path] if path.is_file() else MODULES) for row in find_words(each)]

    assert not found, "\n".join(found)


def test_every_word_can_be_found() -> None:
    """And no pattern fits its own better wording."""
    examples = (
        "the driver says so", "it tells nothing", "is not believed", "nobody looked", "counted anew", "mend it",
        "knows of it", "lacks a driver", "mlx5 reckons", "not as their like", "a scan so often", "it stands at 3",
        "a line a node", "what is there twice", "one step graver", "50 % less",
        "stands for this one", "nothing is to be done", "a total proves nothing", "ends without a word", "that errs so",
        "for want of a driver", "one step less", "which of both", "set otherwise",
    )  # fmt: skip

    assert len(WORDS) == len(examples)
    for pattern, example in zip(WORDS, examples, strict=True):
        assert re.search(pattern, example)
