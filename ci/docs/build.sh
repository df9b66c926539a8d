#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# build.sh [--scankit FILE] [OUT]: the site, from the pages of this directory and from what scankit says of itself. OUT is
# build/site without one; open OUT/index.html, no server is needed. Exit status 77: mkdocs cannot be installed here.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=ci/fixtures.sh
. "$root/ci/fixtures.sh"
scankit=$root/build/scankit out=''
while [ $# -gt 0 ]; do
  case $1 in
    --scankit) [ $# -ge 2 ] && scankit=$(readlink -f -- "$2") && shift ;;
    -*) echo "usage: ci/docs/build.sh [--scankit FILE] [OUT]" >&2 && exit 2 ;;
    *) out=$(realpath -m -- "$1") ;;
  esac
  shift
done
[ -x "$scankit" ] || { echo "build.sh: $scankit is not an executable scankit; build one first, or name it with --scankit" >&2 && exit 2; }
out=${out:-$root/build/site}
builder=$(fx_site_builder) || { echo "SKIP: mkdocs-material cannot be installed here (no network)" && exit 77; }

work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
"$builder/bin/python" -B "$root/ci/docs/generate.py" "$scankit" "$work/pages"
mkdir -p "$(dirname "$out")"
# --strict: a link or an anchor that does not exist is an error. With --quiet mkdocs would not count the warnings.
# TMPDIR: jieba keeps a cache there under a fixed name, and would load that of another user.
TMPDIR=$work SCANKIT_SITE_PAGES=$work/pages SCANKIT_SITE_OUT=$out NO_MKDOCS_2_WARNING=1 \
  "$builder/bin/python" -m mkdocs build --strict --config-file "$root/ci/docs/mkdocs.yml" 2>&1 | { grep -v '^INFO' >&2 || true; }
echo "the site is in $out"
