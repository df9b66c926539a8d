# SPDX-License-Identifier: Apache-2.0
"""terminals.py WHAT SCANKIT ENV HANGING_ENV BROKEN_ENV WORK: every command of scankit on real terminals.

WHAT: quick (each command once, and what must be seen meanwhile), validate (with its timing), all (each command on every
kind of terminal, with a resize and a Ctrl-C in the middle). The commands are those of the manual page, which is made of the
parser's own table: one that has no line in COMMANDS below fails."""
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from pty_run import Run

WHAT, SCANKIT, ENV, HANGS, BROKEN, WORK = sys.argv[1:]
PYTHON, HANGING = ENV + "/bin/python", HANGS + "/bin/python"
WORK = Path(WORK)
OUT = str(WORK / "out")
BASE = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "TERM": "xterm-256color", "LANG": "C.UTF-8"}
for name in ("PIP_INDEX_URL", "PIP_CONFIG_FILE", "UV_INDEX_URL", "UV_DEFAULT_INDEX", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE",
             "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"):
    if name in os.environ:
        BASE[name] = os.environ[name]

# What each command is run with, and how it may end. Two minutes at most on two idle cores.
COMMANDS = {
    "doctor": (["--python", PYTHON], {0, 1, 4}),
    "run": (["--", PYTHON, "-c", "import no_such_module_for_this_test"], {1}),
    "snapshot": (["--python", PYTHON], {0}),
    "explain": (["torch_version_mismatch"], {0}),
    "selftest": (["--python", PYTHON], {0}),
    "build": (["--module", "causal_conv1d_cuda", "--arch", "compute_75", "--python", PYTHON, "--cache-dir", OUT + "/cache",
               "--out", OUT + "/built/"], {0}),
    "fix": (["--python", PYTHON, "--dry-run"], {0, 1, 4}),
    "restore": (["--python", PYTHON], {0, 1, 4}),
    "env init": (["--python", PYTHON, "--out", OUT + "/scankit.yaml", "--force"], {0}),
    "env check": (["--python", PYTHON, "--spec", OUT + "/scankit.yaml"], {0, 1, 4, 7}),
    "env diff": ([OUT + "/scankit.yaml", PYTHON], {0, 1, 4, 7}),
    "env lock": (["--python", PYTHON, "--offline", "--out", OUT + "/scankit.lock", "--spec", OUT + "/scankit.yaml"], {0}),
    "env export": (["requirements", "--lock", OUT + "/scankit.lock", "--partial"], {0, 1, 2, 4}),
    "env fetch": (["--lock", OUT + "/scankit.lock", "--out", OUT + "/wheels"], {0, 1, 4}),
    "env suggest": (["--offline", "--gpu", "sm_90", "--driver", "580.95"], {0}),
    "env create": ([OUT + "/no/such/env", "--lock", OUT + "/scankit.lock"], {2}),
    "env sync": (["--python", PYTHON, "--lock", OUT + "/scankit.lock", "--dry-run"], {0, 2}),
    "env schema": ([], {0}),
    "validate": (["--quick", "--no-timing", "--device", "cpu", "--python", PYTHON], {0}),
    "ci run": (["--python", PYTHON], {0, 1, 2, 4, 6}),
    "ci init": (["github", "--out", OUT + "/workflow.yml"], {0, 2}),
    "ci schema": ([], {0}),
    "fleet run": (["--slurm", "--out", OUT + "/fleet", "--", "doctor"], {2}),
    "fleet report": ([OUT + "/no-such-fleet"], {1, 2, 4}),
    "completion": (["bash"], {0}),
    "man": ([], {0}),
    "help": (["doctor"], {0}),
}
HEAVY = {"selftest", "build", "validate", "ci run"}  # too long for every run; quick stops some of them in the middle

failures = []


def check(name, run, wrong):
    wrong = [w for w in wrong if w]
    print(("not ok" if wrong else "ok"), name, flush=True)
    if wrong:
        failures.append(name)
        print("".join(f"  {w}\n" for w in wrong) + "  status " + str(getattr(run, "status", "")) + "\n  screen:\n" +
              "".join(f"  | {line}\n" for line in (run.text().splitlines()[-15:] if run else [])), flush=True)


def command_line(command):
    return [SCANKIT, *command.split(), *COMMANDS[command][0]]


