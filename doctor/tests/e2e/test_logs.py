# SPDX-License-Identifier: Apache-2.0
"""Error logs through the command itself: those of doctor/tests/logs, logs that are none, and one of a gigabyte."""
import subprocess

import pytest

from fixtures import HERE
from program import Result

LOGS = HERE.parent / "logs"
LITTLE = 64 << 10  # KiB that reading any log may take
SYMBOL = "undefined symbol: _ZN3c104cuda9SetDeviceEi"


def used_kib(scankit, *words, feed=None):
    """Runs `doctor --log` below a measuring parent: its result and the KiB that it took."""
    command = ["/usr/bin/time", "-f", "%M", "-o", "used", scankit.path, "doctor", "--log", *map(str, words)]
    child = subprocess.Popen(command, stdin=subprocess.PIPE if feed else subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if feed:
        feed(child.stdin)
        child.stdin.close()
        child.stdin = None
    out, err = child.communicate(timeout=800)
    with open("used") as file:
        return Result(command, child.returncode, out.decode(errors="replace"), err.decode(errors="replace")), int(file.read().split()[-1])


def every_log(scankit):
    """The name of each file begins with the cause that must be named, or with `note`, `warning` or `nothing`."""
    logs = sorted(LOGS.glob("*.txt"))
    assert len(logs) > 50
    for log in logs:
        result = scankit.doctor("--log", log)
        cause = log.name.partition(".")[0]
        expected = {"note": (None, 4), "nothing": (None, 4), "warning": (None, 0)}.get(cause, (cause, 1))
        assert (result.root, result.status) == expected, f"{log.name}: {result.root}, exit status {result.status}"


def symbol_is_dated(scankit, work):
    """A torch symbol is dated, in the report's own form."""
    (work / "symbol.txt").write_text(f"ImportError: /x/selective_scan_cuda.cpython-310-x86_64-linux-gnu.so: {SYMBOL}\n")
    [entry] = scankit.doctor("--log", "symbol.txt").json["built_for"]
    assert (entry["torch_min"], entry["torch_max"]) == ("2.1", "2.2") and entry["evidence"], entry
    text = scankit.report("--log", "symbol.txt")
    assert "torch 2.1-2.2 exports it" in text.out, text


def repairs(scankit, work):
    """Other people's modules: scankit has none of that name to offer, and says so by not offering one."""
    def repair_of(text):
        (work / "repair.txt").write_text(f"{text}\n")
        lines = scankit.report("--log", "repair.txt").out.splitlines()
        return "\n".join(line for line in lines if line.lstrip().startswith("repair: "))
    flash = repair_of(f"ImportError: /x/flash_attn_2_cuda.cpython-310-x86_64-linux-gnu.so: {SYMBOL}").lower()
    assert not any(offer in flash for offer in ("scankit's", "scankit module", "scankit fix")), flash
    scan = repair_of(f"ImportError: /x/selective_scan_cuda.cpython-310-x86_64-linux-gnu.so: {SYMBOL}")
    assert "scankit fix --module selective_scan_cuda" in scan, f"scankit's module is not offered: {scan}"
    mamba = repair_of("ModuleNotFoundError: No module named 'mamba_ssm'")
    assert "scankit fix --package mamba-ssm" in mamba, f"the package is not offered: {mamba}"
    yaml = repair_of("ModuleNotFoundError: No module named 'yaml'")
    assert "pip install pyyaml" in yaml, f"the distribution of yaml is not named: {yaml}"


def test_logs(scankit, work):
    every_log(scankit)
    symbol_is_dated(scankit, work)
    repairs(scankit, work)
    for bad in (work / "none", work):
        result = scankit.report("--log", bad)
        assert result.status != 0 and len(result.err.splitlines()) == 1, f"{bad} was taken for a log: {result!r}"
    with open("endless.txt", "wb") as file:  # one line of 300 MB
        for _ in range(300):
            file.write(b"x" * 1000000)
    result, kib = used_kib(scankit, "endless.txt")
    assert result.status != 0, "an endless line is no log"
    assert kib < LITTLE, f"an endless line took {kib} KiB"
    (work / "endless.txt").unlink()


# A log of a gigabyte goes through in little memory, and the error at its end is the answer.
@pytest.mark.ctest(labels="matrix", timeout=900)
def test_big_log(scankit, work):
    def feed(stream):
        block = "".join("step %d loss 2.%d \x1b[32mok\x1b[0m /data/run/%d.pt\n" % (i, i, i) for i in range(20000)).encode() * 2
        for _ in range((1 << 30) // len(block) + 1):
            stream.write(block)
        stream.write(b"ImportError: libcudart.so.11.0: cannot open shared object file: No such file or directory\n")
    result, kib = used_kib(scankit, "-", "--json", feed=feed)
    assert result.status == 1 and result.root == "missing_cudart", result
    assert kib < LITTLE, f"a gigabyte of log took {kib} KiB"
