"""Commands that print files of the kernel, and which line of their output is of which file.

A file is the same however it was read: by cat, head, tail or grep, alone, with braces, in a loop that prints a name
above or beside each value, in the folder that the prompt shows, over ssh, or in a container.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import product

from probes.named_tuple import NamedTuple
from probes.text import lazy_pattern

COMMAND_CHARACTERS = 600
_MOST_PATHS = 1000
_MOST_LINES = 5000
_ROOTS = ("/sys/", "/proc/", "/etc/")
_PROGRAMS = ("cat ", "head ", "tail ", "grep ", "more ", "$(</")
_PROMPT = lazy_pattern(
    r"[ \t>]{0,40}(?:\[?[\w-]{1,40}@(?P<host>[\w.-]{1,64})(?:[: ](?P<folder>[^\s$#%\]]{1,200}))?[^\n$#%]{0,40}\]?"
    r"|bash-[\d.]{1,8})?[ \t]{0,8}[$#%❯➜][ \t]{0,8}(?P<command>\S[^\n]{0,600})"
)
_BEGIN = lazy_pattern(  # of such a command; what is before it decides where it runs
    r"(?:sudo |kubectl |oc |docker |podman |ssh |srun |watch )?[^|;\n]{0,160}?\b(?:cat|head|tail|e?grep|more|for)[ \t]"
)
_ALONE = lazy_pattern(r"[ \t>]{0,40}(?P<command>(?:sudo )?(?:cat|head|tail|grep)[ \t][^\n]{0,400})")
LOOP = lazy_pattern(  # of a shell, in one line or in several
    r"\bfor[ \t]{1,8}(?P<variable>\w{1,20})[ \t]{1,8}in[ \t]{1,8}(?P<values>[^;\n]{1,300})[;\n]"
    r"[ \t]{0,8}do\b(?P<body>[^\n]{1,500})"
)
_READ = lazy_pattern(
    r"\b(?:cat|head|tail|e?grep|more)[ \t](?P<arguments>[^|;&)`\n]{1,400})|\$\(<(?P<path>[^)\n]{1,200})\)"
)
_SILENT = lazy_pattern(
    r"\b\w{1,20}=(?:\$\([^()\n]{1,200}\)|`[^`\n]{1,200}`)|\[\[? [^\]\n]{1,200} \]\]?"
    r"|\bcase [^()\n]{1,80}\)"
)  # prints nothing
_BRACES = lazy_pattern(r"\{([^{}\s]{1,200})\}")
_COUNTED = lazy_pattern(r"(\d{1,4})\.\.(\d{1,4})")
_SEQUENCE = lazy_pattern(r"(?:\$\(|`)seq (\d{1,4}) (\d{1,4})(?:\)|`)")
_PIPED = lazy_pattern(r"\|[ \t]{0,8}(?:sudo )?(?P<program>[\w./-]{1,40})")
_LABELLING = ("echo", "printf", "basename", "ls ")  # programs in a loop that print what it is at
_PASSING = frozenset({"grep", "egrep", "cat", "tee", "less", "more", "column"})  # programs that print lines as they are
_SHOWN_PATH = lazy_pattern(
    r"[> \t]{0,40}(?:==> )?/(?:sys|proc|etc)/(?:[\w.:@+-]{0,80}/){0,12}(?P<name>[\w.@+-]{1,80})(?::| <==)"
)
_ADDRESS = r"[0-9a-f]{4,8}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]"
_PCI_ADDRESS = lazy_pattern(_ADDRESS)
_NAME = lazy_pattern(  # before its values
    rf"[^\w/]{{0,8}}(?P<name>(?:/[\w./@+:-]{{0,200}}/)?(?:{_ADDRESS}|[\w.@+-]{{1,64}}))(?::?[ \t=]{{1,8}}|:)"
    r"(?P<rest>\S[^\n]{0,400})"
)
_BESIDE = lazy_pattern(r"(?P<name>[\w.+-]{1,64}):(?P<value>[^\n]{0,400})")
_ERROR = lazy_pattern(r"(?:cat|head|tail|grep|more|bash|-bash): (?P<path>/[^\s:']{1,300}):? [^\n]{1,100}")
_VALUE = lazy_pattern(r"\d: \w{1,40}|\d{1,4} Gb/sec \([^()]{1,20}\)|\d{1,3}(?:\.\d)? GT/s(?: PCIe)?|\S{1,200}")
_LABEL_CHARACTERS = 40  # around a name above its values


class FileCommand(NamedTuple):
    """A command at its prompt. `folder`: where the prompt states that it runs."""

    command: str
    folder: str = ""
    host: str | None = None


def find_file_command(line: str) -> FileCommand | None:
    """The command of a line that prints files of /sys, /proc or /etc; None for any other line.

    >>> find_file_command("root@n7:/sys/class/infiniband/mlx5_0# cat node_type")
    FileCommand(command='cat node_type', folder='/sys/class/infiniband/mlx5_0', host='n7')
    >>> find_file_command("$ kubectl exec p -- cat /proc/cmdline").command, find_file_command("$ cat notes")
    ('kubectl exec p -- cat /proc/cmdline', None)
    """
    if len(line) > COMMAND_CHARACTERS or not any(program in line for program in _PROGRAMS):
        return None
    match = _PROMPT.fullmatch(line) or _ALONE.fullmatch(line)
    if match is None:
        return None
    groups = match.groupdict()
    found = FileCommand(match["command"].rstrip(), groups.get("folder") or "", groups.get("host"))
    if not found.folder.startswith(_ROOTS[:2]):
        found = found._replace(folder="")
    if _BEGIN.match(found.command) is None or not any(_templates(found.command, found.folder)):
        return None
    passing = _PASSING | {"sort"} if "echo" in found.command else _PASSING
    if not all(piped["program"] in passing for piped in _PIPED.finditer(_SILENT.sub(" ", found.command))):
        return None
    return found


def show_files(found: FileCommand, text: str) -> str:
    """The output of such a command with the path of its file above each value; the same where the text has paths.

    >>> show_files(FileCommand("for i in 0 1; do cat /sys/class/infiniband/mlx5_$i/ports/1/lid; done"), "0x7\\n0x8\\n")
    '==> /sys/class/infiniband/mlx5_0/ports/1/lid <==\\n0x7\\n==> /sys/class/infiniband/mlx5_1/ports/1/lid <==\\n0x8\\n'
    >>> both = FileCommand("cat /sys/class/infiniband/mlx5_*/ports/1/state /sys/class/infiniband/mlx5_*/ports/1/rate")
    >>> show_files(both, "4: ACTIVE\\n2: INIT\\n400 Gb/sec\\n400 Gb/sec\\n").count("==>")
    2
    >>> loop = FileCommand("for d in /sys/bus/pci/devices/*; do echo $d $(cat $d/numa_node); done")
    >>> show_files(loop, "/sys/bus/pci/devices/0000:18:00.0 -1\\n")
    '==> /sys/bus/pci/devices/0000:18:00.0/numa_node <==\\n-1\\n'
    """
    lines = text.splitlines()[:_MOST_LINES]
    names = {path.rpartition("/")[2] for path in _templates(found.command, found.folder)}
    shown = {match["name"] for line in lines if (match := _SHOWN_PATH.match(line))}
    if shown & names or (shown and any("*" in name or "$" in name for name in names)):
        return text
    missing = {error["path"] for line in lines if (error := _ERROR.match(line.strip()))}
    lines = [line for line in lines if not _ERROR.match(line.strip())]
    rows = [(path, values) for path, values in _assign(found, lines, missing) if "$" not in path]
    return "".join(f"==> {path} <==\n" + "".join(f"{value}\n" for value in values) for path, values in rows)


def _assign(found: FileCommand, lines: Sequence[str], missing: set[str]) -> Iterator[tuple[str, Sequence[str]]]:
    """Each path with its lines."""
    templates = list(_templates(found.command, found.folder))
    loop = LOOP.search(found.command)
    if loop is None:
        paths = [path for path in templates if path not in missing]
        filled = [line for line in _first_block(lines) if line.strip()]
        beside = [match for line in filled if (match := _BESIDE.fullmatch(line))]
        if found.folder and "grep" in found.command and len(beside) == len(filled):
            yield from ((f"{found.folder}/{match['name']}", (match["value"].strip(),)) for match in beside)
        elif len(paths) == 1 and "*" not in paths[0]:
            yield paths[0], _first_block(lines) if paths[0].startswith(_ROOTS[0]) else lines
        elif len(paths) == 1 and paths[0].count("*") == 1:
            yield paths[0], filled
        elif len(paths) > 1 and all(path.count("*") == 1 for path in paths) and not len(filled) % len(paths):
            each = len(filled) // len(paths)  # the shell names all files of the first pattern, then those of the next
            yield from ((path, filled[at * each : (at + 1) * each]) for at, path in enumerate(paths))
        elif len(paths) == len(filled):
            yield from ((path, (line.strip(),)) for path, line in zip(paths, filled, strict=True))
        return
    variable, values = loop["variable"], list_loop_values(loop["values"])
    filled = [line.strip() for line in _first_block(lines) if line.strip()]
    paths_of = [[substitute(path, variable, value) for path in templates] for value in values]
    every = [path for paths in paths_of for path in paths if path not in missing]
    may_be_labelled = any(program in found.command for program in _LABELLING)
    is_labelled = may_be_labelled and bool(filled) and _find_name(filled[0], values)[0] is not None
    if every and len(every) == len(filled) and not is_labelled:
        yield from ((path, (line,)) for path, line in zip(every, filled, strict=True))
        return
    names = values or None
    for name, found_values in split_by_names(filled, names, len(templates)):
        value = name if values or "/" in name else _place_of(loop["values"], name)
        paths = [substitute(path, variable, value) for path in templates]
        if len(found_values) == len(paths):
            yield from ((path, (line,)) for path, line in zip(paths, found_values, strict=True))
        elif len(paths) == 1:
            yield paths[0], found_values


def _first_block(lines: Sequence[str]) -> Sequence[str]:
    """The lines until the first blank one: no file of /sys has one, and what follows is prose."""
    start = next((number for number, line in enumerate(lines) if line.strip()), 0)
    end = next((number for number, line in enumerate(lines) if number > start and not line.strip()), len(lines))
    return lines[start:end]


def split_by_names(
    lines: Sequence[str], names: Sequence[str] | None, count: int
) -> Iterator[tuple[str, Sequence[str]]]:
    """Lines by the name above or before them. `names`: those of the loop; None: only the machine has them. `count`:
    how many values are of each."""
    current: str | None = None
    values: list[str] = []
    for line in lines:
        name, rest = _find_name(line, names)
        if name is None:
            values.append(line)
            continue
        if current is not None:
            yield current, values
        words = _VALUE.findall(rest)
        current, values = name, words if len(words) == count > 1 else [rest] if rest else []
    if current is not None:
        yield current, values


def _find_name(line: str, names: Sequence[str] | None) -> tuple[str | None, str]:
    """The name that a line begins with, or consists of, and what is behind it."""
    if names is None:
        bare = line.strip("=-# :")
        if is_device_name(bare):
            return bare, ""
        beside = _NAME.fullmatch(line)
        return (beside["name"], beside["rest"].strip()) if beside and is_device_name(beside["name"]) else (None, "")
    for name in names:
        if name not in line or len(line) > len(name) + COMMAND_CHARACTERS:
            continue
        if re.fullmatch(rf"(?:.{{0,{_LABEL_CHARACTERS}}}\W)?{re.escape(name)}\W{{0,8}}", line):
            return name, ""
        if beside := re.match(rf"\W{{0,8}}{re.escape(name)}(?::?[ \t=]+|:)", line):
            return name, line[beside.end() :].strip()
    return None, ""


def is_device_name(text: str) -> bool:
    """Whether it is a path, a PCI address, or the name of a device, which has a digit and begins with a letter."""
    bare = text.rpartition("/")[2]
    if " " in text:
        return False
    if text.startswith(_ROOTS) or _PCI_ADDRESS.fullmatch(bare):
        return True
    return bare[:1].isalpha() and any(map(str.isdigit, bare)) and bare.replace("_", "a").replace("-", "a").isalnum()


def _place_of(values: str, name: str) -> str:
    """What the variable of a loop is for a name: a loop over a pattern has whole paths."""
    folder = values.strip().rpartition("/")[0]
    return f"{folder}/{name}" if values.strip().startswith("/") and "*" not in folder else name


def _templates(command: str, folder: str) -> Iterator[str]:
    """The paths that the command prints, with the variable of its loop in them."""
    loop = LOOP.search(command)
    variable = f"${loop['variable']}" if loop else None
    over_paths = bool(loop and loop["values"].strip().startswith(_ROOTS))
    for match in _READ.finditer(_SILENT.sub(" ", loop["body"] if loop else command)):
        text = (match["arguments"] or match["path"]).replace("'", "").replace('"', "")
        words = [word for word in re.sub(r"\$\{(\w+)\}", r"$\1", text).split() if not word.startswith("-")]
        for word in words[1:] if "grep" in match[0][:5] else words:  # its first word is no file
            if folder and loop is None and word[0].isalpha() | (word[0] in "*{"):
                word = f"{folder}/{word}"
            if word.startswith(_ROOTS) or (over_paths and variable and word.startswith(f"{variable}/")):
                yield from _expand_braces(word)


def substitute(word: str, variable: str, value: str) -> str:
    """A word of a command with a value of its loop."""
    return re.sub(rf"\"?\$(?:{variable}\b|\{{{variable}\}})\"?", lambda _: value, word)


def list_loop_values(text: str) -> list[str]:
    """What a loop of a shell goes over; nothing where only the machine has it.

    >>> list_loop_values("{0..3}"), list_loop_values("ens1 ens2 "), list_loop_values("$(ls /sys/class/net)")
    (['0', '1', '2', '3'], ['ens1', 'ens2'], [])
    """
    if match := _SEQUENCE.fullmatch(text.strip()):
        first, last = int(match[1]), int(match[2])
        return [str(number) for number in range(first, min(last, first + _MOST_PATHS) + 1)]
    values = [value for word in text.split() for value in _expand_braces(word)]
    return [] if any(character in "".join(values) for character in "$`*?{}()") else values


def _expand_braces(word: str) -> list[str]:
    """The words that a shell makes of braces.

    >>> _expand_braces("mlx5_{0..2}/{a,b}")
    ['mlx5_0/a', 'mlx5_0/b', 'mlx5_1/a', 'mlx5_1/b', 'mlx5_2/a', 'mlx5_2/b']
    """
    parts: list[list[str]] = []
    end = 0
    for match in _BRACES.finditer(word):
        choices = match[1].split(",")
        if counted := _COUNTED.fullmatch(match[1]):
            choices = [str(number) for number in range(int(counted[1]), min(int(counted[2]), 9999) + 1)]
        if len(choices) > 1:
            parts += [[word[end : match.start()]], choices]
            end = match.end()
    parts.append([word[end:]])
    return ["".join(choice) for choice, _ in zip(product(*parts), range(_MOST_PATHS), strict=False)]
