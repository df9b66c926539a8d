#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What `scankit ci init` writes, and the action of this repository, given to those who read it: published schemas,
# pre-commit itself, shellcheck. Then every step's shell is run, as the server runs it:  templates.sh SCANKIT
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
# shellcheck source=ci/tests/checks.sh
. "$root/ci/tests/checks.sh"
# shellcheck source=ci/fixtures.sh
. "$root/ci/fixtures.sh"
scankit=$(realpath "$1")
readers=$(fx_gate_readers)/bin || { echo "SKIP: the readers cannot be installed here" && exit 77; }
kubernetes=$(fx_kubernetes_schemas)/bin || { echo "SKIP: Kubernetes' schemas cannot be installed here" && exit 77; }
unset VIRTUAL_ENV PYTHONPATH CONDA_PREFIX GITHUB_ACTIONS GITHUB_STEP_SUMMARY
made=$work/made
for kind in policy github gitlab jenkins grafana pre-commit slurm-healthcheck kubernetes-probe node-problem-detector issue-template; do
  "$scankit" ci init "$kind" --out "$made/$kind" >/dev/null
done
schema() { "$readers/check-jsonschema" "$@"; }
check "GitHub's schema takes the workflow" schema --builtin-schema vendor.github-workflows "$made/github/.github/workflows/scankit.yml"
check "and the action" schema --builtin-schema vendor.github-actions "$root/ci/action/action.yml"
in_form() { # as a user pastes it; 4: no torch here
  mkdir -p "$work/form" && cd "$work/form" || return 1
  grep -o 'scankit doctor --redact[^`]*' "$form" >as_printed.sh
  PATH=$(dirname "$scankit"):$PATH sh as_printed.sh >out 2>&1 || case $? in 1 | 4) ;; *) cat out && return 1 ;; esac
  test -s report.md && test -s facts.json
}
form=$made/issue-template/.github/ISSUE_TEMPLATE/installation.yml
check "GitHub's schema takes the issue form" schema --builtin-schema vendor.github-issue-forms "$form"
check "and the command in it works as printed" in_form
check "GitLab's takes the pipeline" schema --builtin-schema vendor.gitlab-ci --data-transform gitlab-ci "$made/gitlab/.gitlab-ci.yml"
check "pre-commit takes its file" "$readers/pre-commit" validate-config "$made/pre-commit/.pre-commit-config.yaml"
check "Kubernetes' schema takes the probes" "$kubernetes/kubernetes-validate" --strict "$made/kubernetes-probe/scankit-probe.yaml"
check "the policy's own schema takes the policy" schema --schemafile "$made/policy/scankit-ci.schema.json" "$made/policy/scankit-ci.yaml"
printf 'schema: 1\ncause: {}\n' >"$work/wrong.yaml"
check "and refuses a wrong one" sh -c "! '$readers/check-jsonschema' --schemafile '$made/policy/scankit-ci.schema.json' '$work/wrong.yaml' >/dev/null"

