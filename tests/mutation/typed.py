"""Mutants that no test notices and mypy does: a look for None without which the code has no type.

Asked only of mutants that leave out such a look; of one that ends in an answer of its own, a test is wanted.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.mutation.mutants import Mutant, mutants

ROOT = Path(__file__).resolve().parents[2]


def refused(wanted: list[Mutant]) -> set[str]:
    """Names of the mutants for which mypy finds more errors than for the code as it is."""
    if not wanted:
        return set()
    texts: dict[str, str] = {}
    plain: dict[str, str] = {}
    for number, mutant in enumerate(wanted):
        source = ROOT.joinpath(*mutant.module.split(".")).with_suffix(".py").read_text()
        fresh = next(m for m in mutants(mutant.module, source) if m.name == mutant.name)
        base = f"{mutant.module}.{fresh.statement.lineno}".replace(".", "_")
        texts[base] = _with(source, fresh.statement)
        fresh.apply()
        texts[f"m{number}"] = _with(source, fresh.statement)
        plain[f"m{number}"] = base
    errors = _errors(texts)
    return {m.name for n, m in enumerate(wanted) if errors[f"m{n}"] > errors[plain[f"m{n}"]]}


def _with(source: str, statement: ast.stmt) -> str:
    """The source with one statement written anew: mypy needs the comments of the others."""
    lines = source.splitlines()
    decorators = getattr(statement, "decorator_list", [])
    first = min(node.lineno for node in (statement, *decorators))
    text = ast.unparse(ast.fix_missing_locations(statement))
    return "\n".join([*lines[: first - 1], text, *lines[statement.end_lineno :], ""])


def _errors(texts: dict[str, str]) -> Counter[str]:
    with TemporaryDirectory() as folder:
        for name, text in texts.items():
            Path(folder, f"{name}.py").write_text(text)
        command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), "--no-error-summary"]
        command += ["--no-pretty", "--show-absolute-path", *(str(Path(folder, f"{name}.py")) for name in texts)]
        completed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    if completed.returncode not in (0, 1):
        raise RuntimeError(f"mypy: {completed.stdout[-500:]}{completed.stderr[-500:]}")
    return Counter(Path(line.partition(":")[0]).stem for line in completed.stdout.splitlines() if ": error:" in line)
