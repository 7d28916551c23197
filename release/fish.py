"""Completion for fish: a line for each command, option and argument, with its help."""

from __future__ import annotations

from release.tree import FILE, FOLDER, Command, Option, Value, every

FRAME = """\
# fish completion for {head}

# whether exactly these commands stand on the line
function __fabricscope_at
    set -l typed (commandline -opc)
    set -e typed[1]
    set -l found
    for word in $typed
        contains -- (string join -- ' ' $found $word) {commands}; and set -a found $word
    end
    test "$found" = "$argv"
end

# the words given, after what stands before the last comma
function __fabricscope_list
    set -l before (string match -r '.*,' -- (commandline -ct | string replace -r '^--[a-z-]+=' ''))
    printf '%s\\n' $before$argv
end

complete -c fabricscope -f
"""


def completion(tree: Command, head: str) -> str:
    """The whole file."""
    names = " ".join(f"'{each.name}'" for each in every(tree) if each.words)
    lines = [FRAME.format(head=head, commands=names)]
    for command in every(tree):
        lines += _lines(command)
    return "".join(lines)


def _lines(command: Command) -> list[str]:
    when = f"complete -c fabricscope -n '__fabricscope_at {command.name}'".replace(
        " '__fabricscope_at '", " __fabricscope_at"
    )
    lines = [f"{when} -a {each.words[-1]} -d {_quoted(each.help)}\n" for each in command.commands]
    lines += [f"{when}{_value(argument.value)} -d {_quoted(argument.help)}\n" for argument in command.arguments]
    return lines + [f"{when}{_option(option)}\n" for option in command.options]


def _option(option: Option) -> str:
    names = "".join(f" -l {name[2:]}" if name.startswith("--") else f" -s {name[1:]}" for name in option.names)
    return f"{names}{_taken(option.value)} -d {_quoted(option.help)}"


def _taken(value: Value | None) -> str:
    if value is None:
        return ""
    return (" -r" if value.kind == FILE else " -x") + _value(value)


def _value(value: Value) -> str:
    if value.listed:
        return f" -a '(__fabricscope_list {' '.join(value.choices)})'"
    words = f" -a '{' '.join(value.choices)}'" if value.choices else ""
    if value.kind == FOLDER:
        return f"{words} -a '(__fish_complete_directories)'"
    return words + (" -F" if value.kind == FILE else "")


def _quoted(text: str) -> str:
    """The first sentence, as one word of fish."""
    text = text.partition(". ")[0].rstrip(".:").replace("\\", "\\\\").replace("'", "\\'")
    return f"'{text}'"
