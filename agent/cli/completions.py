"""Completion for bash, which needs nothing but bash 4: a case for each command, option by option."""

from __future__ import annotations

from agent.cli.command_tree import FILE, FOLDER, Argument, Command, Option, Value, walk_commands

BASH_FRAME = """\
# bash completion for {head}

_fabricscope_words() {{ mapfile -t COMPREPLY < <(compgen -W "$1" -- "$cur"); }}

_fabricscope_files() {{
    compopt -o filenames
    mapfile -t -O "${{#COMPREPLY[@]}}" COMPREPLY < <(compgen "$1" -- "$cur")
}}

_fabricscope_list() {{
    local before=''
    [[ $cur == *,* ]] && before=${{cur%,*}},
    compopt -o nospace
    mapfile -t COMPREPLY < <(compgen -P "$before" -W "$1" -- "${{cur##*,}}")
}}

_fabricscope() {{
    local cur=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}} command='' place=0 word i skip=
    COMPREPLY=()
    if [[ $cur == = ]]; then
        cur=''
    elif [[ $before == = ]]; then
        before=${{COMP_WORDS[COMP_CWORD - 2]}}
    fi
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${{COMP_WORDS[i]}}
        if [[ $skip ]]; then
            [[ $word == = ]] || skip=
        elif [[ $word == -* ]]; then
            case "$command $word" in
                {valued}) skip=1 ;;
            esac
        else
            case "$command${{command:+ }}$word" in
                {commands}) command=$command${{command:+ }}$word ;;
                *) ((place++)) ;;
            esac
        fi
    done
    case "$command $before" in
{values}
    esac
    if [[ $cur == -* ]]; then
        case $command in
{options}
        esac
        return
    fi
    case "$command" in
{places}
    esac
}}

complete -F _fabricscope fabricscope
"""


def bash_completion(tree: Command, head: str) -> str:
    """The whole file."""
    values: dict[Value, list[str]] = {}
    for command in walk_commands(tree):
        for option in command.options:
            for name in option.names if option.value else ():
                assert option.value
                values.setdefault(option.value._replace(metavar=""), []).append(f'"{command.name} {name}"')
    return BASH_FRAME.format(
        head=head,
        valued=" | ".join(item for patterns in values.values() for item in patterns),
        commands=" | ".join(f'"{item.name}"' for item in walk_commands(tree) if item.words),
        values="\n".join(
            f"        {' | '.join(patterns)}) {_bash_value(value)}return ;;" for value, patterns in values.items()
        ),
        options="\n".join(
            f'            "{item.name}") _fabricscope_words "{_bash_options(item)}" ;;' for item in walk_commands(tree)
        ),
        places="\n".join(line for item in walk_commands(tree) for line in _bash_places(item)),
    )


def _bash_options(command: Command) -> str:
    return " ".join(name for option in command.options for name in option.names)


def _bash_value(value: Value) -> str:
    words = f'_fabricscope_words "{" ".join(value.choices)}"; ' if value.choices else ""
    if value.listed:
        return words.replace("_words", "_list")
    files = {FILE: "_fabricscope_files -f; ", FOLDER: "_fabricscope_files -d; "}
    return words + files.get(value.kind, "")


def _bash_places(command: Command) -> list[str]:
    if command.commands:
        return [f'        "{command.name}") _fabricscope_words "{" ".join(c.words[-1] for c in command.commands)}" ;;']
    lines = []
    for position, argument in enumerate(command.arguments):
        does = _bash_value(argument.value)
        if does:
            test = "" if argument.many else f"((place == {position})) && "
            lines.append(f"{test}{{ {does}}}")
    return [f'        "{command.name}") {"; ".join(lines)} ;;'] if lines else []


FISH_FRAME = """\
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

# the words given, after what is before the last comma
function __fabricscope_list
    set -l before (string match -r '.*,' -- (commandline -ct | string replace -r '^--[a-z-]+=' ''))
    printf '%s\\n' $before$argv
end

complete -c fabricscope -f
"""


def fish_completion(tree: Command, head: str) -> str:
    """The whole file."""
    names = " ".join(f"'{item.name}'" for item in walk_commands(tree) if item.words)
    lines = [FISH_FRAME.format(head=head, commands=names)]
    for command in walk_commands(tree):
        lines += _fish_lines(command)
    return "".join(lines)


