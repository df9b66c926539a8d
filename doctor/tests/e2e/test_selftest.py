# SPDX-License-Identifier: Apache-2.0
"""`scankit selftest` names all that it plants, for a Python with torch, and leaves nothing behind."""
import os
import re
import shutil
import signal
import subprocess
import time

import pytest

from fixtures import shared_python


@pytest.mark.ctest(fixtures="torch_env")
def test_selftest(scankit, work, monkeypatch):
    scratch = work / "tmp"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    python = shared_python()

    result = scankit("selftest", "--python", python, "--json", timeout=280)
    answer = result.json
    faults = answer["faults"]
    assert result.status == 0, [fault for fault in faults if fault["outcome"] != "named"]
    assert answer["verdict"] == "passed" and answer["imports"] and len(faults) >= 19
    assert all(fault["outcome"] == "named" for fault in faults), "not everything was planted and named"
    # The interpreter's own words, of each fault that it sees.
    assert sum(fault["import_error"] is not None for fault in faults) >= 17, "the interpreter did not fail"
    more = [line for line in result.err.splitlines() if not re.fullmatch(r"scankit: \[[0-9]*/[0-9]*\] planting .* [0-9]* s", line)]
    assert not more, f"it says more than what takes long: {more}"
    assert not os.listdir(scratch), "left behind"

    # What --keep leaves can be asked again, by the command of the answer.
    result = scankit("selftest", "--keep", "--json", variables={"PATH": f"{python.parent}:{os.environ['PATH']}"}, timeout=280)
    again = next(fault["command"][1:] for fault in result.json["faults"] if fault["fault"] == "git-lfs")
    kept = re.search(r"^scankit: kept (.*)", result.err, re.MULTILINE)[1]
    assert os.path.isdir(kept), "--keep kept nothing"
    assert scankit(*again).root == "corrupt_binary"
    shutil.rmtree(kept)

    # Stopped by the user: nothing stays, and the status says why.
    child = subprocess.Popen([scankit.path, "selftest", "--python", python], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(100):
        if os.listdir(scratch):
            break
        time.sleep(0.05)
    child.terminate()
    status = child.wait(timeout=60)
    # Either it ended by the signal, or with the status that a shell makes of it.
    assert status in (-signal.SIGTERM, 128 + signal.SIGTERM) and not os.listdir(scratch), f"{status}, left: {os.listdir(scratch)}"

    result = scankit("selftest", "--python", python, variables={"TMPDIR": "/nonexistent"})
    assert result.status == 3 and len(result.text.splitlines()) == 1, result
    result = scankit("selftest", "--python", "/nonexistent/python")
    assert result.status == 2 and len(result.text.splitlines()) == 1, result
