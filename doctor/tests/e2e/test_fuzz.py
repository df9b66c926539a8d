# SPDX-License-Identifier: Apache-2.0
"""Hostile files through the doctor's own options. Every answer must be a documented exit status within its time and memory,
with no control byte of the input on the terminal and JSON alone on standard output. The same seed makes the same files; what
fails is kept. A short slice in CI, the long one in the matrix."""
import json
import os
import random
import resource
import subprocess
import sys
import time

import pytest

from environment import shared_library
from hostile_files import HOSTILE, Good

MODULE_CODE = """
extern int far_away(int);
__thread int counter;
int PyInit_good(void) { return far_away(counter); }
"""


def arguments(kind, path):
    if kind == "log":
        return ["doctor", "--log", path]
    if kind == "snapshot":
        return ["doctor", "--from", path]
    return ["doctor", "--so", path, "--no-import", "--python", sys.executable]


class Measured:
    """One run: status, seconds, KiB, and both streams as bytes."""

    def __init__(self, command):
        began = time.time()
        with open("out", "wb") as out, open("err", "wb") as err:
            child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                     preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (60, 60)))
            _, status, usage = os.wait4(child.pid, 0)
        child.returncode = 0
        self.seconds, self.kib, self.status = time.time() - began, usage.ru_maxrss, os.waitstatus_to_exitcode(status)
        with open("out", "rb") as out, open("err", "rb") as err:
            self.out, self.err = out.read(), err.read()


def what_is_wrong(run, allowed_kib, is_json):
    if run.status not in (0, 1, 2, 4):
        yield f"exit status {run.status}"
    if run.seconds > 30:
        yield f"{run.seconds:.1f} s"
    if run.kib > allowed_kib:
        yield f"{run.kib} KiB, allowed {allowed_kib}"
    if any(byte in (run.out + run.err).replace(b"\n", b"") for byte in (b"\x1b", b"\x07", b"\0", b"\r")):
        yield "a control byte was echoed"
    if is_json and run.out:
        try:
            json.loads(run.out)
        except ValueError as problem:
            yield f"standard output is not JSON: {problem}"


def fuzz(kind, rounds, seed, scankit, work):
    module = work / "good.so"
    shared_library(module, MODULE_CODE, None, "-Os", "-s")
    good = Good(module, scankit("snapshot", "--no-import", "--python", sys.executable).out)
    with open(scankit.path, "rb") as program:
        sanitized = b"__asan_init" in program.read()
    worst, bad = [0.0, 0], []
    for number in range(rounds):
        name, data = HOSTILE[kind](good, random.Random(f"{seed}/{kind}/{number}"))
        path = work / name
        path.write_bytes(data)
        # What any answer takes, and a small multiple of the file: a member of 50 MB is a wheel's content, not its size.
        allowed = (64 << 10) + 8 * len(data) // 1024 + (120 << 10 if kind == "wheel" else 0)
        for extra in ([], ["--json"]) if number % 4 == 0 else (["--json"],):
            run = Measured([scankit.path, *arguments(kind, path), *extra])
            worst = [max(worst[0], run.seconds), max(worst[1], run.kib)]
            wrong = list(what_is_wrong(run, 1 << 40 if sanitized else allowed, bool(extra)))
            if wrong:
                kept = work / f"bad-{number}-{name[-40:]}"
                kept.write_bytes(data)
                bad.append(f"round {number} of seed {seed}: {', '.join(wrong)}; kept as {kept}; {run.err[-300:]}")
                break
        path.unlink()
    print(f"{kind}: {rounds} files, at most {worst[0]:.2f} s and {worst[1] / 1024:.1f} MiB each")
    assert not bad, "\n".join(bad)


@pytest.mark.parametrize("kind", ["elf", "fatbin", "wheel", "snapshot", "log"])
def test_fuzz(kind, scankit, work):
    fuzz(kind, 40, 1, scankit, work)


@pytest.mark.ctest(labels="matrix;large", timeout=3000)
@pytest.mark.parametrize("kind", ["elf", "fatbin", "wheel", "snapshot", "log"])
def test_fuzz_long(kind, scankit, work):
    fuzz(kind, 2000, 7, scankit, work)
