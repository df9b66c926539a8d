# SPDX-License-Identifier: Apache-2.0
"""The finished program is killed on entry of every system call by which `fix` and `restore` change a file system, or the call fails:
ENOSPC and EROFS from that call on, EIO for that one.

  fix_kills.py SCANKIT PYTHON_WITH_TORCH [--fault KILL|ENOSPC|EROFS|EIO] [--every N] [CALL...]

After each, what Python would import is the old file or the new one, whole; after `restore` the environment is as before, byte by
byte. Status 0 means done. Only scankit itself is traced: its children are Python. test_fix_kills.py runs it as a test.
"""
import argparse
import dataclasses
import os
import re
import signal
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "doctor/tests/e2e"))
from building import may_trace  # noqa: E402
from environment import Environment  # noqa: E402
from program import Scankit, run_program  # noqa: E402
from repairs import Repair  # noqa: E402

MODULES = ("selective_scan_cuda", "causal_conv1d_cuda")
CALLS = ("openat", "mkdir", "rename", "renameat2", "link", "linkat", "unlink", "unlinkat", "rmdir", "symlink", "symlinkat", "ftruncate",
         "fchmod", "pwrite64", "fsync", "syncfs", "write")
# The bytes that import would take of both modules; nothing is loaded.
TAKEN = f"""
import hashlib, importlib.util as u
for name in {MODULES}:
    print(name, hashlib.sha256(open(u.find_spec(name).origin, "rb").read()).hexdigest())
"""


@dataclasses.dataclass
class Scene:
    """An environment before and after a fix."""
    here: Repair
    fault: str
    old: dict = None
    new: dict = None
    sound: set = None  # the lines that TAKEN may print: of the old files and of the new ones
    failures: list = dataclasses.field(default_factory=list)

    def run(self, verb, before=()):
        here = Repair(self.here.scankit.with_(before=before), self.here.env)
        return here.fix("--arch", "compute_75", "--yes") if verb == "fix" else here.restore()

    def taken(self):
        result = run_program(self.here.python, "-c", TAKEN)
        return set(result.out.splitlines()) if result.status == 0 else {"broken"}

    def ready(self, verb):
        """The state in which the verb begins."""
        if verb == "fix" and self.here.state() != self.old:
            self.run("restore")
        if verb == "restore" and self.here.state() != self.new:
            self.run("fix")


def set_scene(scankit, work, fault):
    here = Repair(scankit, Environment.make(work / "env", "tested"))
    for module in MODULES:
        here.break_module(module)
    scene = Scene(here, fault, old=here.state())
    scene.sound = scene.taken()
    scene.run("fix").ends(0)
    scene.new = here.state()
    scene.sound |= scene.taken()
    scene.run("restore").ends(0)
    return scene


def ordinals(scene, verb, call, trace):
    """Which of the calls of that verb change a file system; of openat those that create a file."""
    scene.run(verb, before=["strace", "-o", trace, "-e", f"trace={call}"])
    lines = trace.read_text(errors="replace").splitlines()
    if call == "openat":
        return [at for at, line in enumerate(lines, 1) if "O_CREAT" in line]
    if call == "write":
        return [at for at, line in enumerate(lines, 1) if not re.match(r"write\((1|2|[0-9]+, NULL)", line) and "+++" not in line]
    return list(range(1, 1 + sum(line.startswith(f"{call}(") for line in lines)))


def injection(fault, call, ordinal):
    """As strace wants it."""
    if fault == "KILL":
        return f"inject={call}:signal=KILL:when={ordinal}"
    return f"inject={call}:error={fault}:when={ordinal}{'' if fault == 'EIO' else '+'}"


def hit(scene, verb, call, ordinal):
    """Whether the fault came to pass; what is wrong after it is added to the scene's failures."""
    result = scene.run(verb, before=["strace", "-o", "/dev/null", "-e", injection(scene.fault, call, ordinal)])
    if scene.fault == "KILL" and result.status != -signal.SIGKILL:
        return False

    def expect(condition, what):
        if not condition:
            print(f"FAILED: {verb} {call} {ordinal}: {what}", flush=True)
            scene.failures.append((verb, call, ordinal, what))

    if scene.fault != "KILL":
        wanted = scene.new if verb == "fix" else scene.old
        expect(result.status != 0 or scene.here.state() == wanted, "status 0, but it is not done")
        expect(0 <= result.status < 128, f"ended with {result.status}")
        expect(result.status == 0 or result.text or call == "write", f"status {result.status} without a word")
    expect(scene.taken() <= scene.sound, f"import takes {scene.taken() - scene.sound}")
    restored = scene.run("restore")
    expect(restored.status == 0, f"restore: {restored!r}")
    if scene.here.state() != scene.old:  # a fix that was killed behind its end is undone by that restore, or by the next
        restored = scene.run("restore")
    expect(scene.here.state() == scene.old, f"neither the old state nor the new: {restored!r}")
    if scene.here.staged():
        print(f"note: {verb} {call} {ordinal}: staging is not empty")
    return True


def hit_every_call(scankit, work, fault="KILL", every=1, calls=CALLS):
    """Returns how often the fault came to pass, and what was wrong then."""
    scene = set_scene(scankit, work, fault)
    hits = turn = 0
    for call in calls:
        for verb in ("fix", "restore"):
            before = hits
            scene.ready(verb)
            for ordinal in ordinals(scene, verb, call, work / "trace"):
                turn += 1
                if turn % every == 0:
                    scene.ready(verb)
                    hits += hit(scene, verb, call, ordinal)
            print(f"{verb} {call}: {fault} {hits - before} times", flush=True)
    scene.ready("fix")
    scene.run("fix").ends(0)
    return hits, scene.failures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scankit")
    parser.add_argument("python")
    parser.add_argument("--fault", default="KILL", choices=["KILL", "ENOSPC", "EROFS", "EIO"])
    parser.add_argument("--every", default=1, type=int)
    parser.add_argument("calls", nargs="*", metavar="CALL")
    words = parser.parse_intermixed_args()
    os.environ.setdefault("SCANKIT_TEST_PYTHON", words.python)
    if not may_trace():
        print("SKIPPED: no strace that may trace here")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as work:
        os.environ["XDG_CACHE_HOME"] = os.environ.get("SCANKIT_FIX_CACHE") or f"{work}/cache"
        for name in ("VIRTUAL_ENV", "PYTHONPATH"):
            os.environ.pop(name, None)
        hits, failures = hit_every_call(Scankit(Path(words.scankit).resolve()), Path(work), words.fault, words.every, words.calls or CALLS)
    print(f"{hits} times {words.fault}, {len(failures)} failures")
    sys.exit(1 if failures or not hits else 0)


if __name__ == "__main__":
    main()
