#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Each drift from a lock by the real thing: another Python, another torch, another machine, packages and files; of a live
# environment, of an unpacked image and of a stored snapshot:  lock_drift.sh SCANKIT
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
scankit=$(realpath "$1")
# shellcheck source=envspec/tests/small_index.sh
. "$here/small_index.sh"
mkdir -p "$HOME/ada"
small_env "$HOME/ada/env"
# A torch as far as its files tell: what the doctor reads of one is its version file and its libraries.
torch() { # torch FOLDER RELEASE GIT
  mkdir -p "$1/torch" "$1/torch-$2.dist-info"
  touch "$1/torch/__init__.py"
  printf "__version__ = '%s'\ndebug = False\ncuda = '13.0'\ngit_version = '%s'\nhip = None\n" "$2" "$3" >"$1/torch/version.py"
  printf 'Metadata-Version: 2.1\nName: torch\nVersion: %s\n' "$2" >"$1/torch-$2.dist-info/METADATA"
  printf 'torch/version.py,,\ntorch-%s.dist-info/METADATA,,\ntorch-%s.dist-info/RECORD,,\n' "$2" "$2" >"$1/torch-$2.dist-info/RECORD"
}
torch "$site" 2.11.0 aaaa
check "lock" lock --offline
check "nothing drifted" drift 0

