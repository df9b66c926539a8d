# SPDX-License-Identifier: Apache-2.0
"""Real sources, compiled by the headers of several torch releases with the string ABI that the wheels of that release do not
have, and dated: the release must be inside. Conda and vendors build 2.4 so, a set-up script with a flag of its own the later
ones. Gigabytes of headers."""
import os
import shutil

import pytest

from fixtures import MODULE_SOURCES, TORCH, host_python, include_of, run, shared_torch, shell

MAMBA, CONV, SCATTER = ("mamba-ssm", "2.2.5"), ("causal-conv1d", "1.5.2"), ("torch-scatter", "2.1.2")


def archive(project, version):
    """Its sources, from the index."""
    run("tar", "-xf", shell("fx_sdist", project, version), "-C", "sources")


@pytest.mark.ctest(labels="matrix;e2e", timeout=3000, fixtures="torch_env", processors=2)
def test_other_abi(scankit, work):
    sources = work / "sources"
    sources.mkdir()
    for project in (MAMBA, CONV, SCATTER):
        archive(*project)
    files = {"binding": MODULE_SOURCES / "binding.cc", "torch_scatter": sources / "torch_scatter-2.1.2/csrc/scatter.cpp"}
    if os.path.exists("/usr/local/cuda/include/cuda_runtime.h"):
        # The sources of a CUDA extension include the runtime's headers; no kernel is needed for its names.
        files["selective_scan_cuda"] = sources / "mamba_ssm-2.2.5/csrc/selective_scan/selective_scan.cpp"
        files["causal_conv1d_cuda"] = sources / "causal_conv1d-1.5.2/csrc/causal_conv1d.cpp"
    compiler = ["ccache", "g++"] if shutil.which("ccache") else ["g++"]
    for release, abi, word in (("2.4.1", 1, "new"), ("2.7.1", 0, "old"), (TORCH, 0, "old")):
        headers = shared_torch() if release == TORCH else f"{shell('fx_torch_headers', release)}/torch"
        for name, source in files.items():
            file = work / f"{name}-{release}-{abi}.so"
            run(*compiler, "-std=c++17", "-O0", "-fPIC", "-w", "-shared", f"-DTORCH_EXTENSION_NAME={name}",
                "-DTORCH_API_INCLUDE_EXTENSION_H", f"-D_GLIBCXX_USE_CXX11_ABI={abi}", f"-I{include_of(host_python())}", "-isystem",
                f"{headers}/include", "-isystem", f"{headers}/include/torch/csrc/api/include", "-I/usr/local/cuda/include", source,
                "-o", file)
            result = scankit.doctor("--so", file, "--no-import")
            result.built_for(file.name, release.rpartition(".")[0], word)
