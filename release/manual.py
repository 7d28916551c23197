"""The manual page, from the commands themselves and the few sections below."""

from __future__ import annotations

import re
import textwrap

from agent.cli.command_tree import Argument, Command, Option, read_commands, walk_commands
from agent.cli.commands import app
from agent.version import VERSION

DATE = "2026-11-22"  # when the sections below were last gone through

DESCRIPTION = (
    "Reads how a GPU server is wired (PCIe tree, NVLink and NVSwitch, InfiniBand and RoCE ports, GPUDirect, NUMA), "
    "joins it into one topology, and reports what is wrong with it, why, and how to fix it.",
    "One read-only scan: nothing is changed, no device is woken, root is not required. What could not be read is "
    "unknown with its reason, never ok.",
)
EXITS = (
    ("0", "done; of scan: a report was written, whatever its findings"),
    ("1", "check: warnings; diff: something changed; ship: reports still wait; fleet ingest: nothing was taken"),
    ("2", "wrong usage, or a source that cannot be used: one line on stderr; check: errors or critical findings"),
    ("3", "check: unknown, also for wrong usage, a bad source or a stale report"),
    ("130", "interrupted"),
)
ENVIRONMENT = (
    ("NO_COLOR", "no colours, where it is not empty"),
    ("FABRICSCOPE_RUN_DIR", "where locks are kept that a hung driver call leaves behind"),
    (
        "FABRICSCOPE_CACHE",
        "fabricscope.pyz: where it unpacks itself, instead of /var/cache/fabricscope or the user's cache",
    ),
)
FILES = (
    ("/var/lib/fabricscope/report.json", "the report that the service keeps; check, export and ship read it"),
    ("/var/lib/fabricscope/state", "counters and inventory of earlier runs (--state-dir)"),
    ("/etc/fabricscope/ship.toml", "where fabricscope-ship.service hands reports to"),
)
EXAMPLES = (
    ("this host, as text", "fabricscope scan"),
    ("a monitoring plugin, from the report of the hourly service",
     "fabricscope check --report /var/lib/fabricscope/report.json --max-age 7200"),
    ("evidence for a colleague, without names and serials", "fabricscope capture --redact -o host.tar.gz"),
    ("what happened since yesterday", "fabricscope diff yesterday.json today.json"),
    ("hourly, by systemd", "fabricscope install-units"),
)  # fmt: skip


def make_page() -> str:
    """The whole page, in man(7)."""
    tree = read_commands(app)
    lines = [f'.TH FABRICSCOPE 1 {DATE} "fabricscope {VERSION}"', ".SH NAME"]
    purpose = tree.help.partition(". ")[0]
    lines += [_text(f"fabricscope - {purpose[:1].lower()}{purpose[1:]}")]
    lines += [".SH SYNOPSIS", ".B fabricscope", ".I COMMAND", "[options]"]
    lines += [".SH DESCRIPTION", _text(DESCRIPTION[0]), *(f".PP\n{_text(item)}" for item in DESCRIPTION[1:])]
    lines += [".SH OPTIONS", *(line for option in tree.options for line in _option(option))]
    lines += [
        ".SH COMMANDS",
        *(line for item in walk_commands(tree) if item.words and _runs(item) for line in _command(item)),
    ]
    lines += [".SH EXIT STATUS", *_rows(EXITS), ".SH ENVIRONMENT", *_rows(ENVIRONMENT), ".SH FILES", *_rows(FILES)]
    lines.append(".SH EXAMPLES")
    for what, typed in EXAMPLES:
        lines += [".TP", f"{_word(what)}:", f".B {_word(typed)}"]
    lines += [".SH SEE ALSO", ".BR lspci (8),", ".BR lstopo (1),", ".BR systemd.timer (5)"]
    return "\n".join(lines) + "\n"


def _runs(command: Command) -> bool:
    """Whether it can be run by itself: a group of commands alone has no option but --help."""
    return not command.commands or len(command.options) > 1


def _command(command: Command) -> list[str]:
    lines = [f".SS fabricscope {_word(command.name)}{''.join(_named(item) for item in command.arguments)}"]
    lines.append(_text(command.help))
    for argument in command.arguments:
        lines += [".TP", f".I {_word(argument.value.metavar)}", _text(_choice(argument.help, argument.value.choices))]
    for option in command.options:
        if option.names[-1] != "--help":
            lines += _option(option)
    return lines


def _named(argument: Argument) -> str:
    name = _word(argument.value.metavar)
    return f" {name}" if argument.required else f" [{name}]"


def _option(option: Option) -> list[str]:
    names = ", ".join(_word(name) for name in option.names)
    text = option.help.rstrip(".") + "."
    if option.default is not None:
        text += f" Default: {option.default}."
    if option.value is None:
        return [".TP", f".B {names}", _text(text)]
    return [".TP", f'.BI "{names} " {_word(option.value.metavar)}', _text(_choice(text, option.value.choices))]


def _choice(text: str, choices: tuple[str, ...]) -> str:
    """The help, and after it the words that may be there, where they are few and not in it."""
    missing = [choice for choice in choices if not re.search(rf"\b{re.escape(choice)}\b", text)]
    text = text.rstrip(".") + "."
    return f"{text} One of {', '.join(choices)}." if missing and len(choices) <= 12 else text


def _rows(rows: tuple[tuple[str, str], ...]) -> list[str]:
    return [line for name, what in rows for line in (".TP", f".B {_word(name)}", _text(what))]


def _word(text: str) -> str:
    """As roff takes it: hyphens that can be copied, ASCII."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "".join(character if ord(character) < 128 else f"\\[u{ord(character):04X}]" for character in text)


def _text(text: str) -> str:
    """The same of running text: no control line, one sentence per line, of 79 columns at most."""
    text = _word(text)
    sentences = re.split(r"(?<=[.:;]) (?=[A-Z])", text)
    lines = [line for sentence in sentences for line in (textwrap.wrap(sentence, 79, break_long_words=False) or [""])]
    return re.sub(r"^(?=[.'])", r"\\&", "\n".join(lines), flags=re.MULTILINE)
