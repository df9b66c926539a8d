# shellcheck shell=bash disable=SC2154
# SPDX-License-Identifier: Apache-2.0
# Sourced by validate.sh: its steps, each with a time of its own, and the summary. Wants $scankit, $python, $work, $budget
# and $some.
names=() verdicts=() took=() pending=()
enough=15  # seconds below which nothing is begun

noted() { names+=("$1"); verdicts+=("$2"); took+=("$3"); }
left_out() { noted "$1" "NOT RUN: $2" 0; }
# failed_in NAME WHY: of a step that was noted.
failed_in() {
  local i
  for i in "${!names[@]}"; do
    [ "${names[i]}" != "$1" ] || case "${verdicts[i]}" in
      'NOT RUN'*) return ;;
      *) verdicts[i]="FAILED: $2" ;;
    esac
  done
  echo "not so: $1: $2"
}
seconds_left() { echo $((budget - SECONDS)); }

# step NAME COMMAND...
step() {
  local name=$1 begin=$SECONDS rc
  shift
  timeout "$(seconds_left)" "$@" >"$work/$name.txt" 2>"$work/$name.err"
  rc=$?
  echo "== $name: exit $rc, $((SECONDS - begin)) s"
  if [ $rc = 0 ]; then noted "$name" ok $((SECONDS - begin)); else
    noted "$name" "FAILED: exit $rc" $((SECONDS - begin)); tail -n 20 "$work/$name.txt" "$work/$name.err"
  fi
}
# one NAME EXPECTED OPTION...: validate, with its reports as $work/NAME.json and so on.
one() {
  local name=$1
  shift 2
  timeout "$(seconds_left)" "$scankit" validate --python "$python" --device cuda --report "json=$work/$name.json" \
    --report "html=$work/$name.html" --report "junit=$work/$name.xml" "$@" >"$work/$name.txt" 2>"$work/$name.err"
}
# judged NAME EXPECTED STATUS SECONDS
judged() {
  echo "== $1: exit $3, $4 s: $(tail -n 1 "$work/$1.txt")"
  if [ "$3" = "$2" ]; then noted "$1" ok "$4"; else
    noted "$1" "FAILED: exit $3, expected $2" "$4"; tail -n 30 "$work/$1.txt" "$work/$1.err"
  fi
}
validated() {
  local begin=$SECONDS rc
  if [ "$(seconds_left)" -lt $enough ]; then left_out "$1" "no time was left"; return; fi
  one "$@"
  rc=$?
  judged "$1" "$2" $rc $((SECONDS - begin))
}
# holds NAME CONDITION: of the JSON (r) of NAME.
holds() {
  local i
  for i in "${!names[@]}"; do
    [ "${names[i]}" != "$1" ] || case "${verdicts[i]}" in 'NOT RUN'*) return ;; esac
  done
  "$python" - "$work/$1.json" "$2" <<'PY' || failed_in "$1" "$2"
import json, sys
try:
    r = json.load(open(sys.argv[1]))
except Exception as error:
    sys.exit("no report: %s" % error)
failed = lambda way="": [c for c in r["cases"] if c["state"] == "failed" and c["device"] == "cuda:0" + way]
said = lambda way="": "\n".join(x for c in failed(way) for x in c["reasons"])
try:
    good = eval(sys.argv[2])
except Exception as error:
    good, _ = False, print("cannot be told:", error)
if not good:
    print(said()[:600], said("+stream")[:300], said("+graph")[:300], said("+bands")[:300], "\n".join(r["notes"])[:600], sep="\n")
    sys.exit(1)
PY
}
# mostly_passed FILE: of pytest's last line there, "14 failed, 139 passed, 80 skipped in 66.58s", fewer than one in five failed.
mostly_passed() {
  local line passed failed
  line=$(grep -E '[0-9]+ passed.* in [0-9.]+s' "$1" | tail -n 1)
  passed=$(grep -oE '[0-9]+ passed' <<<"$line" | grep -oE '^[0-9]+') || return 1
  failed=$(grep -oE '[0-9]+ failed' <<<"$line" | grep -oE '^[0-9]+') || failed=0
  [ $((4 * failed)) -lt "$passed" ]
}
# wrong NAME FOLDER WAY WORD OPTION...: begun by all_wrong_ones, which wait for each other.
wrong() { pending+=("$(printf '%q ' "$@")"); }
run_wrong() {
  local name=$1 folder=$2 begin=$SECONDS
  shift 4
  one "$name" 6 --module "$folder/$name.py" --no-timing "${some[@]}" "$@"
  echo "$? $((SECONDS - begin))" >"$work/$name.end"
}
all_wrong_ones() {
  local each rc begin
  local -a words children=()
  if [ "$(seconds_left)" -lt $enough ]; then
    for each in "${pending[@]}"; do left_out "${each%% *}" "no time was left"; done
    pending=(); return
  fi
  for each in "${pending[@]}"; do
    eval "words=($each)"
    run_wrong "${words[@]}" &
    children+=($!)
    [ $(( ${#children[@]} % 4 )) != 0 ] || { wait "${children[@]}"; children=(); }
  done
  [ ${#children[@]} = 0 ] || wait "${children[@]}"
  for each in "${pending[@]}"; do
    eval "words=($each)"
    read -r rc begin <"$work/${words[0]}.end"
    judged "${words[0]}" 6 "$rc" "$begin"
    [ -z "${words[3]}" ] || holds "${words[0]}" "'${words[3]}' in said('${words[2]}')"
  done
  pending=()
}

summary() {
  local i failed=0 left=0 good=0
  echo; echo "step                             seconds  verdict"
  for i in "${!names[@]}"; do
    printf '%-32s %7d  %s\n' "${names[i]}" "${took[i]}" "${verdicts[i]}"
    case "${verdicts[i]}" in ok) good=$((good + 1)) ;; FAILED*) failed=$((failed + 1)) ;; *) left=$((left + 1)) ;; esac
  done
  echo "$good passed, $failed failed, $left not run, $SECONDS s"
  if [ $failed != 0 ]; then exit 1; elif [ $left != 0 ]; then exit 4; fi
  exit 0
}
