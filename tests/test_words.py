"""Texts for people are in plain English: words that do not occur in them (tests/words.toml)."""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

WORDS = tomllib.loads((ROOT / "tests" / "words.toml").read_text())["words"]
_ANYWHERE = [pattern for pattern in WORDS if not pattern.startswith(r"\b")]
_AS_WORDS = [pattern.removeprefix(r"\b") for pattern in WORDS if pattern not in _ANYWHERE]
ANY_WORD = re.compile(
    "|".join([rf"\b(?:{'|'.join(_AS_WORDS)})", *_ANYWHERE])
)  # of lower case; one \b: ten times faster
PAGES = [
    *ROOT.glob("*.md"),
    *ROOT.glob("docs/*.md"),
    *ROOT.glob("docs/decisions/*.md"),
    ROOT / "bench/README.md",
    *(ROOT / "agent").rglob("*.md"),
]
MODULES = [path for package in ("agent", "probes", "release") for path in (ROOT / package).rglob("*.py")]
NAMES = re.compile(r"`[^`]*`")  # of parameters and fields
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
    content = path.read_text()
    if not ANY_WORD.search(content.lower()):
        return
    tree = ast.parse(content)
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


def private_texts(path: Path) -> Iterator[tuple[int, str]]:
    """Comments and docstrings of a module: for whoever changes it."""
    content = path.read_text()
    hits = {content.count("\n", 0, match.start()) + 1 for match in ANY_WORD.finditer(content.lower())}
    if not hits:  # as most; the others are parsed
        return
    lines = content.splitlines()
    if any("#" in lines[number - 1] for number in hits):
        for token in tokenize.generate_tokens(io.StringIO(content).readline):
            if token.type == tokenize.COMMENT and token.start[0] in hits:
                yield token.start[0], token.string
    for node in ast.walk(ast.parse(content)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (text := ast.get_docstring(node)):
            yield getattr(node, "lineno", 1), NAMES.sub("", text.partition(">>>")[0])


def _is_command(node: ast.AST) -> bool:
    """A function whose docstring is the help of a command."""
    return isinstance(node, ast.FunctionDef) and "Annotated" in ast.dump(node.args)


def find_words(path: Path, of: Callable[[Path], Iterator[tuple[int, str]]] = texts) -> list[str]:
    """Each as `file:line: word: better`."""
    name = path.relative_to(ROOT).as_posix()
    found = []
    for line, text in of(path):
        for quoted in QUOTED.get(name, ()):
            text = text.replace(quoted, "")
        if " " in text and ANY_WORD.search(text.lower()):
            found += [
                f"{name}:{line}: {match[0]!r}: {better}"
                for pattern, better in WORDS.items()
                if (match := re.search(pattern, text, re.IGNORECASE))
            ]
    return found


@pytest.mark.parametrize("path", [*PAGES, ROOT / "agent"], ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_text_is_in_plain_english(path: Path) -> None:
    """Pages one by one, the strings of all modules together."""
    found = [row for each in ([path] if path.is_file() else MODULES) for row in find_words(each)]

    assert not found, "\n".join(found)


def test_comments_and_docstrings_are_in_plain_english() -> None:
    """The same words: a stranger reads the code, too. At most one in 2,500 lines, which is fixed when it is met."""
    found = [row for path in MODULES for row in find_words(path, private_texts)]
    lines = sum(path.read_bytes().count(b"\n") for path in MODULES)

    assert len(found) <= lines / 2500, "\n".join(found)


def test_every_word_can_be_found() -> None:
    """And no pattern fits its own better wording."""
    examples = (
        "the driver says so", "it tells nothing", "is not believed", "nobody looked", "counted anew", "mend it",
        "knows of it", "lacks a driver", "mlx5 reckons", "not as their like", "a scan so often", "it stands at 3",
        "a line a node", "what is there twice", "one step graver", "50 % less",
        "stands for this one", "nothing is to be done", "a total proves nothing", "ends without a word", "that errs so",
        "for want of a driver", "one step less", "which of both", "set otherwise",
        "whoever reads it", "it stands in a file",
    )  # fmt: skip

    assert len(WORDS) == len(examples)
    for pattern, example in zip(WORDS, examples, strict=True):
        assert re.search(pattern, example)
