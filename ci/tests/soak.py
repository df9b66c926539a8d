# SPDX-License-Identifier: Apache-2.0
"""soak.py SCANKIT PYTHON [--runs N]: what a thousand runs leave behind, and what happens when others are at work.

- N runs of doctor, snapshot, explain and env check: no process, no temporary file and no cache entry more at the end than
  after the first hundredth of them, and the last hundredth takes no longer than twice the first.
- Eight at once: `fix` in one environment, `build` into one cache, `env lock` and reports into one file. Each ends with a
  status that it documents, and what lies there then is whole.
- The module is replaced again and again while doctor reads it: each run ends with 0 or 1, in words.
- The clock jumps: what scankit keeps is dated years ahead or behind, and serves as before.
PYTHON has torch.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import threading
import time

MODULE = "causal_conv1d_cuda"  # whose device code compiles fastest
failures = []


def check(what, holds, why=""):
    print(f"{'ok' if holds else 'FAILED'}: {what}{'' if holds else ': ' + str(why)[-1500:]}", flush=True)
    if not holds:
        failures.append(what)


def run(words, cwd, env, timeout=600):
    return subprocess.run([str(w) for w in words], cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", timeout=timeout)


def at_once(commands, cwd, env):
    started = [subprocess.Popen([str(w) for w in c], cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, errors="replace") for c in commands]
    return [(p.communicate(timeout=900)[0], p.returncode) for p in started]


def ours():
    """Processes of this test: they carry its mark in their environment."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if b"SCANKIT_SOAK=1" in (folder / "environ").read_bytes():
                found.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            pass
    return found


def files_below(*folders):
    return sum(len(files) for folder in folders for _, _, files in os.walk(folder))


def make_environment(python, folder):
    """A venv on top of PYTHON's torch with a broken module in it."""
    subprocess.run([python, "-m", "venv", "--without-pip", folder], check=True)
    site = next(folder.glob("lib/python*/site-packages"))
    base = subprocess.run([python, "-c", "import os, torch; print(os.path.dirname(os.path.dirname(torch.__file__)))"], check=True,
                          stdout=subprocess.PIPE, text=True).stdout.strip()
    (site / "torch.pth").write_text(base + "\n")
    tag = subprocess.run([python, "-c", "import sysconfig; print(sysconfig.get_config_var('EXT_SUFFIX'))"], check=True,
                         stdout=subprocess.PIPE, text=True).stdout.strip()
    module = site / f"{MODULE}{tag}"
    module.write_bytes(b"<!DOCTYPE html>")
    return folder / "bin" / "python", module


