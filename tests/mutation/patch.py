"""Puts a mutant into the modules that are already imported; only ever in a process that ends after it."""

from __future__ import annotations
import __future__

import ast
import sys
from collections.abc import Iterable
from functools import cached_property
from types import CodeType, FunctionType, ModuleType

from agent.rules.rule import Rule
from tests.mutation.mutants import Mutant

_ANNOTATIONS = __future__.annotations.compiler_flag


def put(mutant: Mutant) -> None:
    """Change the module in place: whoever imported a name of it gets the change too."""
    mutant.apply()
    module = sys.modules[mutant.module]
    tree = ast.fix_missing_locations(ast.Module([mutant.statement], []))
    code = compile(tree, module.__file__ or "", "exec", flags=_ANNOTATIONS, dont_inherit=True)
    if mutant.owner:
        function = _function(module, mutant.owner)
        function.__code__ = _code(code, mutant.owner)
    else:
        _rebind(module, mutant, code)


def _function(module: ModuleType, names: tuple[str, ...]) -> FunctionType:
    """The function itself, below what decorators made of it."""
    found: object = module
    for name in names:
        found = vars(found)[name]
    while not isinstance(found, FunctionType):
        if isinstance(found, Rule):
            found = found.check
        elif isinstance(found, property):
            found = found.fget
        elif isinstance(found, cached_property):
            found = found.func
        else:
            found = found.__wrapped__  # type: ignore[attr-defined]  # functools.cache, staticmethod
    return found


def _code(code: CodeType, names: Iterable[str]) -> CodeType:
    for name in names:
        code = next(c for c in code.co_consts if isinstance(c, CodeType) and c.co_name == name)
    return code


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
