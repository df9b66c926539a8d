# SPDX-License-Identifier: Apache-2.0
# zsh_complete.zsh FOLDER LINE: what a zsh that someone types LINE into offers, one a line. zsh completes only where it
# edits a line, so a second zsh runs behind a pseudo terminal; compadd tells what it is given there.
zmodload zsh/zpty
zpty inner zsh -f -i
zpty -w inner "PS1= PROMPT2= ; fpath=($1/functions \$fpath); autoload -U compinit; compinit -D -d $1/dump; PATH=$1:\$PATH"
zpty -w inner 'compadd () {
  local -a offered; local -A o
  zparseopts -E -A o D: O: A: a k
  if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then builtin compadd "$@"; return $?; fi
  builtin compadd -O offered "$@"
  print -rl -- "<"${^offered}">"
  builtin compadd "$@"
}'
zpty -w inner "bindkey '^I' complete-word; zstyle ':completion:*' list-prompt ''; LISTMAX=0; print BEGUN"
zpty -r inner seen '*BEGUN*BEGUN*'
zpty -w -n inner "$2"$'\t'
sleep 0.2
zpty -w -n inner $'\x15print ENDED\n'
text=
while zpty -r inner chunk; do
  text+=$chunk
  [[ $chunk == *ENDED* && $text == *ENDED*ENDED* ]] && break
done
print -r -- ${text//$'\r'/} | grep -oE '<[^<> ]+>' | tr -d '<>' | sort -u
zpty -d inner
