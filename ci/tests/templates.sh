#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What `scankit ci init` writes, and the action of this repository, given to those who read it: published schemas,
# pre-commit itself, shellcheck. Then every step's shell is run, as the server runs it:  templates.sh SCANKIT
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
# shellcheck source=builder/tests/checks.sh
. "$root/builder/tests/checks.sh"
# shellcheck source=ci/fixtures.sh
. "$root/ci/fixtures.sh"
scankit=$(realpath "$1")
readers=$(fx_gate_readers)/bin || { echo "SKIP: the readers cannot be installed here" && exit 77; }
kubernetes=$(fx_kubernetes_schemas)/bin || { echo "SKIP: Kubernetes' schemas cannot be installed here" && exit 77; }
unset VIRTUAL_ENV PYTHONPATH CONDA_PREFIX GITHUB_ACTIONS GITHUB_STEP_SUMMARY
made=$work/made
for kind in policy github gitlab pre-commit slurm-healthcheck kubernetes-probe node-problem-detector; do
  "$scankit" ci init "$kind" --out "$made/$kind" >/dev/null
done
schema() { "$readers/check-jsonschema" "$@"; }
check "GitHub's schema takes the workflow" schema --builtin-schema vendor.github-workflows "$made/github/.github/workflows/scankit.yml"
check "and the action" schema --builtin-schema vendor.github-actions "$root/ci/action/action.yml"
check "GitLab's takes the pipeline" schema --builtin-schema vendor.gitlab-ci --data-transform gitlab-ci "$made/gitlab/.gitlab-ci.yml"
check "pre-commit takes its file" "$readers/pre-commit" validate-config "$made/pre-commit/.pre-commit-config.yaml"
check "Kubernetes' schema takes the probes" "$kubernetes/kubernetes-validate" --strict "$made/kubernetes-probe/scankit-probe.yaml"
check "the policy's own schema takes the policy" schema --schemafile "$made/policy/scankit-ci.schema.json" "$made/policy/scankit-ci.yaml"
printf 'schema: 1\ncause: {}\n' >"$work/wrong.yaml"
check "and refuses a wrong one" sh -c "! '$readers/check-jsonschema' --schemafile '$made/policy/scankit-ci.schema.json' '$work/wrong.yaml' >/dev/null"

mkdir "$work/wheels"
"$readers/python" "$here/templates.py" wheel "$scankit" "$work/wheels"
export PIP_NO_INDEX=1 PIP_FIND_LINKS=$work/wheels PIP_DISABLE_PIP_VERSION_CHECK=1
export PRE_COMMIT_HOME=$work/pre-commit XDG_CACHE_HOME=$work/cache
check "every step of the workflow runs" "$readers/python" "$here/templates.py" github "$made/github/.github/workflows/scankit.yml" "$made/github"
check "and leaves its reports" test -s "$made/github/scankit-results/junit.xml" -a -s "$made/github/scankit-results/scankit.sarif"
check "every line of the pipeline runs" "$readers/python" "$here/templates.py" gitlab "$made/gitlab/.gitlab-ci.yml" "$made/gitlab"
check "and leaves its report" test -s "$made/gitlab/scankit-results/junit.xml"
version=$("$scankit" --version | cut -d' ' -f2)
export INPUT_INSTALL=scankit==$version
check "every step of the action runs" "$readers/python" "$here/templates.py" action "$root/ci/action/action.yml" "$made/policy"
check "and leaves its reports" test -s "$made/policy/scankit-results/scankit.html"
echo 'schema: 0' >"$made/policy/scankit-ci.yaml"
check "a wrong policy fails the action" sh -c "! '$readers/python' '$here/templates.py' action '$root/ci/action/action.yml' '$made/policy' 2>/dev/null"

hook() { (cd "$made/pre-commit" && PATH=$(dirname "$scankit"):$PATH "$readers/pre-commit" run --hook-stage pre-push --all-files); }
git -C "$made/pre-commit" init -q
git -C "$made/pre-commit" add -A
check "the hook runs" hook
echo 'schema: 0' >"$made/pre-commit/scankit-ci.yaml"
check "and fails where the gate does" sh -c "! (cd '$made/pre-commit' && PATH=$(dirname "$scankit"):\$PATH '$readers/pre-commit' run --hook-stage pre-push --all-files >/dev/null)"
check "the detector's file names the script that lies beside it" "$readers/python" "$here/templates.py" npd "$made/node-problem-detector"
end
