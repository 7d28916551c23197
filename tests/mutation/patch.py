"""Puts a mutant into the modules that are already imported; only ever in a process that ends after it."""

from __future__ import annotations
import __future__

import ast
import gc
import sys
from collections.abc import Iterator
from functools import cache, cached_property
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

from tests.mutation.mutants import Mutant, judges

_ANNOTATIONS = __future__.annotations.compiler_flag
_Cached: type = type(cache(int))


def put(mutant: Mutant) -> None:
    """Change the module in place: whoever imported a name of it gets the change too."""
    module = sys.modules[mutant.module]
    before = _compiled(module, mutant.statement)
    inner = {node: _names(node) for node in ast.walk(mutant.statement) if isinstance(node, ast.FunctionDef)}
    inner.pop(mutant.statement, None)
    mutant.apply()
    for function, names in inner.items():
        _keep(function, names - _names(function))
    after = _compiled(module, mutant.statement)
    if mutant.owner:
        _exchange(module, before, after)
    else:
        _rebind(module, mutant, after)
    forget()


def forget() -> None:
    """Empty the caches of the rules: what was worked out before hides who asks for it, and what was changed."""
    objects = _objects()
    for cached in objects.caches:
        cached.cache_clear()
    for values, names in objects.properties:
        for name in names:
            values.pop(name, None)


class _Objects(NamedTuple):
    functions: dict[tuple[str, str, int], list[FunctionType]]  # by file, name and line of their code
    caches: list[Any]  # what functools.cache made: a value from before hides a change
    properties: list[tuple[dict[str, Any], frozenset[str]]]  # likewise of cached_property: where, and their names


@cache
def _objects() -> _Objects:
    """Every function that exists, whatever holds it: a name, a decorator, a table, a partial, a closure."""
    result = _Objects({}, [], [])
    gc.unfreeze()  # what tests/conftest.py took out of sight
    gc.collect()
    for get_object in gc.get_objects():
        if type(get_object) is FunctionType:
            code = get_object.__code__
            result.functions.setdefault((code.co_filename, code.co_name, code.co_firstlineno), []).append(get_object)
        elif type(get_object) is _Cached and judges(str(get_object.__module__)):
            result.caches.append(get_object)
        elif judges(str(type(get_object).__module__)) and (names := _cached_properties(type(get_object))):
            result.properties.append((get_object.__dict__, names))
    gc.freeze()  # a child that searches through it copies all of its memory
    return result


@cache
def _cached_properties(kind: type) -> frozenset[str]:
    return frozenset(n for part in kind.__mro__ for n, value in vars(part).items() if type(value) is cached_property)


def look_around() -> None:
    """Note every function that exists: once for all the processes that are forked afterwards."""
    _objects.cache_clear()
    _objects()


def _exchange(module: ModuleType, before: CodeType, after: CodeType) -> None:
    """Every function that runs a piece of the old code runs the new one, and takes its defaults as they were."""
    changed = 0
    for old, new in _pairs(before, after):
        name = (module.__file__ or "", old.co_name, old.co_firstlineno)
        alike = _objects().functions.get(name, [])
        if len({function.__code__ for function in alike}) > 1:  # several lambdas in a line
            alike = [function for function in alike if function.__code__ == old]
        for function in alike:
            if function.__code__.co_freevars == new.co_freevars:
                function.__code__ = new
                changed += 1
    if not changed:
        raise LookupError("no function runs this code")


def _pairs(before: CodeType, after: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """Each piece of code in another with what it is now, outer ones first; what a change left out has no other."""
    old, new = ([c for c in code.co_consts if isinstance(c, CodeType)] for code in (before, after))
    for one in old:
        same = [other for other in new if (other.co_name, other.co_firstlineno) == _place(one)]
        rank = [other for other in old if _place(other) == _place(one)].index(one)
        if rank < len(same):
            if one != same[rank]:
                yield one, same[rank]
            yield from _pairs(one, same[rank])


def _names(function: ast.FunctionDef) -> set[str]:
    return {node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


def _keep(function: ast.FunctionDef, names: set[str]) -> None:
    """Names that a change left out stay the closure's: a function takes only code with as many of them."""
    if names:
        never = ast.parse(f"if False: {', '.join(sorted(names))}").body[0]
        function.body.append(ast.copy_location(never, function))


def _place(code: CodeType) -> tuple[str, int]:
    return code.co_name, code.co_firstlineno


def _compiled(module: ModuleType, statement: ast.stmt) -> CodeType:
    tree = ast.fix_missing_locations(ast.Module([statement], []))
    return compile(tree, module.__file__ or "", "exec", flags=_ANNOTATIONS, dont_inherit=True)


def _rebind(module: ModuleType, mutant: Mutant, code: CodeType) -> None:
    """Run one assignment again, and those that build on it; give the new values to all who imported the old ones."""
    names = dict(vars(module))
    before = dict(names)
    exec(code, names)  # a statement of our own source
    changed = _assigned(mutant.statement)
    with open(module.__file__ or "", encoding="utf-8") as source:
        later = [s for s in ast.parse(source.read()).body if s.lineno > mutant.statement.lineno and _assigned(s)]
    for statement in later:
        if changed & {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}:
            exec(compile(ast.Module([statement], []), module.__file__ or "", "exec", _ANNOTATIONS, True), names)
            changed |= _assigned(statement)
    for name in changed:
        for other in list(sys.modules.values()):
            known = getattr(other, "__dict__", {})
            if other.__name__.startswith(("agent.", "tests.")) and known.get(name, other) is before[name]:
                known[name] = names[name]


def _assigned(statement: ast.stmt) -> set[str]:
    """Names that an assignment of a module gives."""
    if isinstance(statement, ast.Assign):
        return {target.id for target in statement.targets if isinstance(target, ast.Name)}
    named = isinstance(statement, ast.AnnAssign) and statement.value and isinstance(statement.target, ast.Name)
    return {statement.target.id} if named else set()
