"""Modules of the program are what the library's own import makes of them, whatever became of their byte code."""

from __future__ import annotations

import importlib.util
import os
import py_compile
import subprocess
import sys
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType

import pytest

from agent.own_modules import ByteCodeLoader, OwnModuleFinder
from tests.conftest import ROOT


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A package with a module, both with byte code."""
    package = tmp_path / "machine"
    package.mkdir()
    for name, text in (("__init__.py", '"""Parts."""'), ("part.py", "VALUE = 1\n")):
        (package / name).write_text(text)
        py_compile.compile(str(package / name), doraise=True)
    (tmp_path / "machine" / "notes").mkdir()
    return tmp_path


def load(home: Path, name: str = "machine.part") -> ModuleType:
    """Import a module as the program does."""
    spec = OwnModuleFinder(str(home), ("machine",)).find_spec(name)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def byte_code(home: Path) -> Path:
    return Path(importlib.util.cache_from_source(str(home / "machine" / "part.py")))


def test_a_module_has_what_the_library_gives_it(home: Path) -> None:
    own = OwnModuleFinder(str(home), ("machine",)).find_spec("machine.part")
    library = PathFinder.find_spec("machine.part", [str(home / "machine")])
    module = load(home)

    assert own is not None
    assert library is not None
    assert (own.name, own.origin, own.cached, own.parent) == (library.name, library.origin, library.cached, "machine")
    assert (module.__file__, module.VALUE) == (str(home / "machine" / "part.py"), 1)


def test_byte_code_of_its_source_is_used(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the library's way, which asks twice as much."""
    monkeypatch.setattr("importlib.machinery.SourceFileLoader.get_data", lambda *_: pytest.fail("read by the library"))
    assert load(home).VALUE == 1


@pytest.mark.parametrize("damage", [
    lambda path: path.unlink(),
    lambda path: path.write_bytes(b""),
    lambda path: path.write_bytes(path.read_bytes()[:30]),
    lambda path: path.write_bytes(path.read_bytes()[:16] + b"\xff" * 40),
    lambda path: path.write_bytes(b"\0\0\r\n" + path.read_bytes()[4:]),
    lambda path: path.write_bytes(path.read_bytes()[:16] + b"N"),
])  # fmt: skip
def test_other_byte_code_is_not(damage: object, home: Path) -> None:
    damage(byte_code(home))  # type: ignore[operator]
    try:
        assert load(home).VALUE == 1
    except (EOFError, ValueError, ImportError):  # byte code that is damaged behind its head the library refuses, too
        with pytest.raises((EOFError, ValueError, ImportError)):
            ByteCodeLoader.__base__("machine.part", str(home / "machine" / "part.py")).get_code("machine.part")  # type: ignore[misc]


def test_a_source_that_changed_is_compiled(home: Path) -> None:
    source = home / "machine" / "part.py"
    source.write_text("VALUE = 23\n")
    assert load(home).VALUE == 23
    source.write_text("VALUE = 42\n")  # of the same size, at another time
    os.utime(source, (1_000_000_000, 1_000_000_000))
    assert load(home).VALUE == 42


def test_byte_code_that_was_compiled_elsewhere_names_this_source(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An image or a package is compiled in another folder than it runs in: read once, and not by the library."""
    moved = home / "moved"
    moved.mkdir()
    (home / "machine").rename(moved / "machine")
    source = moved / "machine" / "part.py"
    source.write_text("def show() -> None: ...\n")
    py_compile.compile(str(source), dfile="/elsewhere/part.py", doraise=True)
    monkeypatch.setattr("importlib.machinery.SourceFileLoader.get_data", lambda *_: pytest.fail("read by the library"))

    assert load(moved).show.__code__.co_filename == str(source)


@pytest.mark.parametrize("name", ["machine", "machine.none", "machine.notes", "other.part", "machine.part.more"])
def test_what_is_no_module_here_is_left_to_the_library(name: str, home: Path) -> None:
    assert OwnModuleFinder(str(home), ("machine",)).find_spec(name) is None


def test_a_package_leads_to_its_modules(home: Path) -> None:
    (home / "machine" / "inner").mkdir()
    (home / "machine" / "inner" / "__init__.py").write_text("VALUE = 7\n")
    inner = load(home, "machine.inner")

    assert (inner.VALUE, list(inner.__path__)) == (7, [str(home / "machine" / "inner")])


def test_the_program_imports_its_modules_so(real_commands: None) -> None:
    code = (
        "import fabricscope, sys; sys.argv[1:] = ['--version']; fabricscope.main();"
        "print(type(sys.modules['agent.cli.main'].__spec__.loader).__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.splitlines()[-1] == "ByteCodeLoader"
