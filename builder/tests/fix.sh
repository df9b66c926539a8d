# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Sourced by the tests of fix and restore, with $scankit set: $env is the environment that they repair, and nothing of the
# caller's own settings reaches it.
# shellcheck source=builder/tests/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"
unset VIRTUAL_ENV PYTHONPATH
exec </dev/null  # on a terminal restore asks, and waits for the answer
# A cache of compiled images that outlives the test, where one is named: these tests are not about compiling.
export XDG_CACHE_HOME=${SCANKIT_FIX_CACHE:-$work/cache}
env=$work/env

# Everything below the environment but Python's own cache and our state, with its kind, mode and size; and what it holds.
whole() { (cd "$env" && find . -name __pycache__ -prune -o -path ./.scankit -prune -o \( -type f -o -type l \) -printf '%p %y %m %s %l\n' | sort); }
contents() { (cd "$env" && find . -name __pycache__ -prune -o -path ./.scankit -prune -o -type f -size -200k -exec sha256sum {} + | sort); }
# shellcheck disable=SC2154  # $scankit is the test's
restore() { "$scankit" restore --python "$env/bin/python" "$@"; }
