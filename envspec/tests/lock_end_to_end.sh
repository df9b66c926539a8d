#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A real environment locked, exported, rebuilt by pip and by uv, and bent in every way that the lock must name; a package index
# on the loopback that answers, stalls and goes away:  lock_end_to_end.sh SCANKIT
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
scankit=$(realpath "$1")
# shellcheck source=envspec/tests/small_index.sh
. "$here/small_index.sh"
small_env "$work/env"

check "lock by uv's index" lock
check "it knows the wheel of the index" test "$(part 'lock["distributions"][0]["artifact"]["sha256"]')" = \
  "$(sha256sum "$work/served/alpha-1.0-py3-none-any.whl" | cut -d' ' -f1)"
check "and makes one of what was built here" test "$(part 'lock["distributions"][1]["source"]')" = here
check "every library is hashed" test "$(part 'lock["libraries"][0]["sha256"]')" = "$(sha256sum "$site/beta/_c.abi3.so" | cut -d' ' -f1)"
cp scankit.lock first.lock
check "again" lock
check "with the same bytes" cmp scankit.lock first.lock
check "nothing drifted" drift 0

# Rebuilt from every export.
check "requirements.txt" status_is 0 "$scankit" env export requirements --python "$python" --out requirements.txt
check "pylock.toml" status_is 0 "$scankit" env export pylock --python "$python" --out pylock.toml
check "environment.yml" status_is 0 "$scankit" env export conda --python "$python" --out environment.yml
check "a Dockerfile" status_is 0 "$scankit" env export dockerfile --python "$python" --out Dockerfile
rebuild() { # NAME COMMAND...: an environment by COMMAND, with the Python as $P
  local name=$1
  shift
  "$tools/bin/python" -m venv --without-pip "$work/$name"
  P=$work/$name/bin/python check "$name rebuilds it" status_is 0 "$@"
  check "and nothing drifted" drift 0 --python "$work/$name/bin/python"
  check "and it imports" "$work/$name/bin/python" -c 'import alpha, beta'
}
rebuild pip by_pip
rebuild uv by_uv
rebuild pylock by_pylock
check "the Dockerfile checks the wheel" grep -q "$(sha256sum scankit-wheels/beta-*.whl | cut -d' ' -f1) scankit-wheels/beta-2.0" Dockerfile
rm -r scankit-wheels
check "fetch brings what a URL is known of" status_is 4 "$scankit" env fetch --out wheels
check "whole" cmp wheels/alpha-1.0-py3-none-any.whl "$work/served/alpha-1.0-py3-none-any.whl"
cp "$work/served/alpha-1.0-py3-none-any.whl" "$work/kept.whl"
truncate -s 200M "$work/served/alpha-1.0-py3-none-any.whl"
check "what is longer than the lock says is not fetched" status_is 1 "$scankit" env fetch --out longer
check "with both sizes" says "the file on the server has 209715200 bytes, expected "
check "but stopped" test "$(du -sk longer | cut -f1)" -lt 1000
mv "$work/kept.whl" "$work/served/alpha-1.0-py3-none-any.whl"

# Drift, planted.
cp "$site/beta/_c.abi3.so" "$work/kept.so"
echo 'int answer(void) { return 43; }' | cc -x c -shared -fPIC -o "$site/beta/_c.abi3.so" -
check "a rebuilt file is drift" drift 7
check "by name" says "drift_lock_file"
cp "$work/kept.so" "$site/beta/_c.abi3.so"
cp "$work/kept.so" "$site/beta/_c.cpython-311-x86_64-linux-gnu.so"
check "a file beside it is a warning" drift 0
check "by name" says "drift_lock_file_extra"
rm "$site/beta/_c.cpython-311-x86_64-linux-gnu.so"
uv pip install --python "$python" alpha==1.1
check "another version is drift" drift 7
check "with both" says "locks alpha 1.0, but 1.1 is installed"
uv pip uninstall --python "$python" alpha
check "a package that is gone is drift" drift 7
check "by name" says "locks alpha 1.0, which is not installed"
uv pip install --python "$python" alpha==1.0
check "put back, nothing drifted" drift 0

# Bad locks.
sed 's/"version": "1\.0"/"version": "1.2"/' first.lock >scankit.lock
check "an edited lock is refused" drift 2
check "with the part" says "scankit.lock was edited after scankit wrote it: distributions"
check "an export refuses it too" status_is 2 "$scankit" env export requirements
head -c 500 first.lock >scankit.lock
check "a lock that was cut is refused" drift 2
rm scankit.lock
check "no lock, no answer" drift 2
check "and how to write one" says "scankit env lock"

# The index goes away.
kill "$server"
wait "$server" 2>/dev/null || true
check "an index that is not there gives no hash" lock --timeout 20
check "with the reason" says "no hash of alpha==1.0: the index could not be reached"
status=2 check "requirements without a hash are refused" status_is 2 "$scankit" env export requirements
check "by name" says "no hash of alpha==1.0"
check "and what would help" says "run scankit env lock where the index can be reached, or leave them out with --partial"
check "conda's file is refused as well" status_is 2 "$scankit" env export conda --python "$python" --out part/environment.yml
check "unless that is wanted" status_is 0 "$scankit" env export requirements --partial --python "$python" --out part/requirements.txt
cp first.lock scankit.lock
check "offline, the old lock knows" lock --offline
check "the same" diff scankit.lock first.lock
# One that takes the connection and says nothing.
: >"$work/port"
python3 -c 'import socket, sys, time
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(5); print(s.getsockname()[1], flush=True); time.sleep(60)' >"$work/port" &
server=$!
for _ in $(seq 100); do [ -s "$work/port" ] && break || sleep 0.1; done
UV_DEFAULT_INDEX=http://127.0.0.1:$(cat "$work/port")/simple
rm scankit.lock
check "an index that stalls is given up" lock --timeout 2
check "with the time" says "the index did not answer within 2 seconds"
end