def on_terminal(command, label, columns=80, plain=False, ascii_only=False, at=None, interrupted=False, **variables):
    environment = {n: v for n, v in dict(BASE, **variables).items() if v is not None}
    run = Run(command_line(command), columns, environment, at=at, folder=OUT)
    wrong = run.problems(interrupted, plain, ascii_only)
    if run.status not in COMMANDS[command][1] and not (interrupted and run.status == -signal.SIGINT):
        wrong.append(f"ended with {run.status}, not one of {sorted(COMMANDS[command][1])}")
    check(f"{command}, {label}", run, wrong)
    return run


def all_commands():
    page = subprocess.run([SCANKIT, "man"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return [line[len(".SS scankit "):].replace("\\-", "-") for line in page.splitlines() if line.startswith(".SS scankit ")]


class Once:
    """Does something to a run when its line of progress is first seen for a while."""

    def __init__(self, action, after=0.3):
        self.action, self.after, self.since, self.done = action, after, None, False

    def __call__(self, run):
        if not run.seen or self.done:
            return
        self.since = self.since or time.monotonic()
        if time.monotonic() - self.since >= self.after:
            self.done = True
            self.action(run)


def interrupted(name, argv, sentence="", seen=r".", **more):
    """Ctrl-C while the line of progress shows `seen`."""
    stop = {"done": False}

    def at(run):
        if not stop["done"] and run.seen and re.search(seen, run.seen[-1]):
            stop["done"] = True
            run.interrupt()

    run = Run(argv, 80, BASE, at=at, folder=OUT, **more)
    wrong = run.problems(interrupted=True)
    if not stop["done"]:
        wrong.append("never seen: " + seen)
    if run.status != -signal.SIGINT:
        wrong.append(f"ended with {run.status}, not by SIGINT")
    if sentence and sentence not in " ".join(run.text().split()):
        wrong.append("does not say: " + sentence)
    if "^C" in run.text():
        wrong.append("^C is left on the screen")
    check(name, run, wrong)


def hang():
    """The import that hangs is named, with its time and when it is given up, and both go on."""
    run = Run([SCANKIT, "doctor", "--python", HANGING, "--timeout", "5"], 80, BASE)
    wrong = run.problems()
    shown = [re.fullmatch(r"importing (\S+)  (\d+) s \(stopped after 5 s\)", drawn) for drawn in run.seen]
    seconds = {int(m.group(2)) for m in shown if m and m.group(1) == "selective_scan_cuda"}
    if not {2, 3, 4} <= seconds:
        wrong.append(f"seconds shown: {sorted(seconds)}; lines: {sorted(set(run.seen))}")
    if run.status != 1:
        wrong.append(f"ended with {run.status}, not 1")
    check("doctor shows the import that hangs, second by second", run, wrong)
    interrupted("doctor, Ctrl-C while an import hangs", [SCANKIT, "doctor", "--python", HANGING], seen="importing sel.* 2 s")


def fix():
    """Stopped in the middle of a repair, nothing of the environment is another than before; then the repair goes to its end."""
    def files():
        return {p.relative_to(BROKEN): p.is_file() and p.stat().st_mtime_ns for p in Path(BROKEN).rglob("*")
                if "__pycache__" not in p.parts and ".scankit" not in p.parts}

    before = files()
    repair = [SCANKIT, "fix", "--python", BROKEN + "/bin/python", "--yes", "--cache-dir", OUT + "/fix-cache"]
    interrupted("fix, Ctrl-C among the images", repair, "the environment was not changed", seen="compiling ")
    after = files()
    check("and the environment is as it was", None,
          [f"{n}: {before.get(n)} -> {after.get(n)}" for n in set(before) | set(after) if before.get(n) != after.get(n)])
    # What was compiled for another test serves here.
    shared = os.environ.get("SCANKIT_FIX_CACHE")
    run = Run(repair[:-1] + [shared + "/scankit" if shared else OUT + "/fix-cache"], 80, BASE, folder=OUT)
    check("fix, to its end", run, run.problems() + [run.status != 0 and f"ended with {run.status}"])
    for option, given in (("--wheel", BROKEN + "/bin/python"), ("--from-source", BROKEN + "/bin")):
        run = Run([SCANKIT, "fix", "--python", BROKEN + "/bin/python", option, given], 80, BASE, folder=OUT)
        check(f"fix {option} of what is none", run, run.problems() + [run.status != 2 and f"ended with {run.status}"])


def pipes():
    """No terminal: nothing of what is short, one line of what is long."""
    short = subprocess.run([SCANKIT, "doctor", "--no-import", "--python", PYTHON], env=BASE, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, check=False)
    check("doctor into a pipe says nothing beside its answer", None, [short.stderr and f"stderr: {short.stderr!r}"])
    slow = subprocess.run([SCANKIT, "doctor", "--python", HANGING, "--timeout", "11"], env=BASE, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False).stderr.decode()
    line = re.compile(r"(scankit: importing (selective_scan_cuda|torch)  1[01] s \(stopped after 11 s\)\n)+")
    check("and one line about an import that takes long", None, [not line.fullmatch(slow) and repr(slow)])


def plain_terminals():
    for kind in ("dumb", None):
        run = Run([SCANKIT, "doctor", "--python", HANGING, "--timeout", "11"], 40,
                  {n: v for n, v in dict(BASE, TERM=kind).items() if v})
        wrong = run.problems(plain=True)
        lines = [line for line in run.text().splitlines() if line.startswith("scankit: importing sel")]
        if not lines or any(not re.search(r"\.\.\.  1[01] s$", line) for line in lines):
            wrong.append(f"of the import that takes long: {lines}")
        check(f"a plain line, and no wider, where TERM is {kind or 'unset'}", run, wrong)


def validate():
    COMMANDS["validate"] = (["--quick", "--device", "cpu", "--python", PYTHON], {0})
    run = on_terminal("validate", "with its timing, at 80 columns")
    counts = [tuple(map(int, m.groups())) for m in (re.match(r"\[(\d+)/(\d+)", drawn) for drawn in run.seen) if m]
    result = re.search(r"of (\d+) cases", run.text())
    check("validate counts what its result counts", run,
          [not counts and "no count was seen", len({total for _, total in counts}) > 1 and f"totals: {set(counts)}",
           counts != sorted(counts) and "it went back",
           counts and (not result or counts[-1][1] != int(result.group(1))) and f"last: {counts[-1]}"])


def quick():
    for command in all_commands():
        if command not in COMMANDS:
            check(command, None, ["has no line in COMMANDS: say how it is run on a terminal"])
        elif command not in HEAVY:
            on_terminal(command, "at 80 columns")
    on_terminal("doctor", "NO_COLOR", NO_COLOR="1")
    on_terminal("doctor", "TERM=dumb", plain=True, TERM="dumb")
    on_terminal("doctor", "TERM unset", plain=True, TERM=None)
    on_terminal("doctor", "LC_ALL=C", ascii_only=True, LC_ALL="C")
    on_terminal("doctor", "at 20 columns", 20)
    for columns in (20, 37, 80):
        on_terminal("doctor", f"in Chinese, at {columns} columns", columns, LANG="zh_CN.UTF-8")
    on_terminal("doctor", "made narrower, then wider", 200, at=Once(lambda run: (run.resize(40), run.resize(120))))
    hang()
    pipes()
    interrupted("validate, Ctrl-C among the cases", command_line("validate"), seen=r"^\[[1-9]\d*/")
    fix()
    shutil.rmtree(OUT + "/cache", ignore_errors=True)
    interrupted("build, Ctrl-C among the images", command_line("build"), "no module was written", seen="compiling ")
    check("and nothing is left of the module", None,
          [os.listdir(OUT + "/built") if os.path.isdir(OUT + "/built") else ""])


def everything():
    plain_terminals()
    kinds = {"at 80 columns": {}, "at 200 columns": {"columns": 200}, "at 20 columns": {"columns": 20},
             "TERM=dumb": {"plain": True, "TERM": "dumb"}, "TERM unset": {"plain": True, "TERM": None},
             "LC_ALL=C": {"ascii_only": True, "LC_ALL": "C"}, "no locale": {"ascii_only": True, "LANG": None},
             "in Chinese": {"columns": 37, "LANG": "zh_CN.UTF-8"}}
    for command in all_commands():
        for label, how in kinds.items():
            if command == "build":
                shutil.rmtree(OUT + "/cache", ignore_errors=True)
            on_terminal(command, label, **how)
        shutil.rmtree(OUT + "/cache", ignore_errors=True)
        narrower, stop = Once(lambda run: (run.resize(40), run.resize(120))), Once(Run.interrupt)
        on_terminal(command, "made narrower, then wider", 200, at=narrower)
        on_terminal(command, "Ctrl-C", at=stop, interrupted=True)


shutil.rmtree(OUT, ignore_errors=True)
os.makedirs(OUT)
{"quick": quick, "validate": validate, "all": everything}[WHAT]()
print(f"{len(failures)} failed" + "".join("\n  " + name for name in failures))
sys.exit(bool(failures))