def _fish_lines(command: Command) -> list[str]:
    condition = f"complete -c fabricscope -n '__fabricscope_at {command.name}'".replace(
        " '__fabricscope_at '", " __fabricscope_at"
    )
    lines = [
        f"{condition} -a {subcommand.words[-1]} -d {_fish_quoted(subcommand.help)}\n" for subcommand in command.commands
    ]
    lines += [
        f"{condition}{_fish_value(argument.value)} -d {_fish_quoted(argument.help)}\n" for argument in command.arguments
    ]
    return lines + [f"{condition}{_fish_option(option)}\n" for option in command.options]


def _fish_option(option: Option) -> str:
    names = "".join(f" -l {name[2:]}" if name.startswith("--") else f" -s {name[1:]}" for name in option.names)
    return f"{names}{_fish_taken(option.value)} -d {_fish_quoted(option.help)}"


def _fish_taken(value: Value | None) -> str:
    if value is None:
        return ""
    return (" -r" if value.kind == FILE else " -x") + _fish_value(value)


def _fish_value(value: Value) -> str:
    if value.listed:
        return f" -a '(__fabricscope_list {' '.join(value.choices)})'"
    words = f" -a '{' '.join(value.choices)}'" if value.choices else ""
    if value.kind == FOLDER:
        return f"{words} -a '(__fish_complete_directories)'"
    return words + (" -F" if value.kind == FILE else "")


def _fish_quoted(text: str) -> str:
    """The first sentence, as one word of fish."""
    text = text.partition(". ")[0].rstrip(".:").replace("\\", "\\\\").replace("'", "\\'")
    return f"'{text}'"


def zsh_completion(tree: Command, head: str) -> str:
    """The whole file."""
    body = "".join(_zsh_function(command) for command in walk_commands(tree))
    return f'#compdef fabricscope\n# zsh completion for {head}\n\n{body}_fabricscope "$@"\n'


def _zsh_function(command: Command) -> str:
    specs = [_zsh_option(option) for option in command.options]
    if not command.commands:
        specs += [_zsh_argument(argument) for argument in command.arguments]
        return f"{_zsh_called(command)}() {{\n  _arguments -s -S \\\n{_zsh_joined(specs)}\n}}\n\n"
    rows = "".join(
        f"    {_zsh_quoted(subcommand.words[-1] + ':' + _zsh_short(subcommand.help))}\n"
        for subcommand in command.commands
    )
    cases = "".join(f"      {subcommand.words[-1]}) {_zsh_called(subcommand)} ;;\n" for subcommand in command.commands)
    specs += ["'1: :->command'", "'*:: :->rest'"]
    return f"""{_zsh_called(command)}() {{
  local line state
  local -a commands=(
{rows}  )
  _arguments -C \\
{_zsh_joined(specs)}
  case $state in
    command) _describe command commands ;;
    rest) case $line[1] in
{cases}    esac ;;
  esac
}}

"""


def _zsh_called(command: Command) -> str:
    return "_".join(("_fabricscope", *(word.replace("-", "_") for word in command.words)))


def _zsh_joined(specs: list[str]) -> str:
    return " \\\n".join(f"    {spec}" for spec in specs)


def _zsh_option(option: Option) -> str:
    short = [name for name in option.names if not name.startswith("--")]
    long = [f"{name}=" if option.value else name for name in option.names if name.startswith("--")]
    names = [*(f"{name}+" if option.value else name for name in short), *long]
    description = "[" + _zsh_short(option.help).replace("[", "\\[").replace("]", "\\]") + "]" + _zsh_value(option.value)
    if len(names) == 1:
        return _zsh_quoted(names[0] + description)
    return f"'({' '.join(option.names)})'{{{','.join(names)}}}{_zsh_quoted(description)}"


def _zsh_argument(argument: Argument) -> str:
    description = _zsh_short(argument.help).replace(":", "\\:") or argument.value.metavar
    return _zsh_quoted(("*" if argument.many else "") + f":{description}:{_zsh_action(argument.value)}")


def _zsh_value(value: Value | None) -> str:
    return "" if value is None else f":{value.metavar}:" + _zsh_action(value).replace(":", "\\:")


def _zsh_action(value: Value) -> str:
    words = " ".join(value.choices)
    files = {FILE: "_files", FOLDER: "_files -/"}.get(value.kind, "")
    if value.listed:
        return f"_sequence compadd - {words}"
    if words and files:
        return f'_alternative "names:name:({words})" "files:file:{files}"'
    return f"({words})" if words else files or " "


def _zsh_short(text: str) -> str:
    return text.partition(". ")[0].rstrip(".:")


def _zsh_quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
