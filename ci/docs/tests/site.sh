#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# site.sh whole|browser SCANKIT WORK: builds the site strictly. whole: links, anchors, headings, alternative texts, contrast of
# the drawings, a page for each cause, command and schema; and that the checker reports each damage. browser: each page in a
# headless browser.
set -euo pipefail
what=$1 scankit=$2 work=$3/$1
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
# shellcheck source=ci/fixtures.sh
. "$root/ci/fixtures.sh"
rm -rf "$work" && mkdir -p "$work"
bash "$root/ci/docs/build.sh" --scankit "$scankit" "$work/site"

check() { python3 -B "$here/check_site.py" "$1" "$root" "$scankit"; }

# damage FILE EXPRESSION SAID: changes the copy of the site by sed; the checker must say SAID of it.
sayings=()
damage() {
  sed -i -E "$2" "$work/copy/$1"
  ! cmp -s "$work/site/$1" "$work/copy/$1" || { echo "FAIL: $2 changes nothing in $1" && exit 1; }
  sayings+=("$3")
}

if [ "$what" = whole ]; then
  check "$work/site"
  cp -r "$work/site" "$work/copy"
  damage faq.html 's#href="modules.html"#href="module.html"#' 'faq.html: links to module.html, which does not exist'
  damage glossary.html 's#href="faq.html"#href="faq.html\#x"#' 'glossary.html: links to faq.html#x, and that page has no such anchor'
  damage security.html 's#<(/?)h2#<\1h4#' 'security.html: h4 follows h1'
  damage sessions.html 's/ alt="[^"]*"//' 'sessions.html: an image whose alternative text is None'
  damage design.html 's#</head>#<script src="https://example.org/a.js"></script></head>#' 'design.html: asks another server'
  damage assets/sessions/run.svg 's/fill="#e6edf3"/fill="#333333"/' 'run.svg: #333333 on #0d1117'
  damage causes/torch_version_mismatch.html 's/>Why</>Because</' "torch_version_mismatch.html: no heading 'Why'"
  damage zh/faq.html 's#href="\.\./modules.html"#href="../module.html"#' 'zh/faq.html: links to ../module.html, which does not exist'
  damage zh/install.html 's#lang="zh-CN" class#lang="en" class#' 'zh/install.html: its language is en, and not zh-CN'
  damage walkthrough.html 's#href="zh/walkthrough.html"#href="zh/index.html"#' 'walkthrough.html: does not link to the same page in the other language'
  rm "$work/copy/commands/doctor.html" && sayings+=('no page commands/doctor.html')
  ! check "$work/copy" >"$work/said" || { echo "FAIL: no damage is reported" && exit 1; }
  for saying in "${sayings[@]}"; do
    grep -qF -- "$saying" "$work/said" || { echo "FAIL: not reported: $saying" && head -n 40 "$work/said" && exit 1; }
  done
else
  browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) ||
    { echo "SKIP: no browser here (ci/install-deps.sh --browser)" && exit 77; }
  readers=$(fx_report_readers) || { echo "SKIP: the browser's driver cannot be installed here" && exit 77; }
  "$readers/bin/python" -B "$here/browser.py" "$browser" "$work/site" "$work/pictures"
fi
