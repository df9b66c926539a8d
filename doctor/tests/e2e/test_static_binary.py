# SPDX-License-Identifier: Apache-2.0
"""scankit is one static executable and runs in a root file system of another release whose name services a static glibc
program dies of."""
import os
import shutil
import tempfile
from pathlib import Path

import pytest

from fixtures import run, shell
from program import run_program


@pytest.mark.ctest(labels="ci", timeout=600, condition="SCANKIT_STATIC")
def test_static_binary(scankit, work, request):
    assert "INTERP" not in run("readelf", "-lW", scankit.path), "it asks for an interpreter"
    assert "NEEDED" not in run("readelf", "-dW", scankit.path), "it needs shared libraries"
    if os.getuid() != 0 or not shutil.which("debootstrap"):
        pytest.skip("the foreign root needs root and debootstrap")
    root = Path(shell("fx_foreign_root"))
    inside = Path(tempfile.mkdtemp(prefix="scankit.", dir=root / "tmp"))
    request.addfinalizer(lambda: shutil.rmtree(inside))
    shutil.copy2(scankit.path, inside / "scankit")

    # The trap is armed: a static program that asks for a user does die there.
    run("gcc", "-static", "-w", "-x", "c", "-", "-o", inside / "asks",
        stdin="#include <pwd.h>\nint main(void) { getpwuid(12345); return 0; }\n")
    asked = run_program("chroot", root, f"/tmp/{inside.name}/asks")
    assert asked.status, "the foreign root does not trip a static program: the test proves nothing"

    def there(*words):
        return run_program("chroot", root, "env", "-i", "HOME=/root", "PATH=/usr/bin:/bin", f"/tmp/{inside.name}/scankit", *words)
    there("--version").ends(0)
    there().ends(0)
    there("explain", "torch_version_mismatch").ends(0)
    # There is no Python in that root: a usage error says so. Dying of a signal is 128 and more.
    for words in (["doctor", "--no-import", "--json"], ["snapshot"]):
        result = there(*words)
        assert result.status in (0, 1, 2, 4), result
