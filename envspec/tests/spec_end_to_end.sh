#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A spec of a real environment, and what env check says after real changes to it:
#   spec_end_to_end.sh SCANKIT PYTHON_WITH_TORCH MODULE
# The environment is a venv of its own that sees the other one's torch through a .pth file; MODULE is a selective_scan_cuda.
set -euo pipefail
# shellcheck source=builder/tests/checks.sh
. "$(dirname "$0")/../../builder/tests/checks.sh"
scankit=$(realpath "$1") module=$(realpath "$3")
python=$(realpath -s "${SCANKIT_TEST_PYTHON:-$2}")
skip_without_torch "$python"
export XDG_CACHE_HOME=$work/cache
unset VIRTUAL_ENV PYTHONPATH CONDA_PREFIX
env=$work/env
venv_beside "$python" "$env"
cp "$module" "$site/selective_scan_cuda.abi3.so"
mkdir "$work/project"
cd "$work/project"
env_check() { "$scankit" env check --python "$env/bin/python" "$@"; }
root_is() { # root_is CAUSE: of the JSON that the last command printed
  "$python" -c 'import json, sys; print((json.load(open(sys.argv[1]))["root"] or {}).get("cause"))' "$work/out" | grep -qx "$1"
}
drifts() { # drifts WHAT CAUSE [OPTION...]
  local what=$1 cause=$2
  shift 2
  check "$what is a drift" status_is 7 env_check --json "$@"
  check "$what is called $cause" root_is "$cause"
}

check "without a spec it says what to do" status_is 2 env_check
check "and names the command" says "scankit env init"
check "init writes a spec" status_is 0 "$scankit" env init --python "$env/bin/python"
check "with a schema that editors find" grep -qx '# yaml-language-server: $schema=scankit.schema.json' scankit.yaml
check "beside it" sh -c "'$scankit' env schema | cmp - scankit.schema.json"
check "it names the extension" grep -q '^  selective_scan_cuda:' scankit.yaml
check "what it was written from agrees" status_is 0 env_check
before=$(sha256sum scankit.yaml)
check "init does not write over it" status_is 2 "$scankit" env init --python "$env/bin/python"
check "and says so" says "already exists,"
check "not a byte of it" test "$(sha256sum scankit.yaml)" = "$before"
check "--force does" status_is 0 "$scankit" env init --python "$env/bin/python" --force
check "the same environment gives the same bytes" test "$(sha256sum scankit.yaml)" = "$before"
check "a folder that is not there is named" status_is 2 "$scankit" env init --python "$env/bin/python" --out none/s.yaml
check "no half file is left" test -z "$(find . -name '*.tmp*' -o -name '.scankit*')"

"$scankit" snapshot --python "$env/bin/python" --out machine.json 2>/dev/null
check "a stored snapshot of it agrees" status_is 0 "$scankit" env check --from machine.json
"$scankit" env init --from machine.json --out - >stored.yaml
check "and gives the same spec" test "$(cat stored.yaml)" = "$(tail -n +2 scankit.yaml)"
sed 's/"state": "present"/"state": "failed"/' machine.json >unread.json
check "facts that could not be read are no agreement" status_is 4 "$scankit" env check --from unread.json
sed 's/"schema": 1/"schema": 99/' machine.json >newer.json
check "a snapshot by a newer scankit is refused" status_is 2 "$scankit" env check --from newer.json

rm "$site/selective_scan_cuda.abi3.so"
drifts "a deleted module" drift_extension_missing
check "scankit offers to repair it" says "scankit fix"
echo '<!DOCTYPE html>' >"$site/selective_scan_cuda.abi3.so"
drifts "a web page in its place" drift_extension
cp "$module" "$site/selective_scan_cuda.abi3.so"
check "back in its place it agrees" status_is 0 env_check

