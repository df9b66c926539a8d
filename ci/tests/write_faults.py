# SPDX-License-Identifier: Apache-2.0
"""write_faults.py SCANKIT PYTHON [--every N] [--only SCENARIO]: every command that writes, while a system call of it fails.

strace (5.x or newer) has the nth write, rename, mkdir, fsync ... of scankit fail with ENOSPC, EIO or EROFS, or kills it
there; for each n. Whatever happens: each file holds its old bytes or whole new ones, nothing temporary is left (after a
kill it may be), a failure is said in words with a status that is not 0, and status 0 means that all of it was written.
PYTHON has torch. 77: no strace that may trace here. `fix` and `restore` have builder/tests/fix_kills.py.
"""
import argparse
import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree

CALLS = ["write", "pwrite64", "ftruncate", "fallocate", "copy_file_range", "sendfile", "fsync", "rename", "renameat2", "link",
         "linkat", "mkdir", "symlink", "unlink", "fchmod", "openat"]
# From the nth call on (a full disk stays full), or that one alone.
FAULTS = ["error=ENOSPC:when={}+", "error=EIO:when={}", "error=EROFS:when={}+", "signal=KILL:when={}"]
OLD = b"old bytes\n"
OLD_EXPORT = b"# Written by `scankit env export`, with old bytes\n"
MODULE = "causal_conv1d_cuda.so"


def is_whole(name, data, good):
    """`good`: the bytes without a fault. What holds no time is the same each time, as a module must be."""
    if name.endswith((".so", ".so.json")):
        return data == good
    try:
        if name.endswith((".json", ".sarif", ".lock")):
            json.loads(data)
        elif name.endswith(".xml"):
            xml.etree.ElementTree.fromstring(data)
        elif name.endswith(".html"):
            return data.rstrip().endswith(b"</html>")
    except ValueError:
        return False
    except xml.etree.ElementTree.ParseError:
        return False
    return len(data) > 20 and data.endswith(b"\n")


class Scenario:
    """`outputs`: what the command writes into `folder`, where files of these names lie already. `also`: what it makes
    where it is not there. `old`: the bytes of those files. `good`: the bytes that it writes without a fault."""

    def __init__(self, name, argv, outputs, also=(), old=OLD):
        self.name, self.argv, self.outputs, self.also, self.old = name, argv, outputs, also, old
        self.good = {}

    def prepare(self, folder):
        shutil.rmtree(folder, ignore_errors=True)
        for each in self.outputs:
            path = folder / each
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(self.old)

    def command(self, folder):
        return [word.format(out=folder) for word in self.argv]


CASE = "c000-fp32-wfp32-b2-d64-l128-k4-bsf"  # of validate: a small one


