# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Assertions on the doctor's JSON report. Sourced.

expect_fail() {
  echo "FAIL: $*" >&2
  exit 1
}

# expect_report JSON STATUS_SEEN: against ROOT (an alternation, "" for none), FOUND, VERDICT, STATUS.
expect_report() {
  local report=$1 status=$2 cause
  [ -s "$report" ] && jq -e . "$report" >/dev/null 2>&1 || expect_fail "$report is not JSON (exit $status): $(head -c 300 "$report")"
  jq -c '{verdict, root: .root.cause, findings: [.findings[] | [.cause, .severity, .because_of]], unknown}' "$report"
  [ "$(jq -r .verdict "$report")" = "$VERDICT" ] || expect_fail "$report: the verdict should be $VERDICT"
  [ "$status" -eq "$STATUS" ] || expect_fail "$report: exit status $status, should be $STATUS"
  if [ -n "$ROOT" ]; then
    jq -r '.root.cause' "$report" | grep -qxE "$ROOT" || expect_fail "$report: the root cause should be $ROOT"
  else
    jq -e '.root == null or .root.severity != "error"' "$report" >/dev/null || expect_fail "$report: an error as root"
  fi
  for cause in $FOUND; do
    jq -e --arg c "$cause" 'any(.findings[]; .cause == $c)' "$report" >/dev/null ||
      expect_fail "$report: no finding $cause"
  done
  jq -e 'all(.findings[]; (.evidence | length) > 0 and (.summary | length) > 0)' "$report" >/dev/null ||
    expect_fail "$report: a finding without evidence or summary"
}

# expect_dated JSON FILE TRUTH [STRING_ABI]: the entry of that file (the end of its name) has torch TRUTH inside its range,
# bounded by evidence.
expect_dated() {
  jq -c --arg file "$2" '.built_for[] | select(.file | endswith($file)) | {file, torch_min, torch_max, string_abi}' "$1"
  jq -e --arg file "$2" --arg truth "$3" --arg abi "${4:-}" '
    def minor: split(".") | map(tonumber);
    [.built_for[] | select(.file | endswith($file))] | length > 0 and all(.[];
      (.torch_min == null or (.torch_min | minor) <= ($truth | minor)) and
      (.torch_max == null or (.torch_max | minor) >= ($truth | minor)) and
      (.torch_min != null or .torch_max != null) and
      (.between_known_releases | not) and (.evidence | length) > 0 and ($abi == "" or .string_abi == $abi))' "$1" \
    >/dev/null || expect_fail "$1: $2 should be dated as of torch $3 ${4:+with the $4 string ABI}: $(jq -c .built_for "$1")"
}
