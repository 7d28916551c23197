"""Every regular expression of the agent and its probes, how it is used, and texts that make a bad one slow.

A text is made of the pattern itself: what stands before a repetition, then that repetition for 16 KiB, then what ends
it nowhere. A pattern that looks at each character a bounded number of times takes a millisecond for it.
"""

from __future__ import annotations

import ast
import importlib
import re
import sys
from collections.abc import Iterator
from typing import Any

from probes.layout import Layout
from probes.text import LazyPattern, PatternChoice
from tests.conftest import ROOT

if sys.version_info >= (3, 11):
    from re import _constants as codes
    from re import _parser as parser
else:
    import sre_constants as codes
    import sre_parse as parser

CHARACTERS = 16 << 10
_GAP = (codes.ANY, None)
LONG = 40  # a repetition of at most as many is bounded
METHODS = ("search", "match", "fullmatch", "finditer", "findall", "split", "sub")
_CATEGORIES = {"DIGIT": r"\d", "SPACE": r"\s", "WORD": r"\w", "NOT_SPACE": r"\S", "NOT_WORD": r"\W", "NOT_DIGIT": r"\D"}
_PRINTED = [chr(code) for code in (9, *range(32, 127))]


def patterns() -> Iterator[tuple[str, re.Pattern[Any], str]]:
    """(module.NAME or module:'pattern', pattern, method). One whose use is not seen is taken to search."""
    for top in ("agent", "probes"):
        for path in sorted((ROOT / top).rglob("*.py")):
            if path.name == "__main__.py":
                continue
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
            module, text = importlib.import_module(name), path.read_text()
            if "re." not in text and not any(True for value in vars(module).values() for _ in _all(value)):
                continue  # no pattern: parsing all of them takes a fifth of the time to collect all tests
            tree = ast.parse(text)
            used: dict[str, set[str]] = {}
            tables = dict(_list_loops(tree))
            for node in ast.walk(tree):
                match node:
                    case ast.Call(ast.Attribute(ast.Name("re"), method), [ast.Constant(str() | bytes() as inline), *_]):
                        if method in METHODS:
                            yield f"{name}:{inline!r}", re.compile(inline), method
                    case ast.Attribute(ast.Name(used_name), method) if method in METHODS:  # called, or for map()
                        used.setdefault(tables.get(used_name, used_name), set()).add(method)
            for variable, value in vars(module).items():
                unseen = {"fullmatch" if isinstance(value, Layout) else "search"}
                unseen = {"match"} if isinstance(value, PatternChoice) else unseen
                for pattern in _all(value):
                    for method in sorted(used.get(variable, () if variable in _imported(tree) else unseen)):
                        yield f"{name}.{variable}", pattern, method


def _list_loops(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Names that loops give to what a table holds, with the name of the table."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.For, ast.comprehension)) and isinstance(node.iter, ast.Name):
            for target in ast.walk(node.target):
                if isinstance(target, ast.Name):
                    yield target.id, node.iter.id


def attacks(pattern: re.Pattern[Any]) -> Iterator[str]:
    """Texts of 16 KiB on which a repetition that can be split in many ways is tried in all of them."""
    for before, pump in sorted(set(_repetitions(parser.parse(pattern.pattern, pattern.flags)))):
        yield before + pump * (CHARACTERS // len(pump)) + "\1"
        yield (before + pump) * (CHARACTERS // len(before + pump)) + "\1"


def is_required(plain: tuple[str, ...], pattern: re.Pattern[str]) -> bool:
    """Whether one of these texts is in whatever fits a pattern, by Python's own parser."""
    return _has_one(list(parser.parse(pattern.pattern, pattern.flags & re.MULTILINE)), plain)


def _has_one(items: list[Any], required: tuple[str, ...], run: str = "") -> bool:
    """Whether every text that fits the parsed pattern contains one of the required texts. `run`: the plain text before
    the items."""
    for number, (code, value) in enumerate(items):
        rest = items[number + 1 :]
        run = run + chr(value) if code is codes.LITERAL else run
        if any(plain in run for plain in required):
            return True
        if code is codes.SUBPATTERN:
            return _has_one([*value[3], *rest], required, run)
        if code is codes.BRANCH:
            return _has_one(rest, required) or all(_has_one([*branch, *rest], required, run) for branch in value[1])
        if code is codes.IN and all(one is codes.LITERAL for one, _ in value) and len(value) < 9:
            return _has_one(rest, required) or all(_has_one([one, *rest], required, run) for one in value)
        if code in (codes.MAX_REPEAT, codes.MIN_REPEAT) and value[0]:
            return _has_one([*value[2], _GAP, *rest], required, run)
        if code is not codes.LITERAL and code is not codes.AT:
            run = ""
    return False


def _imported(tree: ast.Module) -> set[str]:
    return {name.asname or name.name for node in tree.body if isinstance(node, ast.ImportFrom) for name in node.names}


def _all(value: object) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, (LazyPattern, PatternChoice)):
        yield re.compile(*value.arguments)
    elif isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, (tuple, list, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _all(item)


def _repetitions(sequence: Any, before: str = "") -> Iterator[tuple[str, str]]:
    for code, value in sequence:
        if str(code).endswith("_REPEAT"):
            for choice in _list_choices(value[2]):
                for expected in f" a0\t/:,{before[-1:]}":
                    pump = _sample(choice, expected)
                    if pump and value[1] > LONG:
                        yield before, pump
            yield from _repetitions(value[2], before)
        elif code is codes.SUBPATTERN:
            yield from _repetitions(value[3], before)
        elif code is codes.BRANCH:
            for branch in value[1]:
                yield from _repetitions(branch, before)
        elif code in (codes.ASSERT, codes.ASSERT_NOT):
            yield from _repetitions(value[1], before)
        before += _sample([(code, value)])


def _list_choices(sequence: Any) -> list[Any]:
    """What a repetition may repeat: each branch of it, where it is nothing else than branches."""
    (code, value), *others = sequence
    if others:
        return [sequence]
    if code is codes.SUBPATTERN:
        return _list_choices(value[3])
    return [sequence, *value[1]] if code is codes.BRANCH else [sequence]


def _sample(sequence: Any, expected: str = " ") -> str:
    """The shortest text that fits, of the wanted character where it can be."""
    out = ""
    for code, value in sequence:
        if code is codes.LITERAL:
            out += chr(value)
        elif code is codes.NOT_LITERAL:
            out += expected if ord(expected) != value else "a"
        elif code is codes.ANY:
            out += expected
        elif code is codes.IN:
            fit = _members(value)
            out += expected if expected in fit else min(fit, default="")
        elif code is codes.SUBPATTERN:
            out += _sample(value[3], expected)
        elif code is codes.BRANCH:
            out += _sample(value[1][0], expected)
        elif str(code).endswith("_REPEAT"):
            out += _sample(value[2], expected) * value[0]
    return out


def _members(items: Any) -> set[str]:
    fit: set[str] = set()
    for code, value in items:
        if code is codes.LITERAL:
            fit.add(chr(value))
        elif code is codes.RANGE:
            fit.update(chr(index) for index in range(value[0], min(value[1], value[0] + 100) + 1))
        elif code is codes.CATEGORY:
            kind = _CATEGORIES[str(value).removeprefix("CATEGORY_")]
            fit.update(item for item in _PRINTED if re.match(kind, item))
    return {item for item in _PRINTED if item not in fit} if items[0][0] is codes.NEGATE else fit