# Another torch: the files of the real one, with another release in its version file, come first on the path.
mkdir "$site/torch"
ln -s "$("$python" -c 'import torch, os; print(os.path.dirname(torch.__file__))')"/* "$site/torch/"
rm "$site/torch/version.py"
printf "__version__ = '2.99.1+cu126'\ndebug = False\ncuda = '12.6'\ngit_version = 'x'\nhip = None\n" >"$site/torch/version.py"
drifts "another torch" drift_torch
check "its CUDA follows from it" sh -c "grep -c '\"because_of\": \"drift_torch\"' '$work/out' | grep -qx 1"
check "the line of the spec is named" grep -q '"file": "scankit.yaml"' "$work/out"
rm -r "$site/torch"

# An unpacked image: this environment and the Python below it, as files alone.
base=$("$env/bin/python" -c 'import os; print(os.path.dirname(os.path.realpath(os.__file__)))')
interpreter=$(realpath "$env/bin/python")
mkdir -p "$work/root/etc" "$work/root$base" "$work/root$(dirname "$interpreter")" "$work/root$work"
cp "$base/os.py" "$work/root$base/"
cp "$interpreter" "$work/root$(dirname "$interpreter")/"
cp -a "$env" "$work/root$work/"
printf 'schema: 1\nextensions:\n  selective_scan_cuda: {python_tag: abi3}\n' >image.yaml
check "an image agrees" status_is 0 "$scankit" env check --root "$work/root" --python "$env/bin/python" --spec image.yaml
rm "$work/root$site/selective_scan_cuda.abi3.so"
check "until its module is gone" status_is 7 "$scankit" env check --root "$work/root" --python "$env/bin/python" --spec image.yaml

with() { # with LINE...: the spec with these lines in place of the table that the first of them opens
  sed "/^$(printf '%s' "$1" | sed 's/:.*//'):/,/^[a-z#]/{/^$(printf '%s' "$1" | sed 's/:.*//'):/d;/^ /d}" scankit.yaml >changed.yaml
  printf '%s\n' "$@" >>changed.yaml
}
with 'gpus: [sm_52]'
drifts "a GPU that torch has no code for" drift_gpu --spec changed.yaml
with 'python:' '  version: "3.8.*"'
drifts "another Python" drift_python --spec changed.yaml
with 'host_compiler:' '  kind: gcc' '  version: ">=99"'
drifts "another compiler" drift_compiler --spec changed.yaml
with 'extensions:' '  selective_scan_cuda:' '    torch_abi: full'
drifts "another way of building" drift_extension --spec changed.yaml
check "below the limit it is no failure" status_is 0 env_check --spec changed.yaml --fail-on never
check "every format takes it" status_is 7 env_check --spec changed.yaml --report junit=j.xml --report sarif=s.json \
  --report markdown=m.md --report html=h.html --report github=g.txt
check "XML and JSON are well-formed" "$python" -c 'import json, xml.dom.minidom as x; x.parse("j.xml"); json.load(open("s.json"))'

# Any two of them.
differ() { "$scankit" env diff "$@"; }
check "an environment agrees with its spec" status_is 0 differ scankit.yaml "$env"
check "and with its snapshot" status_is 0 differ "$env/bin/python" machine.json
check "a snapshot with its spec" status_is 0 differ machine.json scankit.yaml
check "another spec does not" status_is 7 differ scankit.yaml changed.yaml
check "the field is named" says "extensions.selective_scan_cuda.torch_abi"
check "another environment does not" status_is 7 differ --json machine.json "$python"
check "it lacks the module" says '"field": "extensions.selective_scan_cuda"'
check "unread facts are no agreement" status_is 4 differ unread.json scankit.yaml
check "what is not there is named" status_is 2 differ scankit.yaml none.yaml

# A stranger's spec is data.
printf 'schema: 1\ndriver: "$(touch %s/run)"\n' "$work" >evil.yaml
check "what looks like a command is no version" status_is 2 env_check --spec evil.yaml
printf 'schema: 1\npython: {version: "3.*"}\nextensions:\n  os.system: {distribution: touch}\n' >evil.yaml
if command -v strace >/dev/null && strace -o /dev/null true 2>/dev/null; then
  strace -f -e trace=execve,execveat -o trace "$scankit" env check --python "$env/bin/python" --spec evil.yaml >/dev/null 2>&1 || true
  # The doctor asks the C++ compiler of the machine for its version, whatever the spec says.
  check "nothing that it names is run" test "$(grep execve trace | grep -vc -- -dumpfullversion)" = 1
fi
printf 'schema: 1\ninclude: /etc/passwd\n' >evil.yaml
check "a spec cannot name a file to read" status_is 2 env_check --spec evil.yaml
check "an unknown key is named with its line" says "evil.yaml:2:1: unknown field \"include\""
printf 'schema: 1\ntocrh: {}\n' >evil.yaml
check "and the nearest known one" status_is 2 env_check --spec evil.yaml
check "is named" says 'did you mean "torch"?'
printf 'schema: 1\n' >empty.yaml
check "a spec that demands nothing proves nothing" status_is 4 env_check --spec empty.yaml
ln -s /dev/zero endless.yaml
check "an endless file ends" status_is 2 env_check --spec endless.yaml
check "a folder is no spec" status_is 2 env_check --spec .

# The machine of a spec, for build.
with 'gpus: [sm_90]'
check "build takes a spec for its GPUs" status_is 0 "$scankit" build --python "$env/bin/python" --for changed.yaml --list-toolchains
check "a spec without GPUs is told so" status_is 2 "$scankit" build --python "$env/bin/python" --for empty.yaml --list-toolchains
check "a bad one, too" status_is 2 "$scankit" build --python "$env/bin/python" --for evil.yaml --list-toolchains

end
