#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds `scankit doctor --log` against error reports of real users whose cause is known.

    measure.py FILE... --scankit PATH [--list] [--jobs 2]

FILE is a list of entries as README.md describes them. Each log is read by a process of its own, from standard input and
with nothing else: `--log` without `--from` looks at no fact of this machine. Prints a line for each class:

    right    the root cause is the entry's; for `none` and for a class without a cause: no cause is named
    unknown  no cause is named
    wrong    another cause is named; for `none` this is a false alarm
"""
import argparse
import collections
import concurrent.futures
import json
import pathlib
import subprocess
import sys

import yaml

HERE = pathlib.Path(__file__).resolve().parent


def renamed():
    return yaml.safe_load((HERE / "classes.yaml").read_text())["classes"]


def expected(cause, classes):
    """The slug that is right, "" where naming none is, and None where only naming none is not wrong."""
    if cause == "none":
        return ""
    if not cause.startswith("new:"):
        return cause
    return classes.get(cause.removeprefix("new:").strip())


def answer(scankit, log):
    """The root cause that scankit names, its rule's sentence, or ("", "") if it names none."""
    ran = subprocess.run([scankit, "doctor", "--log", "-", "--json"], input=log.encode(), capture_output=True, timeout=60)
    try:
        report = json.loads(ran.stdout)
    except ValueError:
        sys.exit(f"{scankit} doctor --log: exit status {ran.returncode}: {ran.stderr.decode(errors='replace').strip()}")
    root = report["root"] or {"cause": "", "summary": ""}
    return root["cause"], root["summary"]


def judge(want, got):
    if want is None:
        return "wrong" if got else "unknown"
    if got == want:
        return "right"
    return "wrong" if got else "unknown"


def table(rows):
    """Prints the classes with the most entries first, and the sums below."""
    classes = collections.defaultdict(collections.Counter)
    for row in rows:
        classes[row["class"]][row["verdict"]] += 1
    print(f"{'class':34} {'entries':>7} {'right':>6} {'unknown':>8} {'wrong':>6}")
    for name, counts in sorted(classes.items(), key=lambda item: (-sum(item[1].values()), item[0])):
        print(f"{name:34} {sum(counts.values()):7} {counts['right']:6} {counts['unknown']:8} {counts['wrong']:6}")
    sums = collections.Counter(row["verdict"] for row in rows)
    total = len(rows)
    print(f"{'all':34} {total:7} {sums['right']:6} {sums['unknown']:8} {sums['wrong']:6}")
    print(f"right {sums['right'] / total:.1%}, unknown {sums['unknown'] / total:.1%}, wrong {sums['wrong'] / total:.1%}")
    alarms = sum(row["class"] == "none" and row["verdict"] == "wrong" for row in rows)
    print(f"false alarms: {alarms} of {sum(row['class'] == 'none' for row in rows)} logs without a fault")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--scankit", required=True, metavar="PATH")
    parser.add_argument("--list", action="store_true", help="print the wrong and the unknown ones")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    classes = renamed()
    entries = [entry for file in options.files for entry in yaml.safe_load(pathlib.Path(file).read_text())]
    if not entries:
        sys.exit("no entries")
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        answers = list(pool.map(lambda entry: answer(options.scankit, entry["log"]), entries))
    rows = []
    for entry, (got, summary) in zip(entries, answers):
        want = expected(entry["cause"], classes)
        name = entry["cause"] if not want else want
        rows.append({"class": name, "verdict": judge(want, got), "source": entry["source"], "got": got, "summary": summary})
    table(rows)
    if options.list:
        for verdict in ("wrong", "unknown"):
            for row in rows:
                if row["verdict"] == verdict:
                    print(f"{verdict} {row['class']}: {row['got'] or 'no cause'}\n  {row['source']}\n  {row['summary'][:200]}")


if __name__ == "__main__":
    main()
