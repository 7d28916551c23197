"""The documentation site, by MkDocs and its Material theme: `python -m release.site DIR [--pages-only]`.

The pages are those of `docs/`, of the rules and the fleet's tables beside their code, and what commands print: the
reference of commands, the schema, the coverage of other tools' checks, a sample report. A link to a file that is no
page becomes its name.
"""

from __future__ import annotations

import csv
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from agent.cli.command_tree import read_commands, walk_commands
from agent.cli.commands import app
from agent.cli.configuration import format_configuration
from agent.config import Configuration
from agent.rules.catalogue import FAMILIES, every_rule
from agent.rules.rule import Rule

ROOT = Path(__file__).resolve().parent.parent
_FAULTS = "gpu-link-narrow=3 port-down=4 nvlink-fewer=2 nic-firmware-node=6 pfc-off=2 stale=3"
FLEET = (
    *("--nodes", "256", "--seed", "7", "--mix", "h100-ib=0.7", "--mix", "h200-roce=0.3"),
    *(word for fault in _FAULTS.split() for word in ("--fault", fault)),
)
SAMPLE = ("8xh100-sxm-2s-8xcx7-ib-4nvsw", "gpu-width-x8")  # a machine of fixtures/hosts and a fault of fixtures/faults
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^)#:\s]*)(#[^)\s]*)?\)")
_PEERS = "tests/peers.tsv"


def page(rule: Rule) -> str:
    """One page, its head as a table."""
    title, _, body = rule.page.partition("\n")
    facts = [
        ("Severity", rule.severity),
        ("Essential", "yes: the verdict is unknown where this rule is" if rule.essential else "no"),
        ("Needs", ", ".join(need.replace("|", " or ") for need in rule.needs)),
        ("Stands for", ", ".join(f"[{name}]({name}.md)" for name in rule.absorbs) or "-"),
        ("References", ", ".join(rule.references)),
    ]
    table = "".join(f"| {key} | {value} |\n" for key, value in facts)
    return f"# {rule.name}\n\n{title}\n\n| | |\n|---|---|\n{table}\n{body.strip()}\n"


def index() -> str:
    """The list of all rules, by family."""
    lines = ["# Rules", ""]
    rules = {rule.name: rule for rule in every_rule()}
    for family in FAMILIES:
        lines += [f"## {family.name}", "", "| rule | severity | essential | what is wrong |", "|---|---|---|---|"]
        for name in family.rules:
            rule = rules[name]
            essential = "yes" if rule.essential else ""
            lines.append(f"| [{name}]({name}.md) | {rule.severity} | {essential} | {rule.title} |")
        lines.append("")
    return "\n".join(lines)


def coverage() -> str:
    """Each check of other tools with the rules here that find the same fault, or the reason why there is none."""
    with (ROOT / _PEERS).open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))[1:]
    tools = list(dict.fromkeys(row[0] for row in rows))
    lines = [
        "# Coverage",
        "",
        "Every check of links, NICs, GPUs and their settings that the surveyed tools make on a node, with the rules",
        "here that find the same fault. Facts of their sources and documentation as of 2026; a tool may have changed.",
        "",
        "| tool | checks | found by a rule here | not found here, with the reason below |",
        "|---|---|---|---|",
    ]
    for tool in tools:
        own = [row for row in rows if row[0] == tool]
        found = sum(bool(row[2]) for row in own)
        lines.append(f"| {tool} | {len(own)} | {found} | {len(own) - found} |")
    for tool in tools:
        lines += ["", f"## {tool}", "", "| check | rules | remark |", "|---|---|---|"]
        for _, check, names, remark in (row for row in rows if row[0] == tool):
            links = ", ".join(f"[{name}](rules/{name}.md)" for name in names.split())
            lines.append(f"| {check} | {links or '-'} | {remark} |")
    return "\n".join(lines) + "\n"


def command_reference() -> str:
    """Every command with its options, as `--help` has them."""
    lines = [
        "# Command reference",
        "",
        "Generated from the commands. [The overview](commands.md) has their exit codes.",
        "",
    ]
    for command in walk_commands(read_commands(app)):
        if not command.words or command.commands:
            continue
        lines += [f"## fabricscope {command.name}", "", command.help, ""]
        if command.arguments or command.options:
            lines += ["| option | what it does | default |", "|---|---|---|"]
        for argument in command.arguments:
            lines.append(
                f"| `{argument.value.metavar}` | {_cell(argument.help)} | {'required' if argument.required else ''} |"
            )
        for option in command.options:
            names = ", ".join(option.names) + (f" {option.value.metavar}" if option.value else "")
            lines.append(f"| `{_cell(names)}` | {_cell(option.help)} | {_cell(option.default or '')} |")
        lines.append("")
    return "\n".join(lines)


def configuration_reference() -> str:
    """Every key of the configuration file with its default."""
    toml = format_configuration(Configuration(), None, every_rule()).partition("\n\n")[2]
    return f"""# Configuration

`--config FILE` names one TOML file. Every key with its default, as `fabricscope config show` prints it; with
`--config` that command prints what is in effect. A misspelt key, rule or value is an error with the file's line. What
the file changes is listed in the report (`config.changed`).

```toml
{toml}```
"""


