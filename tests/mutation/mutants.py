"""What is changed in a rule to see whether a test notices: conditions deleted, limits moved, guards left out.

Texts for people (summaries, reasons, evidence) are left alone: no answer hangs on them.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

# Keywords of Fail and Evidence, and of Threshold, that only people read
_TEXTS = frozenset({"summary", "impact", "remedy", "label", "evidence", "what", "value", "source", "reason"})
_REASONED = frozenset({"Unknown", "NotApplicable", "Evidence"})  # all but the first argument is text
_ANSWERS = frozenset({"unknown", "not_applicable"})  # of a subject: every argument is text
_MOVED = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
# Modules that judge nothing by themselves: pages, catalogues, and the engine, which has tests of its own
_NO_RULES = frozenset({"pages", "meaning", "catalogue", "engine", "fingerprints", "renamed", "rule", "__init__"})
_LEAVE = (ast.Return, ast.Continue, ast.Break)

Change = Callable[[], None]


class Found(NamedTuple):
    """A change before it has a name: what it is called, where, how, and whether it leaves out a look for None only."""

    text: str
    node: ast.AST
    apply: Change
    narrows: bool = False


class Mutant(NamedTuple):
    """One change of one module; applying it changes the tree that it was found in."""

    name: str  # "agent.rules.roce.interfaces._why: `mtu < 4192` -> `mtu <= 4192`"; the same while the code is
    module: str
    statement: ast.stmt  # of the module; what has to be compiled again
    owner: tuple[str, ...]  # the function in it, by names from outside in; () for a constant of the module
    lines: range  # of the code that is changed
    apply: Change
    narrows: bool  # what is left out asks only whether something is there: the types may need it, and nothing else


def judges(module: str) -> bool:
    """Whether a module is one of rules, or of what they share."""
    return module.startswith("agent.rules.") and module.rpartition(".")[2] not in _NO_RULES


def mutants(module: str, source: str) -> list[Mutant]:
    """Every mutant of a module, in the order of its code."""
    result: list[Mutant] = []
    counted: Counter[str] = Counter()
    for statement in ast.parse(source).body:
        for owner, (text, node, apply, narrows) in _of_statement(statement):
            name = f"{'.'.join((module, *owner))}: {text}"
            counted[name] += 1
            if counted[name] > 1:
                name += f" (#{counted[name]})"
            lines = range(getattr(node, "lineno", 1), (getattr(node, "end_lineno", None) or 1) + 1)
            result.append(Mutant(name, module, statement, owner, lines, apply, narrows))
    return result


def _of_statement(statement: ast.stmt) -> Iterator[tuple[tuple[str, ...], Found]]:
    if isinstance(statement, ast.FunctionDef):
        yield from (((statement.name,), item) for item in _of_body(statement))
    elif isinstance(statement, ast.ClassDef):
        for inner in statement.body:
            yield from (((statement.name, *owner), item) for owner, item in _of_statement(inner) if owner)
    elif isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        name = ast.unparse(targets[0])
        if all(isinstance(target, ast.Name) for target in targets):
            yield from (((), item) for item in _of_constant(name, statement))
        yield from (((name, "<lambda>"), of_lambda) for of_lambda in _of_lambdas(statement.value))
    elif isinstance(statement, ast.Expr):
        yield from ((("<lambda>",), of_lambda) for of_lambda in _of_lambdas(statement.value))


def _of_constant(name: str, statement: ast.Assign | ast.AnnAssign) -> Iterator[Found]:
    value = statement.value
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "Threshold":
        yield from _steps(value.args, 1, f"{name}: ")
    elif _number(value):
        yield from _steps(statement, "value", f"{name}: ")


def _of_lambdas(value: ast.expr) -> Iterator[Found]:
    """Functions without a name in a table of the module."""
    for node in ast.walk(value):
        if isinstance(node, ast.Lambda):
            if _is_condition(node.body):
                yield from _condition(node, "body", node.body, deletable=True)
            else:
                yield from _visit(node.body)


def _of_body(function: ast.FunctionDef) -> Iterator[Found]:
    for index, statement in enumerate(function.body):
        if index or not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)):
            yield from _visit(statement)


def _visit(node: ast.AST) -> Iterator[Found]:
    """What can be changed in a node and below it; conditions are taken where they stand."""
    if isinstance(node, ast.Assert) or _is_sentence(node):
        return
    if isinstance(node, ast.If | ast.For):
        yield from _left_out(node)
    for field, value in ast.iter_fields(node):
        if field in ("returns", "annotation", "decorator_list"):
            continue
        if field == "test" or (field == "elt" and isinstance(node, ast.GeneratorExp)):
            yield from _condition(node, field, value, deletable=field == "test" or _is_condition(value))
            continue
        places = enumerate(value) if isinstance(value, list) else [(None, value)]
        for index, child in places:
            if not isinstance(child, ast.AST) or _is_text(node, field, index, child):
                continue
            where: object = value if index is not None else node
            if field == "ifs" or _is_condition(child):
                yield from _condition(where, field if index is None else index, child, deletable=True)
            elif isinstance(child, ast.BoolOp):
                yield from _condition(where, field if index is None else index, child, deletable=False)
            else:
                yield from _visit(child)


def _condition(where: object, key: str | int, node: ast.expr, *, deletable: bool) -> Iterator[Found]:
    """A condition as a whole, and what it is made of; `while True` is none."""
    if isinstance(node, ast.Constant):
        return
    inner = node.operand if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not) else node
    joined = inner if isinstance(inner, ast.BoolOp) else None
    if deletable:
        # `a and b -> True` is told from the original wherever `-> a` is; the same for `or` and False
        wanted = {True, False}
        if joined is not None:
            wanted = {isinstance(joined.op, ast.Or) == (inner is node)}
        for constant in sorted(wanted):
            narrows = constant and _is_look(node) and not isinstance(where, ast.If)
            yield _replaced(where, key, node, ast.Constant(constant))._replace(narrows=narrows)
    if joined is not None:
        yield from _operands((inner is node and (where, key)) or (node, "operand"), joined)
    elif isinstance(inner, ast.Compare):
        yield from _compared(inner)
    elif inner is node:
        yield from _visit(node)
    else:
        yield from _condition(node, "operand", inner, deletable=False)


def _operands(place: tuple[object, str | int], joined: ast.BoolOp) -> Iterator[Found]:
    if isinstance(joined.op, ast.Or) and isinstance(
        joined.values[-1], ast.Constant | ast.JoinedStr | ast.Dict | ast.Tuple
    ):
        for index, operand in enumerate(joined.values):  # `x or ""`: what stands for nothing is for the types
            yield from _condition(joined.values, index, operand, deletable=False)
        return
    for index, operand in enumerate(joined.values):
        rest = [other for other in joined.values if other is not operand]
        without = rest[0] if len(rest) == 1 else ast.BoolOp(joined.op, rest)
        text = f"`{_short(joined)}` without `{_short(operand)}`"
        yield Found(text, operand, partial(_put, *place, without), _is_look(operand))
        yield from _condition(joined.values, index, operand, deletable=False)


def _compared(node: ast.Compare) -> Iterator[Found]:
    for index, operator in enumerate(node.ops):
        if type(operator) in _MOVED:
            moved = _MOVED[type(operator)]()
            other = ast.Compare(node.left, [*node.ops[:index], moved, *node.ops[index + 1 :]], node.comparators)
            text = f"`{_short(node)}` -> `{_short(other)}`"
            yield Found(text, node, partial(_put, node.ops, index, moved))
    for index, limit in enumerate(node.comparators):
        if _number(limit):
            yield from _steps(node.comparators, index, f"`{_short(node)}`: ")
        else:
            yield from _visit(limit)
    yield from _visit(node.left)


def _steps(where: object, key: str | int, prefix: str) -> Iterator[Found]:
    """A number one step up and one down: 1 for whole numbers, a tenth for others."""
    node = where[key] if isinstance(where, list) else getattr(where, str(key))
    if _number(node):
        step = 1 if isinstance(node.value, int) else node.value / 10 or 0.1
        for moved in (node.value - step, node.value + step):
            yield _replaced(where, key, node, ast.Constant(moved), prefix)


def _left_out(node: ast.If | ast.For) -> Iterator[Found]:
    """The `return` or `continue` that ends a guard of several statements."""
    last = node.body[-1]
    if len(node.body) > 1 and isinstance(last, _LEAVE) and getattr(last, "value", None) is None:
        word = type(last).__name__.lower()
        text = f"no {word} after `{_short(node.test if isinstance(node, ast.If) else node.target)}`"
        yield Found(text, last, partial(_put, node.body, len(node.body) - 1, ast.copy_location(ast.Pass(), last)))


def _replaced(where: object, key: str | int, node: ast.expr, new: ast.expr, prefix: str = "") -> Found:
    change = partial(_put, where, key, ast.copy_location(new, node))
    return Found(f"{prefix}`{_short(node)}` -> `{_short(new)}`", node, change)


def _put(where: object, key: str | int, new: ast.AST) -> None:
    if isinstance(where, list):
        where[int(key)] = new
    else:
        setattr(where, str(key), new)


def _is_condition(node: object) -> bool:
    """An expression that is true or false, wherever it stands."""
    if isinstance(node, ast.BoolOp):
        return all(_is_condition(value) for value in node.values)
    return isinstance(node, ast.Compare) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not))


def _is_look(node: ast.expr) -> bool:
    """`link`, `not link`, `link is None`, `link is not None`."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        node = node.operand
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Is | ast.IsNot):
        node = node.left
    return isinstance(node, ast.Name | ast.Attribute | ast.NamedExpr)


def _is_text(node: ast.AST, field: str, index: int | None, child: ast.AST) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _ANSWERS:
        return field in ("args", "keywords")
    if isinstance(child, ast.keyword):
        return child.arg in _TEXTS
    named = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _REASONED
    return named and field == "args" and bool(index)


def _is_sentence(node: ast.AST) -> bool:
    """What only people read: a text with blanks, or a choice of such."""
    if isinstance(node, ast.IfExp):
        return _is_sentence(node.body) and _is_sentence(node.orelse)
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value
    )


def _number(node: object) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def _short(node: ast.AST) -> str:
    text = ast.unparse(node)
    return text if len(text) <= 90 else f"{text[:60]}...{text[-27:]}"
