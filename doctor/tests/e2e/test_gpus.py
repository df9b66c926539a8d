# SPDX-License-Identifier: Apache-2.0
"""Modules with device code that the real nvcc made, judged for GPUs and drivers that are not here. The environment has no
torch, so that nothing but the module decides."""
import shutil
from pathlib import Path

import pytest

from fixtures import MACHINES, MODULE_SOURCES, host_python, include_of, need_nvcc, run, shell, site_of

pytestmark = pytest.mark.ctest(group="gpus")
H200 = MACHINES / "h200_torch211/snapshot.json"
FILE = "selective_scan_cuda.abi3.so"


@pytest.fixture(autouse=True)
def in_work(work):
    """Every file of a test is in its own folder."""
    need_nvcc()


def module(*flags):
    """FILE with a kernel, which needs no libcudart."""
    text = (MODULE_SOURCES / "plain.c").read_text().replace(
        "static struct PyModuleDef",
        "__global__ void scale(float* a) { a[0] *= 2; }\nvoid go(float* a) { scale<<<1, 1>>>(a); }\nstatic struct PyModuleDef", 1)
    Path("module.cu").write_text(text)
    run("nvcc", "-shared", "-Xcompiler", "-fPIC", "-cudart", "static", f"-I{include_of(host_python())}", "-o", FILE, "module.cu", *flags)


def code(kind):
    """nvcc's flags for one image, "sm_80" or "compute_80"."""
    return ["-gencode", f"arch={kind.replace('sm', 'compute')},code={kind}"]


@pytest.fixture
def python(work):
    run(host_python(), "-m", "venv", "--without-pip", "env")
    return work / "env/bin/python"


@pytest.fixture
def judge(scankit):
    return lambda verdict, root, *words: scankit.doctor("--so", FILE, *words).diagnosis(verdict, root)


@pytest.fixture
def on(judge, python):
    """on(gpu, driver, verdict, root)"""
    return lambda gpu, driver, verdict, root="": judge(verdict, root, "--python", python, "--gpu", gpu, "--driver", driver)


def test_machine_code_of_another_gpu(on):
    module(*code("sm_80"))
    on("sm_90", "580.65", "broken", "no_kernel_image")
    on("sm_80", "580.65", "healthy")
    on("sm_86", "580.65", "healthy")
    on("sm_80,sm_90", "580.65", "broken", "no_kernel_image")
    on("sm_75", "580.65", "broken", "no_kernel_image")


def test_architecture_and_family(on):
    module(*code("sm_90a"), *code("sm_100f"))
    on("sm_90", "580.65", "healthy")
    on("sm_100", "580.65", "healthy")
    on("sm_103", "580.65", "healthy")
    on("sm_120", "580.65", "broken", "no_kernel_image")
    on("sm_110", "580.65", "broken", "no_kernel_image")


def test_ptx_newer_than_the_driver(on):
    module(*code("compute_75"), "-compress-mode=none")
    on("sm_90", "580.65", "healthy")
    on("sm_120", "590.48", "healthy")
    on("sm_90", "570.86", "broken", "ptx_toolchain")
    on("sm_90", "535.104.05", "broken", "ptx_toolchain")


def test_ptx_of_one_architecture(on):
    module(*code("compute_90a"))
    on("sm_90", "580.65", "healthy")
    on("sm_100", "580.65", "broken", "no_kernel_image")


# RAPIDS and ollama met it: zstd images on R535 end as "device kernel image is invalid".
def test_zstd_on_an_old_driver(on):
    module(*code("sm_90"), "-compress-mode=size")
    on("sm_90", "535.104.05", "broken", "no_kernel_image")
    on("sm_90", "545.23.08", "broken", "no_kernel_image")
    on("sm_90", "580.65.06", "healthy")


# nvcc 13 writes all its cubins in the newer cubin ABI, packed or not.
def test_cubins_of_cuda_13(on, scankit, python):
    for mode in ("none", "size"):
        module(*code("sm_90"), f"-compress-mode={mode}")
        on("sm_90", "550.163.01", "broken", "no_kernel_image")
        on("sm_90", "575.57.08", "unknown")
        on("sm_90", "580.65.06", "healthy")
        shutil.copy2(FILE, site_of(python))
        images = [image for one in scankit.snapshot("--python", python)["extensions"]["value"] for image in one["images"]]
        assert images and all(image["elf_abi"] == 8 for image in images), f"nvcc 13 writes ABI 8: {images}"
    module(*code("sm_100"))
    on("sm_100", "570.133.20", "healthy")


# NVRTC 12.9 writes the older one up to sm_90, and the newer one behind it. Downloads an NVRTC of CUDA 12.
@pytest.mark.ctest(labels="matrix;e2e")
def test_cubins_of_nvrtc_12(on, work):
    library = shell("fx_nvrtc_12")

    def packed(arch):
        """The module with that NVRTC's cubin in it, as a fatbin."""
        run(host_python(), MODULE_SOURCES / "nvrtc_cubin.py", library, arch, work / "k.cubin")
        run("fatbinary", "--create=k.fatbin", "-64", f"--image3=kind=elf,sm={arch.removeprefix('sm_')},file=k.cubin")
        run("gcc", "-shared", "-fPIC", f"-I{include_of(host_python())}", "-o", "plain.so", MODULE_SOURCES / "plain.c")
        run("objcopy", "--add-section", ".nv_fatbin=k.fatbin", "plain.so", FILE)
    packed("sm_90")
    on("sm_90", "550.163.01", "healthy")
    on("sm_90", "535.104.05", "healthy")
    packed("sm_100")
    on("sm_100", "570.133.20", "healthy")
    on("sm_100", "560.35.05", "broken", "no_kernel_image")


def test_no_gpu_at_all(judge, python):
    module(*code("sm_80"))
    judge("healthy", "", "--python", python, "--gpu", "none")
    judge("broken", "no_kernel_image", "--python", python, "--gpu", "sm_120")


# nvcc -rdc leaves the device linker's input in the file, which nothing runs.
def test_relocatable_code_does_not_run(on):
    module("-rdc=true", *code("sm_80"), *code("compute_90"))
    on("sm_80", "580.65", "healthy")


def test_on_a_recorded_machine(judge):
    module(*code("sm_80"))
    judge("broken", "no_kernel_image", "--from", H200)
    judge("healthy", "", "--from", H200, "--gpu", "sm_80")
    module(*code("sm_90"))
    judge("healthy", "", "--from", H200)
    judge("broken", "driver_too_old", "--from", H200, "--driver", "525.60")
