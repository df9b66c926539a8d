# SPDX-License-Identifier: Apache-2.0
"""fix.kills, fix.enospc, fix.erofs, fix.eio: at each system call that changes a file. fix_kills.py can be run by hand, for some calls."""
import pytest

from building import may_trace
from fix_kills import hit_every_call


@pytest.mark.ctest(group="fix", labels="matrix;large;e2e", timeout=7200, fixtures="torch_env")
@pytest.mark.parametrize("name", ["kills", "enospc", "erofs", "eio"])
def test_fix(repair, scankit, work, name):  # `repair` for its cache
    if not may_trace():
        pytest.skip("no strace that may trace here")
    hits, failures = hit_every_call(scankit, work, "KILL" if name == "kills" else name.upper())
    assert hits > 0
    assert not failures, failures
