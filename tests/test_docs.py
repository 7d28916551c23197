"""Documentation is a test: what is not documented fails the suite, and so does a word that is no plain English."""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import typer.main

from agent.cli.command_tree import Command, read_commands, walk_commands
from agent.cli.commands import app
from agent.model.finding import SEVERITIES
from agent.model.report import SCHEMA_MINOR
from agent.outputs.text.lines import to_plain_text
from agent.outputs.text.page import render_page
from probes.catalogue import probes
from tests.conftest import ROOT
from tests.machines import scan_machine
from tests.matrix.cases import causes
from tests.matrix.rule_rows import row

README = (ROOT / "README.md").read_text()
COMMAND_TABLE = (ROOT / "docs" / "commands.md").read_text()
PROBE_TABLE = (ROOT / "docs" / "probes.md").read_text()
COMMAND = typer.main.get_command(app)
COMMANDS: dict[str, object] = COMMAND.commands  # type: ignore[attr-defined]  # a group, as there are several commands
EVERY = list(walk_commands(read_commands(app)))
ALONE = [command for command in EVERY if not any(c.words[:-1] == command.words for c in EVERY)]  # no groups
# In backticks, or a line of a block: what may stand before a command, and its first word
COMMAND_LINE = (
    r"(?:^|`|[|] |&& |[$] |sudo )(?:[\w./]*/)?fabricscope "
    rf"((?:{'|'.join(sorted({c.words[0] for c in EVERY if c.words}))})\b[^`\n|;&()<>]*)"
)
COMPATIBILITY = (ROOT / "docs" / "compatibility.md").read_text()


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_in_the_table_and_every_option_has_help(command: str) -> None:
    """And every option that people type is explained by --help."""
    parameters = COMMANDS[command].params  # type: ignore[attr-defined]  # a click command

    assert f"`fabricscope {command}" in COMMAND_TABLE
    assert [] == [p.name for p in parameters if not getattr(p, "help", "") and p.param_type_name == "option"]


@pytest.mark.parametrize("command", ALONE, ids=lambda command: command.name)
def test_help_and_table_agree_on_exit_codes(command: Command) -> None:
    """What --help lists is in the table; what the table has beside 0 and 2, which hold for all, is in --help."""
    name = " ".join(command.words)
    row = next((line for line in COMMAND_TABLE.splitlines() if re.match(rf"\| `fabricscope {name}\b", line)), None)
    stated = re.search(r"\bExit (\d.*)", command.help, re.DOTALL)
    codes = set(re.findall(r"\b[0-3]\b", stated[1])) if stated else {"0"}
    listed = (
        set(re.findall(r"(?:^|[ ;,])([0-3])\b", row.rpartition("|")[0].rpartition("|")[2])) if row and name else codes
    )

    assert codes <= listed
    assert listed - codes <= {"0", "2"}


def test_the_page_compatibility_is_of_this_version() -> None:
    """The newest minor version of the report, the closed values, and the oldest Python."""
    minors = [int(number) for number in re.findall(r"^\| (\d+) \|", COMPATIBILITY, re.MULTILINE)]
    oldest = re.search(r'requires-python = ">=([\d.]+)"', (ROOT / "pyproject.toml").read_text())

    assert SCHEMA_MINOR == max(minors)
    assert f"`severity` ({', '.join(SEVERITIES)})" in COMPATIBILITY
    assert oldest
    assert f"| Python | {oldest[1]} and later" in COMPATIBILITY


@pytest.mark.parametrize("probe", [p.name for p in probes()])
def test_every_probe_is_in_the_table(probe: str) -> None:
    """`--only` and `--skip` take its name, so it has to stand somewhere."""
    assert f"`{probe}`" in PROBE_TABLE


def test_the_sample_in_the_readme_is_what_is_printed() -> None:
    """Line for line, in this order; `...` stands for what is left out."""
    sample = next(match for match in re.findall(r"```text\n(.*?)```", README, re.DOTALL) if match.startswith("ERROR"))
    printed = iter(to_plain_text(render_page(scan_machine("", "gpu-width-x8"), 80)).splitlines())

    assert "ERROR" in sample
    assert [] == [line for line in sample.splitlines() if line != "..." and line not in printed]


def test_commands_of_all_pages_have_the_options_that_they_name() -> None:
    """In blocks and in the text of every page, whatever is not run by tests/release/test_docs_run.py too."""
    options = {c.words: {name for option in c.options for name in option.names} for c in EVERY}
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "agent" / "rules").rglob("*.md")]
    wrong = []
    for page in pages:
        for match in re.finditer(COMMAND_LINE, page.read_text(), re.MULTILINE):
            words = tuple(match[1].partition(" #")[0].split())
            command = max((c for c in options if words[: len(c)] == c), key=len)
            named = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
            if named - options[command] - {"--debug", "--help", "-h", "--version"}:
                wrong.append(f"{page.name}: {match[0]}")

    assert [] == wrong


def test_links_between_documents_lead_somewhere() -> None:
    """A relative link in a Markdown file names a file that is there."""
    pages = [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "agent").rglob("*.md"),
    ]
    links = [(page, link) for page in pages for link in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text())]

    assert [] == [f"{page.relative_to(ROOT)}: {link}" for page, link in links if not (page.parent / link).exists()]


def test_decisions_are_numbered_without_holes() -> None:
    """0001, 0002, ..."""
    numbers = sorted(int(path.name[:4]) for path in Path(ROOT / "docs" / "decisions").glob("*.md"))

    assert list(range(1, len(numbers) + 1)) == numbers


def test_the_faults_of_clusters_are_found_as_the_page_states() -> None:
    """Each rule of a line of the page of scope is found by a proof of that line; the sums are right."""
    page = (ROOT / "docs" / "scope.md").read_text().partition("## Out of scope")[0]
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if line[:2] == "| "]
    answers = Counter(
        answer if answer == "cause" else re.split("[,;:]", answer)[0] + " ..." for _, answer, *_ in lines[1:]
    )

    assert 36 == len(lines) - 1
    assert (
        f"Of the 36: cause {answers['cause']}, cause with a condition {answers['cause ...']}, vague "
        f"{answers['vague ...']}, unknown {answers['unknown ...']}, not found {answers['not found ...']}.\n"
    ) in page
    assert {"cause", "cause ...", "vague ...", "unknown ...", "not found ..."} >= answers.keys()
    for fault, answer, rules, proofs in lines[1:]:
        named, proved = _quoted(rules), [_find_rules(proof, answer) for proof in _quoted(proofs)]
        assert bool(named) != answer.startswith("not found"), fault
        assert set(named) <= set().union(*proved), fault
        assert all(result & set(named) for result in proved), fault


def _quoted(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def _find_rules(proof: str, answer: str) -> set[str]:
    """The rules by which a cause of tests/matrix, or a row of a rule's table, is answered as the page states."""
    rule, colon, name = proof.partition(": ")
    if colon:
        wanted = row(rule, name)[1]
        return {rule} if (wanted.unknown if answer.startswith("unknown") else wanted.finds) else set()
    cause = causes()[proof]
    return {item[0] for item in (*cause.finds, *cause.informs)}


# Texts for people are in plain English: words that do not occur in them (tests/words.toml).


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