def make_given(scankit, python, given):
    """What the commands read: a small environment (what they write is what matters, and strace stops at each file of torch
    that they read), its spec and lock, a module with its cache, the results of two nodes."""
    quiet = dict(check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    small = given / "env" / "bin" / "python"
    subprocess.run([python, "-m", "venv", given / "env"], **quiet)
    subprocess.run([scankit, "env", "init", "--python", small, "--out", given / "scankit.yaml"], **quiet)
    subprocess.run([scankit, "env", "lock", "--offline", "--python", small, "--spec", given / "scankit.yaml", "--out", given / "scankit.lock"],
                   **quiet)
    subprocess.run([scankit, "build", "--python", python, "--module", "causal_conv1d_cuda", "--arch", "compute_75", "--cache-dir",
                    given / "cache", "--out", given / MODULE], **quiet)
    for node in ("a", "b"):
        subprocess.run([scankit, "fleet", "node", "--fleet", "f1", "--out", given / "results", "--node", node, "--command-sha256", "c1", "--",
                        "doctor", "--python", small, "--no-import"], **{**quiet, "check": False})
    if len(list((given / "results").rglob("*.json"))) < 2:
        sys.exit("FAILED: no results of nodes were made")


def scenarios(scankit, python, given):
    run = lambda *words: [scankit, *words]
    small = str(given / "env" / "bin" / "python")
    reports = dict(json="r.json", junit="r.xml", sarif="r.sarif", markdown="r.md", html="r.html", prometheus="r.prom", text="r.txt")
    options = [o for kind, name in reports.items() for o in ("--report", f"{kind}={{out}}/{name}")]
    spec, lock = given / "scankit.yaml", given / "scankit.lock"
    only = lambda *kinds: [o for kind in kinds for o in ("--report", f"{kind}={{out}}/{reports[kind]}")]
    files = lambda *kinds: [reports[kind] for kind in kinds]
    return [
        Scenario("doctor --report", run("doctor", "--python", small, "--no-import", *options), list(reports.values())),
        Scenario("snapshot", run("snapshot", "--python", small, "--out", "{out}/s.json"), ["s.json"]),
        Scenario("env init", run("env", "init", "--python", python, "--force", "--out", "{out}/scankit.yaml"), ["scankit.yaml", "scankit.schema.json"]),
        Scenario("env lock", run("env", "lock", "--offline", "--python", python, "--spec", str(spec), "--out", "{out}/scankit.lock",
                                 "--cache-dir", "{out}/cache"), ["scankit.lock"]),
        Scenario("env export", run("env", "export", "requirements", "--lock", str(lock), "--partial", "--out", "{out}/requirements.txt"),
                 ["requirements.txt"], old=OLD_EXPORT),  # any other file is refused
        Scenario("ci init policy", run("ci", "init", "policy", "--force", "--out", "{out}"), ["scankit-ci.yaml", "scankit-ci.schema.json"]),
        Scenario("ci init github", run("ci", "init", "github", "--force", "--out", "{out}"), [".github/workflows/scankit.yml"],
                 also=["scankit-ci.yaml", "scankit-ci.schema.json"]),
        Scenario("build", run("build", "--python", python, "--module", "causal_conv1d_cuda", "--arch", "compute_75", "--cache-dir",
                              str(given / "cache"), "--out", "{out}/" + MODULE), [MODULE, MODULE + ".json"]),
        Scenario("fleet node", run("fleet", "node", "--fleet", "f1", "--out", "{out}", "--node", "a", "--command-sha256", "c1", "--",
                                   "snapshot", "--python", small), [], also=["a.json"]),
        Scenario("fleet report", run("fleet", "report", str(given / "results"), *only("json", "junit", "markdown", "prometheus", "html", "text")),
                 files("json", "junit", "markdown", "prometheus", "html", "text")),
        Scenario("validate", run("validate", "--python", python, "--module", str(given / MODULE), "--device", "cpu", "--no-timing", "--case", CASE,
                                 *only("json", "junit", "html", "text")), files("json", "junit", "html", "text")),
        Scenario("doctor (standard output)", run("doctor", "--python", small, "--no-import"), []),
    ]


def temporary_files(folder, scenario):
    wanted = {*scenario.outputs, *scenario.also}
    found = {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file() and "cache" not in p.relative_to(folder).parts}
    return sorted(found - wanted)


def traced(words, folder, timeout=120):
    with open(folder.parent / "stdout", "wb") as out:
        return subprocess.run(words, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE, timeout=timeout)


def calls_of(scenario, folder):
    """How often the command makes each call that changes a file system; an openat counts where it creates."""
    scenario.prepare(folder)
    log = folder.parent / "trace"
    traced(["strace", "-o", log, "-e", "trace=" + ",".join(CALLS), *scenario.command(folder)], folder)
    seen, wanted = collections.Counter(), collections.defaultdict(list)
    for line in log.read_text(errors="replace").splitlines():
        call = re.match(r"(\w+)\(", line)
        if not call:
            continue
        seen[call[1]] += 1
        if call[1] != "openat" or "O_CREAT" in line:
            wanted[call[1]].append(seen[call[1]])
    return wanted


def judge(scenario, folder, fault, end, good_status):
    """What is wrong after the fault, in words; [] where nothing is."""
    wrong = []
    killed = end.returncode in (-9, 137)
    if end.returncode < 0 and not killed or end.returncode in (134, 139):
        wrong.append(f"ended by a signal ({end.returncode})")
    fresh = 0
    for name in scenario.outputs:
        path = folder / name
        data = path.read_bytes() if path.exists() else b""
        if data != scenario.old:
            fresh += 1
            if not is_whole(name, data, scenario.good.get(name, data)):
                wrong.append(f"{name} is neither old nor whole ({len(data)} bytes)")
    for name in scenario.also:
        if (folder / name).exists() and not is_whole(name, (folder / name).read_bytes(), b""):
            wrong.append(f"{name} is not whole")
    if not killed:
        left = temporary_files(folder, scenario)
        if left and "unlink" not in fault:  # what may not be removed stays
            wrong.append(f"left behind: {left}")
        if end.returncode == good_status and fresh < len(scenario.outputs):
            wrong.append(f"status {good_status}, but only {fresh} of {len(scenario.outputs)} files were written")
        if end.returncode != good_status and not end.stderr.strip() and not fault.startswith("write "):
            wrong.append(f"status {end.returncode} without a word")
    return wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("scankit"), parser.add_argument("python")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--only")
    options = parser.parse_args()
    if shutil.which("strace") is None or subprocess.run(["strace", "-o", "/dev/null", "true"], stderr=subprocess.DEVNULL).returncode:
        print("SKIPPED: no strace that may trace here")
        sys.exit(77)
    scankit = os.path.abspath(options.scankit)
    failures = runs = 0
    turn = 0
    with tempfile.TemporaryDirectory(prefix="scankit-write-faults-") as work:
        work = pathlib.Path(work)
        given = work / "given"
        given.mkdir()
        make_given(scankit, options.python, given)
        print(f"{'command':26} {'fault':14} {'times':>6} {'failed in words':>16} {'went on':>8} {'wrong':>6}   seconds")
        for scenario in scenarios(scankit, options.python, given):
            if options.only and options.only != scenario.name:
                continue
            folder = work / "run" / "out"
            folder.parent.mkdir(exist_ok=True)
            scenario.prepare(folder)
            good = traced(scenario.command(folder), folder)
            wrong = judge(scenario, folder, "", good, good.returncode)
            scenario.good = {name: (folder / name).read_bytes() for name in scenario.outputs if (folder / name).exists()}
            if good.returncode not in (0, 1, 4) or wrong:
                print(f"FAILED: {scenario.name} without a fault: {good.returncode} {wrong} {good.stderr.decode()}")
                failures += 1
                continue
            wanted = calls_of(scenario, folder)
            for fault in FAULTS:
                start, counts = time.monotonic(), collections.Counter()
                for call in CALLS:
                    for n in wanted[call]:
                        turn += 1
                        if turn % options.every:
                            continue
                        scenario.prepare(folder)
                        end = traced(["strace", "-o", "/dev/null", "-e", f"inject={call}:{fault.format(n)}", *scenario.command(folder)], folder)
                        runs += 1
                        wrong = judge(scenario, folder, f"{call} {fault}", end, good.returncode)
                        counts["wrong" if wrong else "on" if end.returncode == good.returncode else "words"] += 1
                        for each in wrong:
                            failures += 1
                            print(f"FAILED: {scenario.name}, {call} number {n}, {fault.format(n)}: {each}\n        {end.stderr.decode(errors='replace').strip()[-200:]}")
                print(f"{scenario.name:26} {fault.split(':')[0]:14} {sum(counts.values()):6} {counts['words']:16} {counts['on']:8} {counts['wrong']:6} "
                      f"{time.monotonic() - start:9.0f}", flush=True)
    print(f"{runs} faults, {failures} failures")
    if runs == 0:
        sys.exit("FAILED: nothing was tried")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
