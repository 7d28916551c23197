"""The shape of the code: no cycle, no crowded folder, packages that state their purpose, no dependency without a use.

What import-linter can hold is a contract in pyproject.toml: layers, and no cycle between packages.
"""

from __future__ import annotations

import ast
import graphlib
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.conftest import ROOT

if sys.version_info < (3, 11):
    import tomli as tomllib
else:
    import tomllib

PRODUCT = ("agent", "probes")
FOLDERS = (*PRODUCT, "fixtures", "release", "bench", "tests")
MODULES_PER_FOLDER = 25
CLASS_NAMES_TWICE = 30
EXCLUDES = re.compile(r"\b(not|nothing|never|no)\b|\b(is|are) in\b|\bbelongs? to\b", re.IGNORECASE)
IMPORTED_AS = {"nvidia-ml-py": "pynvml"}  # distributions whose module has another name


@cache
def modules() -> dict[str, ast.Module]:
    """Every module of the product, parsed; a package by its own name."""
    parsed = {}
    for path in (path for folder in PRODUCT for path in sorted((ROOT / folder).rglob("*.py"))):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        parsed[name] = ast.parse(path.read_text(), str(path))
    return parsed


def imports(module: ast.Module) -> Iterator[str]:
    """What a module imports anywhere in it: also within functions and for type checkers only."""
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None, "relative imports are not resolved here"
            assert node.level == 0, "relative imports are not resolved here"
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                yield name if name in modules() else node.module


def test_no_module_imports_itself_through_others() -> None:
    """Each module can be read after those that it imports."""
    graph = {name: {other for other in imports(module) if other in modules()} for name, module in modules().items()}

    assert len(graph) > 100
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        pytest.fail(" imported by ".join(error.args[1]))


def test_a_cycle_is_found() -> None:
    """By the walk above, in a function as elsewhere."""
    tree = ast.parse("def f():\n    from agent.cli import main\n    import agent.reports")

    assert ["agent.cli.main", "agent.reports"] == list(imports(tree))


def test_the_table_of_packages_is_true() -> None:
    """docs/architecture.md names every package of the product; one of agent imports only what its row names."""
    page = (ROOT / "docs" / "architecture.md").read_text()
    rows = re.findall(r"^\| (`[^|]+) \| [^|]+ \| ([^|]+) \|$", page, re.MULTILINE)
    allowed = {
        name.replace("probes.", ".") if name.startswith("probes.") else name: set(re.findall(r"\w+", may_import))
        for names, may_import in rows
        for name in re.findall(r"`([\w.]+)`", names)
    }
    packages = {f"agent.{p.name}" for p in (ROOT / "agent").iterdir() if (p / "__init__.py").is_file()}
    packages |= {f".{p.name}" for p in (ROOT / "probes").iterdir() if (p / "__init__.py").is_file()}

    assert set() == packages - set(allowed)
    for name, module in modules().items():
        package = ".".join(name.split(".")[:2])
        words = allowed.get(package, {"everything"}) | {package.partition(".")[2], "version", "toml_file"}
        for other in imports(module):
            top, _, rest = other.partition(".")
            if package.startswith("agent.") and top in PRODUCT and "everything" not in words:
                assert (top if top == "probes" else rest.partition(".")[0]) in words, (name, other)


def test_no_folder_is_crowded() -> None:
    """With more modules than one can look through; folders of data hold none."""
    sizes = Counter(path.parent.relative_to(ROOT).as_posix() for path in python_files())
    crowded = {folder: size for folder, size in sizes.items() if size > MODULES_PER_FOLDER}

    assert {} == crowded


def python_files() -> Iterator[Path]:
    """All of the project's own."""
    for folder in FOLDERS:
        yield from (path for path in (ROOT / folder).rglob("*.py") if "build" not in path.parts)


@pytest.mark.parametrize(
    "package", sorted(p.parent.relative_to(ROOT).as_posix() for p in python_files() if p.name == "__init__.py")
)
def test_a_package_states_what_belongs_in_it_and_what_does_not(package: str) -> None:
    """In two sentences or more, one of which excludes something or states where it is instead."""
    docstring = ast.get_docstring(ast.parse((ROOT / package / "__init__.py").read_text())) or ""
    sentences = re.split(r"(?<=[.:;])\s+(?=[A-Z`\d])", docstring.strip())

    assert docstring
    assert len(sentences) >= 2
    assert EXCLUDES.search(docstring)


def test_class_names_are_not_shared_by_many_modules() -> None:
    """A name that several modules define has to be looked up each time."""
    defined = defaultdict(set)
    for name, module in modules().items():
        for node in ast.walk(module):
            if isinstance(node, ast.ClassDef):
                defined[node.name].add(name)
    shared = {name: sorted(where) for name, where in defined.items() if len(where) > 1}

    assert len(shared) <= CLASS_NAMES_TWICE, shared


def test_every_runtime_dependency_is_imported() -> None:
    """Those of every install, and those of the extras that commands need."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    required = [*project["dependencies"], *extras["netbox"], *extras["fleet"]]
    distributions = {re.match(r"[\w.-]+", requirement)[0] for requirement in required}  # type: ignore[index]  # a name
    imported = {name.partition(".")[0] for module in modules().values() for name in imports(module)}

    assert distributions
    assert [] == sorted(d for d in distributions if IMPORTED_AS.get(d, d) not in imported)
