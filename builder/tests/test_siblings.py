# SPDX-License-Identifier: Apache-2.0
"""build and fix of the other modules, in a real environment with a real torch."""
import pytest

from building import units_of

SIBLINGS = ("causal_conv1d_cuda", "selective_scan_cuda_core", "selective_scan_cuda_oflex")
PTX = ["--arch", "compute_75"]


@pytest.mark.ctest(group="builder", labels="matrix;e2e", timeout=1500, fixtures="torch_env", processors=2)
def test_siblings_end_to_end(repair, scankit, work):
    here = repair("tested")
    result = scankit("build", *PTX, "--out", f"{work / 'made'}/", timeout=900)
    if result.status == 5 and "NVRTC (libnvrtc.so.12 or .13) not found" in result.err:
        pytest.skip("no NVRTC on this machine")
    scankit("build", "--module", "selective_scan").ends(2, "causal_conv1d_cuda")
    units = units_of("selective_scan")
    for flavor in ("core", "oflex"):
        result = scankit("build", "--module", f"selective_scan_cuda_{flavor}", *PTX, "--out", f"{work / 'made'}/", timeout=900)
        result.ends(0, f"{units} of {units}")  # from the images of the first

    for module in SIBLINGS:
        here.break_module(module)
    old = here.state()
    for module in SIBLINGS:
        result = scankit.report("--python", here.python, "--module", module, "--no-import")
        result.ends(1, f"scankit fix --python {here.python} --module {module}")
        here.fix("--module", module, *PTX, "--yes").ends(0)
        assert here.module_file(module) == str(here.site / f"{module}.abi3.so")
        here.fix("--module", module, *PTX, "--yes").ends(0, "nothing to do")
    for _ in SIBLINGS:
        assert here.state() != old, "fewer restores go back"
        here.restore().ends(0)
    assert here.state() == old