def soak(scankit, python, work, env, runs):
    commands = [[scankit, "doctor", "--python", python, "--no-import"],
                [scankit, "snapshot", "--python", python, "--out", "s.json"],
                [scankit, "explain", "several_copies"],
                [scankit, "env", "check", "--python", python, "--spec", "scankit.yaml"],
                [scankit, "doctor", "--python", python, "--no-import", "--report", "json=r.json", "--redact"]]
    run([scankit, "env", "init", "--python", python, "--out", "scankit.yaml"], work, env)
    part = max(runs // 100, len(commands))
    seconds, known, statuses = [], None, {}
    for i in range(runs):
        start = time.monotonic()
        end = run(commands[i % len(commands)], work, env)
        seconds.append(time.monotonic() - start)
        statuses.setdefault(i % len(commands), set()).add(end.returncode)
        if i == part:
            known = files_below(work, env["TMPDIR"], env["XDG_CACHE_HOME"])
    check(f"{runs} runs end alike", all(len(s) == 1 for s in statuses.values()), statuses)
    now = files_below(work, env["TMPDIR"], env["XDG_CACHE_HOME"])
    check(f"{runs} runs leave no file behind", now == known, f"{known} files after {part} runs, {now} at the end")
    check("nor a process", not ours(), ours())
    first, last = (statistics.median(s) for s in (seconds[:part * 5], seconds[-part * 5:]))
    print(f"   median of the first {part * 5} runs {first * 1e3:.0f} ms, of the last {last * 1e3:.0f} ms")
    check("the last runs take no longer than twice the first", last < 2 * first, f"{first:.3f} s, {last:.3f} s")


def eight_at_once(scankit, python, module, work, env):
    ends = at_once([[scankit, "fix", "--python", python, "--module", MODULE, "--arch", "compute_75", "--yes"]] * 8, work, env)
    print("   fix ended with", sorted(status for _, status in ends))
    check("eight fixes: at least one repaired", any(status == 0 for _, status in ends), ends)
    check("eight fixes: the others say why they did not", all(status == 0 or (status == 1 and "another scankit is changing this environment" in text) for text, status in ends),
          [e for e in ends if e[1]])
    check("eight fixes: the module imports", run([python, "-c", f"import torch, {MODULE}"], work, env).returncode == 0)
    for _ in range(8):
        if run([scankit, "restore", "--python", python], work, env).returncode != 0:
            break
        if module.exists() and module.read_bytes() == b"<!DOCTYPE html>":
            break
    check("eight fixes: restore brings the old file back", module.exists() and module.read_bytes() == b"<!DOCTYPE html>")
    check("eight fixes: one module only", len(list(module.parent.glob(MODULE + "*"))) == 1,
          list(module.parent.glob(MODULE + "*")))
    state = module.parents[3] / ".scankit" / "staging"
    check("eight fixes: nothing is left in staging", not state.is_dir() or not list(state.iterdir()))

    cache = work / "one-cache"
    builds = [[scankit, "build", "--python", python, "--module", MODULE, "--arch", "compute_75", "--cache-dir", cache, "--out",
               work / f"built{i}"] for i in range(8)]
    for i in range(8):
        (work / f"built{i}").mkdir()
    ends = at_once(builds, work, env)
    made = [next((work / f"built{i}").glob("*.so"), None) for i in range(8)]
    check("eight builds with one cache succeed", all(status == 0 for _, status in ends), [e for e in ends if e[1]])
    check("and make the same bytes", None not in made and len({m.read_bytes() for m in made}) == 1)

    ends = at_once([[scankit, "doctor", "--python", python, "--no-import", "--report", "json=one.json"]] * 8, work, env)
    check("eight reports into one file: whole", json.loads((work / "one.json").read_text())["$schema"] != "", ends)
    check("and nothing beside it", [p.name for p in work.glob("one.json*")] == ["one.json"], list(work.glob("one.json*")))


def replaced_while_read(scankit, python, module, work, env, runs):
    good = next((work / "built0").glob("*.so")).read_bytes()
    variants = [good, good[:4096], b"", b"<!DOCTYPE html>", good[:64] + b"\xff" * 4096, good[: len(good) // 2] + b"\0" * 1000]
    stop = threading.Event()

    def replace():
        i = 0
        while not stop.is_set():
            i += 1
            if i % 3:  # another file under this name, or other bytes in this file
                other = module.with_suffix(".other")
                other.write_bytes(variants[i % len(variants)])
                os.replace(other, module)
            else:
                with open(module, "r+b") as file:
                    file.truncate(0)
                    file.write(variants[i % len(variants)])

    thread = threading.Thread(target=replace)
    thread.start()
    ends = [run([scankit, "doctor", "--python", python, "--no-import"], work, env) for _ in range(runs)]
    stop.set()
    thread.join()
    bad = [(e.returncode, e.stdout[-300:]) for e in ends if e.returncode not in (0, 1) or not e.stdout.strip()]
    check(f"{runs} times examined while it is replaced", not bad, bad[:2])


def clock_jumps(scankit, python, module, work, env):
    """Everything that scankit keeps is dated ahead of the clock, then far behind it, as after a clock was set."""
    def dated(seconds):
        for folder in (pathlib.Path(env["XDG_CACHE_HOME"]), module.parents[3] / ".scankit"):
            for path in [folder, *folder.rglob("*")] if folder.is_dir() else []:
                os.utime(path, (seconds, seconds), follow_symlinks=False)

    fix = [scankit, "fix", "--python", python, "--module", MODULE, "--arch", "compute_75", "--yes"]
    for when, seconds in (("ahead of", 4_070_908_800), ("behind", 31_536_000)):
        module.write_bytes(b"<!DOCTYPE html>")
        dated(seconds)
        end = run(fix, work, env)
        check(f"kept files {when} the clock: fix repairs", end.returncode == 0, end.stdout)
        dated(seconds)
        end = run([scankit, "doctor", "--python", python], work, env)
        check(f"kept files {when} the clock: doctor finds it healthy", end.returncode == 0, end.stdout)
        end = run([scankit, "restore", "--python", python], work, env)
        check(f"kept files {when} the clock: restore brings back what was there",
              end.returncode == 0 and module.read_bytes() == b"<!DOCTYPE html>", end.stdout)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("scankit"), parser.add_argument("python")
    parser.add_argument("--runs", type=int, default=1000)
    options = parser.parse_args()
    scankit, python = os.path.abspath(options.scankit), os.path.abspath(options.python)
    with tempfile.TemporaryDirectory(prefix="scankit-soak-") as folder:
        work = pathlib.Path(folder) / "work"
        env = {**os.environ, "SCANKIT_SOAK": "1", "TMPDIR": folder + "/tmp", "XDG_CACHE_HOME": folder + "/cache", "HOME": folder + "/home"}
        for each in (work, *(pathlib.Path(env[n]) for n in ("TMPDIR", "XDG_CACHE_HOME", "HOME"))):
            each.mkdir()
        own, module = make_environment(python, pathlib.Path(folder) / "venv")
        eight_at_once(scankit, own, module, work, env)
        replaced_while_read(scankit, own, module, work, env, max(options.runs // 10, 10))
        clock_jumps(scankit, own, module, work, env)
        module.write_bytes(b"<!DOCTYPE html>")
        soak(scankit, own, work, env, options.runs)
    sys.exit(f"{len(failures)} failed" if failures else 0)


if __name__ == "__main__":
    main()
