"""The pages of rules: `FAMILY/RULE.md`, beside the code of the family. The head of a page declares its rule.

    ---
    severity: warning
    module: counters
    needs: rdma
    references: ib-symbol-errors, ib-link-recovery
    limit.per_hour: 10 | symbol errors an hour of one port: a warning
    ---
    # The title, one sentence.

A scan reads the heads, `explain` and the documentation the whole pages.
"""

import os
import re
from functools import cache

import msgspec

from agent.model.finding import SEVERITIES

FOLDER = os.path.dirname(os.path.abspath(__file__))
PROCEDURE = r"(?m)^Then follow ([a-z0-9-]+)\.$"
_LONGEST_HEAD = 4096  # bytes
_GENERIC = {  # what stands for a sentence of the finding, where a page is read without one
    "EVIDENCE": "\n   `nvidia-bug-report.sh`, or the kernel log and the maker's tool; and the BMC's event log.",
    "HOLDERS": "\n   fabric manager, DCGM, persistence daemon, exporters, the device plugin of Kubernetes.",
    "RESET_GPU": "\n   `nvidia-smi -r -i GPU_INDEX`",
}
_PHRASES = r"\s(EVIDENCE|HOLDERS|RESET_GPU)\b"
_REQUIRED = frozenset({"severity", "module"})
_KEYS = _REQUIRED | {"references", "essential", "needs", "absorbs", "fields"}


class BadPage(Exception):
    """The head of a page is damaged; the text names the file, the line and what is wrong."""


class Threshold(msgspec.Struct, frozen=True):
    """A limit that an operator may change: `[thresholds]` of the configuration names it."""

    name: str  # "ib-symbol-errors.per_hour"
    value: float
    what: str  # what is limited, with its unit


class Declaration(msgspec.Struct, frozen=True):
    """The head of a page."""

    name: str
    severity: str
    module: str  # of the family's package, which holds the check
    references: tuple[str, ...]  # ids in the rule references: "PCIE-001"; the rule's name where the page has none
    needs: tuple[str, ...] = ()  # subjects without whose facts nothing can be decided; "pci|gpu": either
    absorbs: tuple[str, ...] = ()  # rules whose finding on the same place is a consequence of this one
    essential: bool = False  # the verdict is unknown where this rule is
    thresholds: tuple[Threshold, ...] = ()
    fields: tuple[str, ...] = ()  # of the peer table that it judges: "netdev.mtu"


@cache
def page_paths() -> dict[str, str]:
    """The file of every page by the name of its rule, sorted by family and rule."""
    with os.scandir(FOLDER) as entries:  # states what each is, without another question
        families = sorted(entry.name for entry in entries if not entry.name.startswith("__") and entry.is_dir())
    return {
        file[:-3]: f"{FOLDER}/{family}/{file}"
        for family in families
        for file in sorted(os.listdir(f"{FOLDER}/{family}"))
        if file.endswith(".md")
    }


@cache
def family_names() -> dict[str, tuple[str, ...]]:
    """The names of the rules of each family, sorted."""
    names: dict[str, list[str]] = {}
    for name, path in page_paths().items():
        names.setdefault(os.path.basename(os.path.dirname(path)), []).append(name)
    return {family: tuple(rules) for family, rules in names.items()}


@cache
def read_declaration(name: str) -> Declaration:
    """The head of a rule's page. Raises BadPage; KeyError where there is no such rule."""
    path = page_paths()[name]
    descriptor = os.open(path, os.O_RDONLY)  # a scan reads all heads: open() costs four times as much
    try:
        start = os.read(descriptor, _LONGEST_HEAD)
    finally:
        os.close(descriptor)
    head, end, _ = start.partition(b"\n---\n")
    if not end or not head.startswith(b"---\n"):
        raise BadPage(f"{path}:1: the head must be between two lines `---`")
    return parse_head(name, head.decode(), path)


def parse_head(name: str, head: str, path: str) -> Declaration:
    """The lines `key: value` after the first. Raises BadPage."""
    fields: dict[str, str] = {}
    thresholds: list[Threshold] = []
    for number, line in enumerate(head.split("\n")[1:], 2):
        key, colon, value = line.partition(": ")
        if not colon or not value.strip():
            raise BadPage(f"{path}:{number}: not `key: value`: {line!r}")
        if key.startswith("limit."):
            thresholds.append(_parse_limit(f"{name}{key[5:]}", value, f"{path}:{number}"))
        elif key not in _KEYS or key in fields:
            raise BadPage(f"{path}:{number}: {'a second' if key in fields else 'an unknown'} key {key!r}")
        else:
            fields[key] = value
    if not fields.keys() >= _REQUIRED:
        raise BadPage(f"{path}:1: missing: {', '.join(sorted(_REQUIRED - fields.keys()))}")
    if fields["severity"] not in SEVERITIES:
        raise BadPage(f"{path}:1: severity is not one of {', '.join(SEVERITIES)}: {fields['severity']!r}")
    if fields.get("essential", "yes") != "yes":
        raise BadPage(f"{path}:1: essential is `yes` or not there: {fields['essential']!r}")
    return Declaration(
        name,
        fields["severity"],
        fields["module"],
        _split(fields.get("references", name)),
        _split(fields.get("needs")),
        _split(fields.get("absorbs")),
        "essential" in fields,
        tuple(thresholds),
        _split(fields.get("fields")),
    )


def read_limit(name: str) -> Threshold:
    """A limit as the page of its rule declares it: "ib-symbol-errors.per_hour"."""
    return next(limit for limit in read_declaration(name.partition(".")[0]).thresholds if limit.name == name)


def read_text(name: str) -> str:
    """The page of a rule without its head, as `explain` prints it: the title, then the sections."""
    return re.sub(_PHRASES, lambda match: _GENERIC[match[1]], _insert_procedures(_read_body(name)))


def _insert_procedures(text: str) -> str:
    """Procedures may follow others."""
    return re.sub(PROCEDURE, lambda match: _insert_procedures(read_procedures()[match[1]].strip()), text)


@cache
def read_sections(name: str) -> dict[str, str]:
    """The sections of a rule's page by heading, procedures not inserted; none for a rule without a page."""
    if name not in page_paths():
        return {}
    return {title: text for title, _, text in (part.partition("\n") for part in _read_body(name).split("\n## ")[1:])}


@cache
def read_procedures() -> dict[str, str]:
    """The procedures that pages insert by `Then follow NAME.`, by name."""
    with open(os.path.join(FOLDER, "procedures.md"), encoding="utf-8") as file:
        parts = file.read().split("\n## ")[1:]
    return {name: text for name, _, text in (part.partition("\n") for part in parts)}


def _read_body(name: str) -> str:
    with open(page_paths()[name], encoding="utf-8") as file:
        return file.read().partition("\n---\n# ")[2].rstrip("\n")


def _parse_limit(name: str, value: str, where: str) -> Threshold:
    number, bar, what = value.partition(" | ")
    try:
        limit = int(number) if number.isdigit() else float(number)
    except ValueError:
        bar = ""
    if not bar or not what.strip():
        raise BadPage(f"{where}: not `number | what is limited`: {value!r}")
    return Threshold(name, limit, what)


def _split(value: str | None) -> tuple[str, ...]:
    return tuple(value.split(", ")) if value else ()
