"""Finds this program's own modules with few questions to the file system, and reads their byte code.

A scan imports two hundred modules. The library asks each of five places for each of them, and looks at every path
again: a tenth of a scan. What is not plain here (no byte code, an older one, another kind) is left to the library.
"""

from __future__ import annotations

import marshal
import os
import sys
from _frozen_importlib_external import MAGIC_NUMBER  # that of importlib.util, which would be a start of its own
from _imp import _fix_co_filename  # type: ignore[attr-defined]  # the library's own
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import CodeType, ModuleType

_HEAD = MAGIC_NUMBER + bytes(4)  # no flags: the byte code states the time and size of its source
_HEAD_BYTES = 16
_MOST_BYTES = 1 << 16  # of byte code that is read here: a larger buffer would be mapped for each module


class ByteCodeLoader(SourceFileLoader):
    """The library's, which reads byte code that is of its source as it is now with three questions."""

    def __init__(self, fullname: str, path: str, cached: str) -> None:
        super().__init__(fullname, path)
        self._cached = cached

    def get_code(self, fullname: str) -> CodeType | None:
        """See importlib.abc.InspectLoader."""
        code = self._read_code()
        return super().get_code(fullname) if code is None else code

    def _read_code(self) -> CodeType | None:
        """None where there is no byte code, or none of this source."""
        try:
            descriptor = os.open(self._cached, os.O_RDONLY | os.O_CLOEXEC)
            try:
                data = os.read(descriptor, _MOST_BYTES)
            finally:
                os.close(descriptor)
            source = os.stat(self.path)
        except OSError:
            return None
        of_source = int(source.st_mtime) & 0xFFFFFFFF | (source.st_size & 0xFFFFFFFF) << 32
        if not data.startswith(_HEAD + of_source.to_bytes(8, "little")) or len(data) == _MOST_BYTES:
            return None
        try:
            code = marshal.loads(memoryview(data)[_HEAD_BYTES:])  # noqa: S302 - our own modules, as the library reads them
        except (EOFError, TypeError, ValueError):
            return None
        if not isinstance(code, CodeType):
            return None
        _fix_co_filename(code, self.path)  # written where the modules were before, or by a path from another folder
        return code


class OwnModuleFinder:
    """Finds modules of some packages by one listing of each folder."""

    def __init__(self, home: str, packages: tuple[str, ...]) -> None:
        """`home`: the folder that holds the packages."""
        self._home = home
        self._beginnings = tuple(f"{package}." for package in packages)
        self._listed: dict[str, frozenset[str]] = {}

    def find_spec(
        self, fullname: str, _path: Sequence[str] | None = None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """See importlib.abc.MetaPathFinder."""
        if not fullname.startswith(self._beginnings):
            return None
        place = f"{self._home}/{fullname.replace('.', '/')}"
        folder, _, name = place.rpartition("/")
        names = self._list(folder)
        is_package = name in names and "__init__.py" in self._list(place)
        if is_package:
            folder, name = place, "__init__"
        elif f"{name}.py" not in names:
            return None
        source, cached = f"{folder}/{name}.py", f"{folder}/__pycache__/{name}.{sys.implementation.cache_tag}.pyc"
        spec = ModuleSpec(fullname, ByteCodeLoader(fullname, source, cached), origin=source, is_package=is_package)
        spec.has_location, spec.cached = True, cached
        if is_package:
            spec.submodule_search_locations = [place]
        return spec

    def _list(self, folder: str) -> frozenset[str]:
        if folder not in self._listed:
            try:
                self._listed[folder] = frozenset(os.listdir(folder))
            except OSError:
                self._listed[folder] = frozenset()
        return self._listed[folder]


def install_finder(home: str, packages: tuple[str, ...]) -> None:
    """Find modules of these packages of a folder so, where byte code is in its usual place and of the usual kind."""
    if sys.pycache_prefix is None and not sys.flags.optimize:
        sys.meta_path.insert(0, OwnModuleFinder(home, packages))
