#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What strangers and accidents put before `env`: files that change while they are hashed, bombs, forged locks, and specs and
# locks that name what they must not reach:  bad_input.sh SCANKIT
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
scankit=$(realpath "$1")
# shellcheck source=envspec/tests/small_index.sh
. "$here/small_index.sh"
small_env "$work/env"
check "lock" lock
cp scankit.lock good.lock

# A library that somebody writes at this moment: no hash of a state that never was.
head -c 300000000 /dev/zero >"$site/growing.so"
(while :; do printf x && sleep 0.001; done >>"$site/growing.so") &
writer=$!
rm scankit.lock
lock_status=0
"$scankit" env lock --offline --python "$python" >"$work/out" 2>"$work/err" || lock_status=$?
check "a file that changes while it is hashed ends the lock" test "$lock_status" != 0
check "by name" says "growing.so changed while it was read"
check "with what to do" says "wait until the installer is finished,"
check "no lock is left" test ! -e scankit.lock
kill "$writer"
wait "$writer" 2>/dev/null || true
check "when it is done it can be locked" lock --offline
(while :; do printf x && sleep 0.001; done >>"$site/growing.so") &
writer=$!
check "a check does not take it for the same" test "$("$scankit" env check --lock scankit.lock --python "$python" >"$work/out" 2>&1; echo $?)" = 4
kill "$writer"
wait "$writer" 2>/dev/null || true
rm "$site/growing.so"
cp good.lock scankit.lock

# Bombs: an answer within seconds, and in little memory.
bounded() { (ulimit -v 1500000 && exec timeout 20 "$@"); }
refused() { # refused WHAT WORDS COMMAND...
  local what=$1 words=$2
  shift 2
  check "$what" status_is 2 bounded "$@"
  check "$what: says why" says "$words"
}
"$base" - <<'PY'
import json
lines = ["a: &a [x,x,x,x,x,x,x,x,x]"] + ["%s: &%s [%s]" % (c, c, ",".join(["*" + chr(ord(c) - 1)] * 9)) for c in "bcdefghij"]
open("laughs.yaml", "w").write("\n".join(lines) + "\n")
open("keys.yaml", "w").write("schema: 1\n" + "".join("key%d: 1\n" % i for i in range(1000000)))
open("deep.yaml", "w").write("schema: 1\nx: " + "[" * 200000)
good = json.load(open("good.lock"))
open("keys.lock", "w").write(json.dumps({**good, **{"key%d" % i: i for i in range(1000000)}}))
open("major.lock", "w").write(json.dumps({**good, "schema": "2.0"}))
open("deep.lock", "w").write('{"schema": "1.0", "x": ' + "[" * 1000000)
with open("long.lock", "w") as file:
    file.write(json.dumps({**good, "long": "x" * (65 << 20)}))
PY
for command in "check --python $python --spec" "diff $python"; do
  # shellcheck disable=SC2086
  for bomb in "laughs anchors" "keys longer" "deep yaml:2:5:"; do
    refused "env ${command%% *}: ${bomb% *}.yaml" "${bomb#* }" "$scankit" env $command "${bomb% *}.yaml"
  done
done
for command in "check --python $python --lock" "diff $python" "export requirements --lock" "fetch --lock"; do
  # shellcheck disable=SC2086
  for bomb in "keys parts" "major schema" "deep levels" "long long.lock"; do
    refused "env ${command%% *}: ${bomb% *}.lock" "${bomb#* }" "$scankit" env $command "${bomb% *}.lock"
  done
done
"$scankit" snapshot --python "$python" --out here.json 2>/dev/null
sed 's/"schema": 1/"schema": 99/' here.json >newer.json
refused "diff with a snapshot by a newer scankit" "newer" "$scankit" env diff newer.json good.lock
refused "init from it" "newer" "$scankit" env init --from newer.json --out x.yaml
check "nothing was written" test ! -e x.yaml

# Forged by somebody who knows how the hashes of the parts are made.
forge() { # forge POINTER VALUE
  "$base" - "$@" <<'PY'
import hashlib, json, sys
lock = json.load(open("good.lock"))
*way, last = sys.argv[1].strip("/").split("/")
at = lock
for key in way:
    at = at[int(key) if isinstance(at, list) else key]
at[int(last) if isinstance(at, list) else last] = sys.argv[2]
del lock["integrity"]
lock["integrity"] = {name: hashlib.sha256(json.dumps(part, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()).hexdigest()
                     for name, part in lock.items()}
json.dump(lock, open("forged.lock", "w"))
PY
}
echo secret >"$work/secret.whl"
forge /distributions/1/version 2.1
check "a forged lock is read: it is no signature" status_is 7 "$scankit" env check --python "$python" --lock forged.lock
for name in ../../secret.whl "$work/secret.whl" 'x";touch marked;".whl'; do
  forge /distributions/1/artifact/file "$name"
  refused "a wheel called $name" "cannot be" "$scankit" env export dockerfile --lock forged.lock --out Dockerfile
done
forge /libraries/0/path ../../../../etc/passwd
refused "a library outside of the environment" "cannot be" "$scankit" env check --lock forged.lock --python "$python"
forge /python/version '3.11
RUN touch marked'
refused "a version with a line of its own" "cannot be" "$scankit" env export dockerfile --lock forged.lock

# A stranger's spec reaches neither a command nor a file beyond the environment.
printf 'schema: 1\npython: {version: "3.*"}\nextensions:\n  marked.inner: {distribution: marked-by-spec}\n' >strange.yaml
if command -v strace >/dev/null && strace -o /dev/null true 2>/dev/null; then
  strace -f -e trace=execve,open,openat,stat,newfstatat,access,readlink -o trace "$scankit" env check --python "$python" --spec strange.yaml >/dev/null 2>&1 || true
  grep marked trace | grep -v 'strange.yaml' >reached || true
  check "what it names is looked for" test -s reached
  check "where import looks alone: this folder, the environment and its Python" sh -c '! grep -vF -e "$1" -e "$2" -e "$3" reached' \
    sh "$PWD/marked" "$site" "$(dirname "$(dirname "$(realpath "$python")")")"
  check "and nothing of it is run" sh -c '! grep execve trace | grep marked'
else
  echo "no strace here: not tested"
fi
check "nothing was marked" test -z "$(find . -name marked)"
end
