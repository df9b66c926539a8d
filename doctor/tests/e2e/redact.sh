#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# redact.sh SCANKIT WORK: a real environment full of what must not leave the house: in its folder's name, in variables, in
# what an import says, in a log. Every report is made twice: without --redact the secrets are there, with it none is.
set -euo pipefail
scankit=$(realpath "$1") work=$2/redact
E2E=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=ci/fixtures.sh
. "$E2E/../../../ci/fixtures.sh"
# shellcheck source=doctor/tests/e2e/expect.sh
. "$E2E/expect.sh"
rm -rf "$work" && mkdir -p "$work/open" "$work/clean"
work=$(cd "$work" && pwd)

user=zeldaquux other=quentinbar node=node1734 domain=secret-corp.example
token=hf_abcdefghijKLMNOPQRSTuvwxyz012345 push=ghp_0123456789abcdefghijABCDEFGHIJ012345
password=hunter2-pass-9 cloud=AKIAQWERTYUIOPASDFGH
home=$work/home/$user
env=$home/project/.venv
mkdir -p "$home/project"
"$(fx_python)" -m venv --without-pip "$env"
site=$(fx_site "$env/bin/python")

# A module that is cut short, one whose failure tells what it was given, and a .pth line into another user's home.
head -c 200 "$(command -v bash)" >"$site/selective_scan_cuda$(fx_suffix "$env/bin/python")"
cat >"$site/causal_conv1d_cuda.py" <<PY
raise ImportError("cannot fetch https://$user:$password@index.$domain/simple/ with token=$token from $home/.netrc on $node.$domain")
PY
cat >"$site/$other.pth" <<PTH
/home/$other/checkout
PTH
log=$home/project/build-$node.log
cat >"$log" <<LOG
$user@$node:~/project\$ HF_TOKEN=$token pip install --index-url https://$user:$password@index.$domain/simple mamba-ssm
Looking in indexes: https://$user:****@index.$domain/simple
export AWS_ACCESS_KEY_ID=$cloud
remote: Authorization: Bearer $push
Traceback (most recent call last):
  File "/home/$other/project/train.py", line 3, in <module>
    import selective_scan_cuda
ERROR: Could not find a version that satisfies the requirement causal-conv1d (from https://$user:$password@index.$domain/simple as $cloud, Authorization: Bearer $push, from $node)
RuntimeError: refused by $node: password=$password user $user
ImportError: /home/$other/project/.venv/lib/python3.11/site-packages/selective_scan_cuda.cpython-311-x86_64-linux-gnu.so: undefined symbol: _ZN3c104cuda9SetDeviceEi
LOG

export HOME=$home USER=$user LOGNAME=$user HOSTNAME=$node.$domain SLURMD_NODENAME=$node HF_TOKEN=$token
export PIP_INDEX_URL=https://$user:$password@index.$domain/simple PYTHONPATH=/home/$other/lib:$home/extra
export LD_LIBRARY_PATH=/mnt/$node/lib:$home/lib
secrets=("$user" "$other" "$node" "$domain" "$token" "$push" "$password" "$cloud")

# reports FOLDER NAME ARGUMENT...: every form of one diagnosis.
reports() {
  local into=$1/$2 code=0
  shift 2
  "$scankit" doctor "$@" -v --report "json=$into.json" --report "junit=$into.xml" --report "sarif=$into.sarif" \
    --report "github=$into.github" --report "markdown=$into.md" --report "html=$into.html" >"$into.txt" 2>"$into.err" || code=$?
  case $code in 0 | 1 | 4) ;; *) expect_fail "exit status $code: doctor $* ($(cat "$into.err"))" ;; esac
}
all_of() { # FOLDER OPTION...
  local folder=$1
  shift
  reports "$folder" live --python "$env/bin/python" "$@"
  reports "$folder" files --python "$env/bin/python" --no-import --gpu sm_90 "$@"
  reports "$folder" named --so "$site" --python "$env/bin/python" "$@"
  reports "$folder" log --log "$log" "$@"
  reports "$folder" joined --log "$log" --from "$home/facts.json" "$@"
  "$scankit" snapshot --import --python "$env/bin/python" "$@" --out "$folder/snapshot.json" 2>/dev/null
}
cd "$home/project"
"$scankit" snapshot --import --python "$env/bin/python" --out "$home/facts.json" 2>/dev/null
all_of "$work/open"
all_of "$work/clean" --redact
reports "$work/clean" stored --from "$work/clean/snapshot.json"

for secret in "${secrets[@]}"; do
  grep -rqF -- "$secret" "$work/open" || expect_fail "$secret was never there: the test proves nothing"
done
for secret in "${secrets[@]}"; do
  if grep -rnF --exclude='*.err' -- "$secret" "$work/clean" | cut -c1-300 | head -n 5 | grep .; then
    expect_fail "$secret is still there"
  fi
done
# The same diagnosis as without: what was taken out is no fact.
for name in live files log joined; do
  [ "$(jq -c '[.verdict, [.findings[].cause]]' "$work/open/$name.json")" = "$(jq -c '[.verdict, [.findings[].cause]]' "$work/clean/$name.json")" ] ||
    expect_fail "$name: another diagnosis with --redact"
done
echo "ok: $(find "$work/clean" -type f ! -name '*.err' | wc -l) outputs without any of ${#secrets[@]} secrets"
