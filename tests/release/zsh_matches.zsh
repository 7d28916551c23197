# What zsh offers for a line: zsh -f zsh_matches.zsh FOLDER LINE prints a candidate a line.
# Completion works only in an interactive shell, so one is started on a pseudo-terminal and asked; its compadd tells.
zmodload zsh/zpty || exit 3
zpty asked zsh -f -i
told() { local line; while zpty -r asked line; do [[ $line == *$1* ]] && return; done; return 1 }
zpty -w asked "PROMPT=; unsetopt zle_bracketed_paste; stty -echo; fpath=(${(q)1} \$fpath); autoload -Uz compinit; compinit -u -D"
zpty -w asked '
compadd() {
  local -a found
  if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then builtin compadd "$@"; return; fi
  builtin compadd -A found "$@"
  (( $#found )) && print -rl -- "match="$^found
  builtin compadd "$@"
}
finish() { print -r -- "at""end" }
bindkey "^I" complete-word; zle -C tell complete-word tell; tell() { _main_complete; compstate[insert]= compstate[list]=; finish }
bindkey "^X" tell; print -r -- "ready"":"'
told ready: || exit 3
zpty -w -n asked "$2"$'\x18'
while zpty -r asked line; do
  line=${line//$'\r'/}
  [[ $line == *match=* ]] && print -r -- ${${line##*match=}%$'\n'}
  [[ $line == *atend* ]] && break
done
zpty -d asked
