#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# env.sh [SCANKIT] [PYTHON]: what `env init`, `lock` and `check` cost in an environment with torch: the hashes of its
# libraries cold (page cache and hash cache empty, where we may empty them) next to `cat`, then cached; goals 300 ms for a
# check and 5 s for init and lock beyond hashing.
set -euo pipefail
cd "$(dirname "$0")/../../.."
# shellcheck source=ci/fixtures.sh
. ci/fixtures.sh
scankit=$(realpath "${1:-build/ci/scankit}")
python=${2:-${SCANKIT_TEST_PYTHON:-}}
[ -n "$python" ] || python=$(fx_torch_env)/bin/python
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_CACHE_HOME=$work/cache
cd "$work"
site=$("$python" -c 'import torch, os; print(os.path.dirname(os.path.dirname(torch.__file__)))')
find -L "$site" -name '*.so*' -type f -print0 >libraries
echo "libraries: $(tr -cd '\0' <libraries | wc -c), $(xargs -0 stat -Lc %s <libraries | awk '{s+=$1} END {printf "%d MB", s/1e6}'); load $(cut -d' ' -f1 /proc/loadavg)"
empty_page_cache() { sync; { echo 3 >/proc/sys/vm/drop_caches; } 2>/dev/null || echo "(the page cache stays: not root)"; }
took() { # TEXT COMMAND...: milliseconds
  local text=$1 start=${EPOCHREALTIME/./}
  shift
  "$@" >out 2>&1 || { cat out; exit 1; }
  printf '%-44s %6d ms\n' "$text" $(((${EPOCHREALTIME/./} - start) / 1000))
}
empty_page_cache
took "cat of the libraries, cold" sh -c "xargs -0 cat <libraries | wc -c"
empty_page_cache
took "env lock --offline, all cold" "$scankit" env lock --offline --python "$python"
took "env check, hashes cached" "$scankit" env check --python "$python" --lock scankit.lock --fail-on error
took "env check again" "$scankit" env check --python "$python" --lock scankit.lock --fail-on error
rm -r "$XDG_CACHE_HOME"
empty_page_cache
took "env check, all cold" "$scankit" env check --python "$python" --lock scankit.lock --fail-on error
rm scankit.lock
took "env init" "$scankit" env init --python "$python"
# uv, and pip from 25.3 on, ask for hashes alone; an older pip downloads every wheel to tell its hash.
took "env lock, hashes cached, the index asked" "$scankit" env lock --python "$python"
sed -n 's/^scankit: \(asking .*\)/  by \1/p' out
took "env lock again, wheels known" "$scankit" env lock --python "$python"
