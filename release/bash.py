"""Completion for bash, which needs nothing but bash 4: a case for each command, option by option."""

from __future__ import annotations

from release.tree import FILE, FOLDER, Command, Value, every

FRAME = """\
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


def completion(tree: Command, head: str) -> str:
    """The whole file."""
    values: dict[Value, list[str]] = {}
    for command in every(tree):
        for option in command.options:
            for name in option.names if option.value else ():
                assert option.value
                values.setdefault(option.value._replace(metavar=""), []).append(f'"{command.name} {name}"')
    return FRAME.format(
        head=head,
        valued=" | ".join(each for found in values.values() for each in found),
        commands=" | ".join(f'"{each.name}"' for each in every(tree) if each.words),
        values="\n".join(f"        {' | '.join(found)}) {_value(value)}return ;;" for value, found in values.items()),
        options="\n".join(
            f'            "{each.name}") _fabricscope_words "{_options(each)}" ;;' for each in every(tree)
        ),
        places="\n".join(line for each in every(tree) for line in _places(each)),
    )


def _options(command: Command) -> str:
    return " ".join(name for option in command.options for name in option.names)


def _value(value: Value) -> str:
    words = f'_fabricscope_words "{" ".join(value.choices)}"; ' if value.choices else ""
    if value.listed:
        return words.replace("_words", "_list")
    files = {FILE: "_fabricscope_files -f; ", FOLDER: "_fabricscope_files -d; "}
    return words + files.get(value.kind, "")


def _places(command: Command) -> list[str]:
    if command.commands:
        return [f'        "{command.name}") _fabricscope_words "{" ".join(c.words[-1] for c in command.commands)}" ;;']
    lines = []
    for place, argument in enumerate(command.arguments):
        does = _value(argument.value)
        if does:
            test = "" if argument.many else f"((place == {place})) && "
            lines.append(f"{test}{{ {does}}}")
    return [f'        "{command.name}") {"; ".join(lines)} ;;'] if lines else []