def write_pages(folder: Path) -> None:
    """Write every page of the site as Markdown; `folder` is emptied first.

    Raises:
        FileNotFoundError: a page links to a file that does not exist.
    """
    shutil.rmtree(folder, ignore_errors=True)
    pages = {
        ROOT / "README.md": "index.md",
        ROOT / "CHANGELOG.md": "changelog.md",
        ROOT / "CONTRIBUTING.md": "contributing.md",
    }
    pages |= {ROOT / "bench" / "README.md": "cost.md", ROOT / "agent" / "rules": "rules/README.md"}
    pages[ROOT / "agent" / "fleet" / "tables.md"] = "fleet-tables.md"
    pages |= {path: path.relative_to(ROOT / "docs").as_posix() for path in sorted((ROOT / "docs").rglob("*.*"))}
    for path in (ROOT / "agent" / "rules").rglob("*.md"):
        pages[path] = f"{'meanings' if path.parent.name == 'meanings' else 'rules'}/{path.name}"
    for path, name in pages.items():
        if path.is_file() and not name.startswith("rules/"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            if path.suffix == ".md":
                (folder / name).write_text(
                    relink(path.read_text(encoding="utf-8"), path, name, pages), encoding="utf-8"
                )
            else:
                shutil.copyfile(path, folder / name)
    rules = folder / "rules"
    rules.mkdir()
    (rules / "README.md").write_text(index(), encoding="utf-8")
    for rule in every_rule():
        (rules / f"{rule.name}.md").write_text(page(rule), encoding="utf-8")
    (folder / "coverage.md").write_text(coverage(), encoding="utf-8")
    (folder / "configuration.md").write_text(configuration_reference(), encoding="utf-8")
    (folder / "command-reference.md").write_text(command_reference(), encoding="utf-8")


def relink(text: str, path: Path, name: str, pages: dict[Path, str]) -> str:
    """A page's links between files of the repository as links between pages of the site."""

    def replace(match: re.Match[str]) -> str:
        image, words, target, anchor = match[1], match[2], match[3], match[4] or ""
        if not target:
            return match[0]
        file = Path(os.path.normpath(path.parent / target))
        if file in pages:
            return f"{image}[{words}]({os.path.relpath(pages[file], os.path.dirname(name) or '.')}{anchor})"
        if not file.exists():
            raise FileNotFoundError(f"{path.relative_to(ROOT)}: no file {target}")
        return f"{words} (`{file.relative_to(ROOT)}`)"

    return _LINK.sub(replace, text)


def write_sample(folder: Path) -> None:
    """A sample report as a page, and as JSON: a described machine with one fault, scanned as any source."""
    folder.mkdir(parents=True, exist_ok=True)
    capture = folder / "capture.tar.gz"
    machine, fault = SAMPLE
    _run("-m", "fixtures.build", machine, "--fault", fault, str(capture))
    for form in ("html", "json"):
        _run("-m", "fabricscope", "scan", "--source", str(capture), "--output", str(folder / f"report.{form}"))
    capture.unlink()


def write_fleet(page: Path) -> None:
    """A sample fleet as a page: 256 made nodes of two classes with some faults, arranged by their leaf switches."""
    with tempfile.TemporaryDirectory() as folder:
        fabric, reports, dataset = (os.path.join(folder, name) for name in ("fabric.txt", "reports", "dataset"))
        _run("-m", "bench.fleet.make", *FLEET, "--fabric", fabric, "--out", reports)
        _run("-m", "fabricscope", "fleet", "ingest", "--quiet", reports, "--dataset", dataset)
        title = ("--title", "A fleet with some faults")
        _run("-m", "fabricscope", "fleet", "html", "--dataset", dataset, "--fabric", fabric, *title, "-o", str(page))


def main(arguments: Sequence[str]) -> int:
    """Write the site into the folder that is named; 2 for wrong usage, 1 where MkDocs finds a broken link."""
    folders = [argument for argument in arguments if not argument.startswith("-")]
    if len(folders) != 1 or set(arguments) - {*folders, "--pages-only"}:
        sys.stderr.write("usage: python -m release.site DIR [--pages-only]\n")
        return 2
    site = Path(folders[0]).absolute()
    pages = site.with_name(f"{site.name}-pages")
    write_pages(pages)
    if "--pages-only" in arguments:
        return 0
    write_sample(pages / "sample")
    write_fleet(pages / "sample" / "fleet.html")
    options = ["--strict", "--quiet", "--config-file", str(ROOT / "mkdocs.yml"), "--site-dir", str(site)]
    environment = {**os.environ, "FABRICSCOPE_PAGES": str(pages), "NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run([sys.executable, "-m", "mkdocs", "build", *options], env=environment, check=False).returncode


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _run(*arguments: str) -> None:
    subprocess.run([sys.executable, *arguments], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