causes() { "$base" -c 'import json, sys; print(*sorted({one["cause"] for one in json.load(open(sys.argv[1]))["findings"]}))' "$work/out"; }
drifts() { # drifts WHAT STATUS CAUSES [OPTION...]
  local what=$1 expected=$2 wanted=$3
  shift 3
  [ $# -gt 0 ] || set -- --python "$python"
  check "$what: status $expected" drift "$expected" --json "$@"
  check "$what: $wanted" test "$(causes)" = "$wanted"
}

torch "$site" 2.11.0 bbbb
drifts "a torch of another commit" 7 drift_lock_torch
check "with both" says "locks the commit of torch aaaa, but found bbbb"
rm -r "$site"/torch*
drifts "no torch" 7 "drift_lock_package drift_lock_torch"
torch "$site" 2.12.0 aaaa
drifts "another torch" 7 "drift_lock_package drift_lock_torch"
rm -r "$site"/torch*
torch "$site" 2.11.0 aaaa
uv pip install --python "$python" --no-index --no-deps "$work"/own/gamma-*.whl
drifts "a package more" 0 drift_lock_package_extra
check "it is a warning" drift 7 --python "$python" --fail-on warning
uv pip uninstall --python "$python" gamma alpha
drifts "a package less" 7 drift_lock_package
uv pip install --python "$python" alpha==1.0
differ() { status_is "$1" "$scankit" env diff "${@:2}"; }
check "diff of the lock and what it is of" differ 4 scankit.lock "$HOME/ada/env"
check "differs in nothing, but this torch has no library to read" says "0 differences, 1 unknown"
echo 'int answer(void) { return 43; }' | cc -x c -shared -fPIC -o "$site/beta/_c.abi3.so" -
check "diff compares the hashes of a live environment" differ 7 --json scankit.lock "$HOME/ada/env"
check "by name" says '"field": "files.beta/_c.abi3.so"'
check "with the hash of the file that is there" says "$(sha256sum "$site/beta/_c.abi3.so" | cut -d' ' -f1)"
check "from either side" differ 7 "$python" scankit.lock
drifts "a file with other bytes" 7 drift_lock_file
check "it is called by its path" says "$site/beta/_c.abi3.so"
drifts "redacted it is the same" 7 drift_lock_file --python "$python" --redact
check "but for whose it is" sh -c '! grep -F -- "$1" "$2/out" "$2/err"' sh "$HOME" "$work"
check "and a report" drift 7 --python "$python" --redact --report html=page.html
check "tells no more" sh -c '! grep -qF -- "$1" page.html' sh "$HOME"
check "nor does a redacted diff" differ 7 --redact scankit.lock "$HOME/ada/env"
check "tell where it lies" sh -c '! grep -qF -- "$1" "$2/out"' sh "$HOME" "$work"
rm "$site/beta/_c.abi3.so"
drifts "a file less" 7 drift_lock_file
cp "$work/answer.so" "$site/beta/_c.abi3.so"
cp "$work/answer.so" "$site/beta/_d.abi3.so"
drifts "a file more" 0 drift_lock_file_extra
rm "$site/beta/_d.abi3.so"
drifts "put back" 0 ""

# Another Python: the same files below an interpreter of another minor release.
other=$(fx_other_python "$base")
if [ -n "$other" ]; then
  "$(realpath "$other")" -m venv --without-pip "$work/other"
  cp -a "$site/." "$(fx_site "$work/other/bin/python")/"
  drifts "another Python" 7 drift_lock_python --python "$work/other/bin/python"
  check "with the versions" says "$("$work/other/bin/python" -c 'import platform; print(platform.python_version())') is here"
else
  echo "no second Python here: not tested"
fi

# An unpacked image of the same environment, and what differs in it.
stdlib=$("$python" -c 'import os; print(os.path.dirname(os.path.realpath(os.__file__)))')
interpreter=$(realpath "$python")
image=$work/image
loader=$(readelf -l /bin/true | sed -n 's/.*interpreter: \(.*\)]/\1/p')
libc=$(ldd /bin/true | sed -n 's/.*libc\.so\.6 => \(\S*\) .*/\1/p')
mkdir -p "$image/etc" "$image$stdlib" "$image$(dirname "$interpreter")" "$image$HOME/ada" "$image$(dirname "$loader")" "$image$(dirname "$libc")"
cp /etc/os-release "$image/etc/"
cp -L "$loader" "$image$loader"
cp -L "$libc" "$image$libc"
cp "$stdlib/os.py" "$image$stdlib/"
cp "$interpreter" "$image$(dirname "$interpreter")/"
cp -a "$HOME/ada/env" "$image$HOME/ada/"
drifts "an image of it" 0 "" --root "$image" --python "$python"
echo 'int answer(void) { return 44; }' | cc -x c -shared -fPIC -o "$image$site/beta/_c.abi3.so" -
drifts "another file in the image" 7 drift_lock_file --root "$image" --python "$python"
drifts "and none here" 0 ""
rm -r "$image$site"/torch*
drifts "an image without torch" 7 "drift_lock_file drift_lock_package drift_lock_torch" --root "$image" --python "$python"
check "an image without this Python has no answer" drift 2 --root "$image" --python /none/bin/python

# A stored snapshot: packages and torch are told, files by their build-ids alone.
"$scankit" snapshot --python "$python" --out here.json 2>/dev/null
drifts "its snapshot" 0 "" --from here.json
check "it says what a snapshot cannot tell" says "a snapshot contains none;"
edit() { # edit POINTER VALUE: of here.json, into there.json; a machine that is not at hand
  "$base" -c 'import json, sys
d = json.load(open("here.json"))
*way, last = sys.argv[1].strip("/").split("/")
at = d
for key in way: at = at.setdefault(key, {})
at[last] = json.loads(sys.argv[2])
json.dump(d, open("there.json", "w"))' "$1" "$2"
}
edit /os/value/machine '"aarch64"'
drifts "another processor" 7 drift_lock_machine --from there.json
edit /libc/value/version '"2.17"'
drifts "an older C library" 0 drift_lock_machine --from there.json
edit /libc/value/version '"2.99"'
drifts "a newer C library" 0 "" --from there.json
edit /torch/value/version '"2.12.0"'
drifts "another torch there" 7 drift_lock_torch --from there.json
edit /torch/state '"failed"'
check "facts that could not be read are no agreement" drift 4 --from there.json
edit /schema 99
check "a snapshot by a newer scankit is refused" drift 2 --from there.json
check "a snapshot cannot be locked" status_is 2 "$scankit" env lock --from here.json --out none.lock
check "nor is anything written" test ! -e none.lock
end
