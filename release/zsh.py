"""Completion for zsh, by its own _arguments: a function for each command, with its help."""

from __future__ import annotations

from release.tree import FILE, FOLDER, Argument, Command, Option, Value, every


def completion(tree: Command, head: str) -> str:
    """The whole file."""
    body = "".join(_function(command) for command in every(tree))
    return f'#compdef fabricscope\n# zsh completion for {head}\n\n{body}_fabricscope "$@"\n'


def _function(command: Command) -> str:
    specs = [_option(option) for option in command.options]
    if not command.commands:
        specs += [_argument(argument) for argument in command.arguments]
        return f"{_called(command)}() {{\n  _arguments -s -S \\\n{_joined(specs)}\n}}\n\n"
    rows = "".join(f"    {_quoted(each.words[-1] + ':' + _short(each.help))}\n" for each in command.commands)
    cases = "".join(f"      {each.words[-1]}) {_called(each)} ;;\n" for each in command.commands)
    specs += ["'1: :->command'", "'*:: :->rest'"]
    return f"""{_called(command)}() {{
  local line state
  local -a commands=(
{rows}  )
  _arguments -C \\
{_joined(specs)}
  case $state in
    command) _describe command commands ;;
    rest) case $line[1] in
{cases}    esac ;;
  esac
}}

"""


def _called(command: Command) -> str:
    return "_".join(("_fabricscope", *(word.replace("-", "_") for word in command.words)))


def _joined(specs: list[str]) -> str:
    return " \\\n".join(f"    {spec}" for spec in specs)


def _option(option: Option) -> str:
    short = [name for name in option.names if not name.startswith("--")]
    long = [f"{name}=" if option.value else name for name in option.names if name.startswith("--")]
    names = [*(f"{name}+" if option.value else name for name in short), *long]
    told = "[" + _short(option.help).replace("[", "\\[").replace("]", "\\]") + "]" + _value(option.value)
    if len(names) == 1:
        return _quoted(names[0] + told)
    return f"'({' '.join(option.names)})'{{{','.join(names)}}}{_quoted(told)}"


def _argument(argument: Argument) -> str:
    told = _short(argument.help).replace(":", "\\:") or argument.value.metavar
    return _quoted(("*" if argument.many else "") + f":{told}:{_action(argument.value)}")


def _value(value: Value | None) -> str:
    return "" if value is None else f":{value.metavar}:" + _action(value).replace(":", "\\:")


def _action(value: Value) -> str:
    words = " ".join(value.choices)
    files = {FILE: "_files", FOLDER: "_files -/"}.get(value.kind, "")
    if value.listed:
        return f"_sequence compadd - {words}"
    if words and files:
        return f'_alternative "names:name:({words})" "files:file:{files}"'
    return f"({words})" if words else files or " "


def _short(text: str) -> str:
    return text.partition(". ")[0].rstrip(".:")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
