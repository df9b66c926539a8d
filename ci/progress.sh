# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# live: runs a command of minutes and shows that it is alive, on stderr. On a terminal one line is rewritten each second;
# without one (or where TERM is dumb) a line comes every SCANKIT_TICK seconds, 5 unless told. Sourced.

# clock SECONDS: 75 is 1:15.
clock() { printf '%d:%02d' $(($1 / 60)) $(($1 % 60)); }

live_rewrites() { [ -t 2 ] && [ "${TERM:-dumb}" != dumb ]; }

# live_tick TITLE DETAIL ARGUMENT SECONDS: one line of progress.
live_tick() {
  local text columns
  text=$($2 "$3" 2>/dev/null || true)
  text="$1: ${text:+$text, }$(clock "$4")"
  if live_rewrites; then
    columns=$(stty size 2>/dev/null <&2 | cut -d' ' -f2) # each time: the window may have been resized
    [ "${columns:-0}" -gt 10 ] || columns=80
    printf '\r%s\e[K' "${text:0:columns-1}" >&2
  else
    printf '%s\n' "$text" >&2
  fi
}

# live TITLE DETAIL ARGUMENT COMMAND...: its exit status is COMMAND's. `DETAIL ARGUMENT` prints in a few words how far it
# is. COMMAND redirects its own output (see logged) and runs in the foreground, so that Ctrl-C reaches it.
live() {
  local title=$1 detail=$2 argument=$3 start=$SECONDS code=0 tick=${SCANKIT_TICK:-5} shell=$BASHPID ticker
  shift 3
  live_rewrites && tick=1
  (
    exec 9>&- # fx_once's lock is not ours to hold
    trap 'kill "$nap" 2>/dev/null; exit 0' TERM
    while :; do
      sleep "$tick" 2>/dev/null & # in the background: a trap waits for what runs in the foreground
      nap=$!
      wait "$nap"
      kill -0 "$shell" 2>/dev/null || exit 0 # killed, or Ctrl-C
      live_tick "$title" "$detail" "$argument" $((SECONDS - start)) || true
    done
  ) >/dev/null </dev/null &
  ticker=$!
  "$@" || code=$?
  kill "$ticker" 2>/dev/null || true
  wait "$ticker" 2>/dev/null || true
  if live_rewrites; then printf '\r\e[K' >&2; fi
  return "$code"
}

# logged LOG COMMAND...: all output goes to the end of LOG.
logged() {
  local log=$1
  shift
  "$@" >>"$log" 2>&1 </dev/null
}

# Details, each with the file or folder to look at.
no_detail() { :; }
last_line() { tail -c 2000 "$1" | tr '\r' '\n' | sed -E 's/\x1b\[[0-9;]*[A-Za-z]//g' | grep . | tail -n 1 | cut -c1-100; }
ninja_detail() { # [214/593]
  local counts
  counts=$(tail -c 8000 "$1" | grep -oE '^\[[0-9]+/[0-9]+\]' | tail -n 1 | tr -d '[]')
  [ -n "$counts" ] || { echo "configuring" && return 0; }
  printf '%d of %d (%d %%)' "${counts%/*}" "${counts#*/}" $((100 * ${counts%/*} / ${counts#*/}))
}
apt_detail() { # dlstatus:2:40.1:Retrieving file 3 of 9 ..., pmstatus:g++:62.5:Unpacking g++ (amd64); or what apt waits for
  local last
  last=$(tail -c 4000 "$1" | tr '\r' '\n' | grep -E '^(dl|pm)status:|^(Waiting|Err|E:|Get:)' | tail -n 1)
  case $last in
    dlstatus:* | pmstatus:*)
      last=${last#*:*:}
      printf '%d %%, %s' "${last%%.*}" "$(cut -d: -f2- <<<"$last")"
      ;;
    *) printf '%s' "$last" ;;
  esac
}
# What pip loads at the moment: its log names file and size, and the folder beside it (pip's TMPDIR) holds the bytes so far.
pip_detail() {
  local line name size bytes
  line=$(grep -E 'Downloading [^ ]+ \([0-9.]+ [kMG]?B\)' "$1/log" | tail -n 1)
  name=$(sed -E 's/.*Downloading ([^ ]+) \(.*/\1/; s|.*/||' <<<"$line")
  size=$(sed -E 's/.*\(([0-9.]+) ([kMG]?)B\).*/\1 \2/' <<<"$line")
  [ -n "$name" ] || { last_line "$1/log" && return 0; }
  bytes=$(find "$1" -name "$name" -printf '%s\n' 2>/dev/null | sort -n | tail -n 1)
  awk -v name="${name%%-[a-z]*}" -v of="${size% *}" -v unit="${size#* }" -v bytes="${bytes:-0}" 'BEGIN {
    whole = of * (unit == "G" ? 1e9 : unit == "M" ? 1e6 : unit == "k" ? 1e3 : 1)
    if (bytes > whole) bytes = whole
    printf "%s, %.1f of %.1f MB (%d %%)", name, bytes / 1e6, whole / 1e6, whole ? 100 * bytes / whole : 100 }'
}
size_detail() { du -sm "$1" 2>/dev/null | awk '{ printf "%d MB so far", $1 }'; }