# What the pipelines may install: nothing comes from an index, so that a name that is not published would not be found.
mkdir "$work/wheels"
"$readers/python" "$here/templates.py" wheel "$scankit" "$work/wheels"
"$readers/python" "$here/templates.py" broken "$work/wheels"
cp "$(fx_packages uv==0.13.9 setuptools==75.8.0)"/{uv-0.13.9,setuptools-75.8.0}-*.whl "$work/wheels"
wheel=$(echo "$work"/wheels/scankit-*.whl)
export PIP_NO_INDEX=1 PIP_FIND_LINKS=$work/wheels PIP_DISABLE_PIP_VERSION_CHECK=1 UV_OFFLINE=1 UV_CACHE_DIR=$work/uv
export PRE_COMMIT_HOME=$work/pre-commit XDG_CACHE_HOME=$work/cache RUNNER=$work/runner
mkdir "$RUNNER"
sha256() { sha256sum "$1" | cut -d' ' -f1; }
pipeline() { # github|gitlab|jenkins PROJECT
  local file=.github/workflows/scankit.yml
  case $1 in gitlab) file=.gitlab-ci.yml ;; jenkins) file=Jenkinsfile ;; esac
  PAGE=$work/page.md "$readers/python" "$here/templates.py" "$1" "$2/$file" "$2"
}
uv() { PATH=$(dirname "$(fx_installers)")/$(basename "$(fx_installers)")/bin:$PATH command uv "$@"; }
project() { # NAME [FILE TEXT]...: a folder with these files, in which `pip install` or `uv sync` finds the package that is broken
  rm -rf "${work:?}/$1" && mkdir "$work/$1" && cd "$work/$1"
  shift
  while [ $# -gt 0 ]; do printf '%b' "$2" >"$1" && shift 2; done
}
own='[project]\nname = "own"\nversion = "1"\nrequires-python = ">=3.8"\ndependencies = ["broken"]\n[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n[tool.setuptools]\npy-modules = []\n'

# Each kind of environment is installed, and it is this one that the gate finds to be broken.
red() { # github|gitlab|jenkins WHAT
  check "init $1 of $2" status_is 0 "$scankit" ci init "$1" --scankit scankit-of-ours
  check "it says what is installed" says "installs the environment from $2"
  check "$1 installs $2, and its gate fails" status_is 1 pipeline "$1" .
  check "by the module in it" grep -q corrupt_binary scankit-results/junit.xml
}
for server in github gitlab jenkins; do # their shell is the same
  project "$server-requirements" requirements.txt 'broken==1.0\n' && cp "$scankit" scankit-of-ours
  red $server requirements.txt
  [ $server != github ] || {
    check "with annotations" says "::error title=scankit%3A corrupt_binary::"
    check "with a job summary" grep -q '^## scankit ci run: the gate failed: .*corrupt' "$work/page.md"
    check "and with SARIF to upload" says "SARIF to upload: True"
  }
  [ $server = github ] || continue
  project "$server-requirements-more" requirements-gpu.txt 'broken==1.0\n' requirements-a.txt '' && cp "$scankit" scankit-of-ours
  red $server requirements-a.txt
  project "$server-pyproject" pyproject.toml "$own" && cp "$scankit" scankit-of-ours
  red $server pyproject.toml
  project "$server-uv" pyproject.toml "${own}[tool.uv]\npackage = false\nno-index = true\nfind-links = [\"$work/wheels\"]\n" && cp "$scankit" scankit-of-ours
  check "uv lock" status_is 0 uv lock
  red $server uv.lock
done
project jenkins-quoted requirements.txt 'broken==1.0\n' && mkdir "it's \\ours" && cp "$scankit" "it's \\ours/scankit"
check "init jenkins with a path that Groovy has to escape" status_is 0 "$scankit" ci init jenkins --scankit "it's \\ours/scankit"
check "the pipeline runs that program" status_is 1 pipeline jenkins .
check "to its end" says "corrupt_binary"
sed -i "s/stages {/stages {{/" Jenkinsfile
check "what is no Groovy is refused" status_is 1 pipeline jenkins .
for server in github gitlab; do
  project "$server-conda" environment.yml 'name: x\n' && cp "$scankit" scankit-of-ours
  "$scankit" ci init $server --scankit scankit-of-ours >/dev/null
  [ -n "$(command -v conda)" ] || check "$server without conda fails" status_is 1 env -u CONDA bash -c "$(declare -f pipeline); here=$here readers=$readers work=$work; pipeline $server ."
  [ -n "$(command -v conda)" ] || check "and says so" says "environment.yml needs conda, which was not found"
  [ $server = github ] || check "its image is one that has it" grep -q 'image: condaforge/miniforge3' .gitlab-ci.yml
  project "$server-nothing" README.md 'nothing\n' && cp "$scankit" scankit-of-ours
  check "init $server without an environment" status_is 0 "$scankit" ci init $server --scankit scankit-of-ours
  check "says what will happen" says "the pipeline fails until one exists"
  check "it fails" status_is 1 pipeline $server .
  check "before any gate" says "no uv.lock, environment.yml, requirements*.txt, pyproject.toml or setup.py found"
  check "and there is no result" test ! -e scankit-results
done

# Where scankit comes from: a copy in the repository by the commands that init prints, a wheel, a URL; never another file.
project committed requirements.txt 'broken==1.0\n'
git init -q .
check "init without an option" status_is 0 "$scankit" ci init github
check "the printed commands run" bash -euc "$(sed -n 's/^  //p' "$work/out")"
check "what they add is the program" cmp "$scankit" .scankit/scankit
check "and the workflow runs as it stands" status_is 1 pipeline github .
check "to its end" says "corrupt_binary"
echo >>.scankit/scankit
check "another program is not run" status_is 1 pipeline github .
check "its hash is told" says "scankit: FAILED"
check "nor has it left anything" sh -c '! grep -q corrupt_binary "$1"/out "$1"/err' sh "$work"
cp "$wheel" .
check "init with a wheel" status_is 0 "$scankit" ci init github --force --scankit "$(basename "$wheel")"
check "the workflow installs it" status_is 1 pipeline github .
check "and runs it" says "corrupt_binary"
rm ./*.whl
check "a wheel that nobody committed" status_is 1 pipeline github .
check "is named" says "$(basename "$wheel") not found: commit it, or set SCANKIT to its URL"
"$readers/python" -c 'import functools, http.server as h, sys
server = h.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(h.SimpleHTTPRequestHandler, directory=sys.argv[1]))
print(server.server_address[1], flush=True); server.serve_forever()' "$work/wheels" >"$work/port" 2>/dev/null &
web=$!
trap 'kill "$web" 2>/dev/null || true; rm -rf "$work"' EXIT
for _ in $(seq 100); do [ -s "$work/port" ] && break || sleep 0.1; done
url="http://127.0.0.1:$(cat "$work/port")/$(basename "$wheel")?download=1"
check "a URL without a hash is refused" status_is 2 "$scankit" ci init gitlab --scankit "$url"
check "with what to do" says "--scankit with a URL needs --sha256"
check "and nothing was written" test ! -e .gitlab-ci.yml
check "with one it is taken" status_is 0 "$scankit" ci init gitlab --scankit "$url" --sha256 "$(sha256 "$wheel")"
check "the pipeline fetches it" status_is 1 pipeline gitlab .
check "and runs it" says "corrupt_binary"
check "with another one" status_is 0 "$scankit" ci init gitlab --force --scankit "$url" --sha256 "$(sha256 "$scankit")"
check "it is not installed" status_is 1 pipeline gitlab .
check "but refused" says "FAILED"
check "a hash that is not that of the file is refused" status_is 2 "$scankit" ci init github --force --scankit .scankit/scankit --sha256 "$(sha256 "$wheel")"
check "pre-commit takes none" status_is 2 "$scankit" ci init pre-commit --scankit "$url" --sha256 "$(sha256 "$wheel")"
check "no template installs a scankit by its name" sh -c "! grep -rnE 'pip install .*scankit(==|\$)' '$made'"

# A good environment is green: one with torch.
if [ -x "${2:-}" ] && torch=$("$2" -c 'import os, torch; print(os.path.dirname(os.path.dirname(torch.__file__)))'); then
  project green requirements.txt '' && cp "$scankit" scankit-of-ours
  "$scankit" ci init github --scankit scankit-of-ours >/dev/null
  TORCH=$torch check "a good environment passes" status_is 0 pipeline github .
  check "its SARIF is uploaded as well" says "SARIF to upload: True"
fi
cd "$work"

INPUT_SHA256=$(sha256 "$wheel")
export INPUT_SCANKIT=$wheel INPUT_SHA256
act() { "$readers/python" "$here/templates.py" action "$root/ci/action/action.yml" "$made/policy"; }
act >"$work/out" 2>&1 || true # its verdict on an empty environment is the gate's
check "every step of the action runs" test -s "$made/policy/scankit-results/scankit.html"
rm -rf "$made/policy/scankit-results"
check "another hash fails it" status_is 1 env INPUT_SHA256="$(sha256 "$scankit")" "$readers/python" "$here/templates.py" action "$root/ci/action/action.yml" "$made/policy"
check "before the gate" test ! -e "$made/policy/scankit-results/scankit.html"
echo 'schema: 0' >"$made/policy/scankit-ci.yaml"
check "a wrong policy fails the action" status_is 1 act

hook() { (cd "$made/pre-commit" && PATH=$(dirname "$scankit"):$PATH "$readers/pre-commit" run --hook-stage pre-push --all-files); }
git -C "$made/pre-commit" init -q
git -C "$made/pre-commit" add -A
check "the hook fails where there is nothing to check" sh -c '! "$@" >"$0"' "$work/hook" env -C "$made/pre-commit" PATH="$(dirname "$scankit"):$PATH" \
  "$readers/pre-commit" run --hook-stage pre-push --all-files
check "and says so" grep -q 'nothing to check' "$work/hook"
echo 'allow_empty: true' >>"$made/pre-commit/scankit-ci.yaml"
check "the hook runs" hook
echo 'schema: 0' >"$made/pre-commit/scankit-ci.yaml"
check "and fails where the gate does" sh -c "! (cd '$made/pre-commit' && PATH=$(dirname "$scankit"):\$PATH '$readers/pre-commit' run --hook-stage pre-push --all-files >/dev/null)"
check "the detector's file names the script that lies beside it" "$readers/python" "$here/templates.py" npd "$made/node-problem-detector"
end
