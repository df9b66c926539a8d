#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Names the tests of a JUnit report that did not pass, with the last lines of each one that failed.

usage: not_passed.py REPORT

ci/test.sh prints this at its very end: a CI's page often keeps only the tail of a log, and ctest's own list of
failures stands before the builds and tests that follow.
"""
import sys
import xml.etree.ElementTree as ElementTree

LAST_LINES = 25


def main(report):
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        status = case.get("status")
        if status == "run":
            continue
        print(f"{'FAILED' if status == 'fail' else status}: {case.get('name')}")
        if status == "fail":
            output = (case.findtext("system-out") or "").rstrip().splitlines()
            print("\n".join("    " + line for line in output[-LAST_LINES:]))


main(sys.argv[1])
