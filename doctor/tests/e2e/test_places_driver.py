# SPDX-License-Identifier: Apache-2.0
"""Machines with a GPU, as the kernel would show them: files mounted over /sys and /proc in a mount namespace of the test's
own. The libraries are real ones, made by the compiler, and the real loader takes them."""
import os
import shutil

import pytest

from environment import shared_library
from program import run_program

pytestmark = pytest.mark.ctest(group="places", fixtures="torch_env;modules")


def library(path, soname, size=16):
    """A driver's library has megabytes, a stub some kilobytes."""
    shared_library(path, f"int cuInit(unsigned f) {{ return f ? 1 : 0; }}\nchar ballast[{size}] = {{1}};\n", soname)


def driver_library(folder, version):
    """As the driver's installer lays it."""
    library(folder / f"libcuda.so.{version}", "libcuda.so.1", 2000000)
    (folder / "libcuda.so.1").symlink_to(f"libcuda.so.{version}")


@pytest.fixture
def machine(scankit, work):
    """machine(driver): scankit on a machine with one H200 on the PCI bus and the kernel module of that driver; without, no
    driver at all. `mounts`: more folders of WORK/machine, and what they are mounted over."""
    def make(driver=None, mounts=""):
        card = work / "machine/pci/0000:17:00.0"
        for folder in (card, work / "machine/module", work / "machine/proc"):
            folder.mkdir(parents=True)
        for name, value in (("vendor", "0x10de"), ("class", "0x030200"), ("device", "0x2335")):
            (card / name).write_text(f"{value}\n")
        if driver:
            (work / "machine/module/nvidia").mkdir()
            (work / "machine/module/nvidia/version").write_text(f"{driver}\n")
        if run_program("unshare", "-m", "true").status:
            pytest.skip("no mount namespaces for us: not root, or a container that forbids them")
        if not all(map(os.path.isdir, ("/sys/bus/pci/devices", "/sys/module", "/proc/driver"))):
            pytest.skip("this kernel shows no PCI devices, modules or drivers")
        inside = f"""
for pair in pci:/sys/bus/pci/devices module:/sys/module proc:/proc/driver {mounts}; do
  mount --bind "{work}/machine/${{pair%%:*}}" "${{pair#*:}}" || exit 99
done
exec "$@\""""
        return scankit.with_(before=["unshare", "-m", "sh", "-c", inside, "sh"])
    return make


@pytest.fixture
def static(environment):
    """The doctor's arguments: an environment with torch, by its files alone."""
    return ["--no-import", "--python", environment().python]


def about_the_choice(result):
    """The findings about CUDA_VISIBLE_DEVICES."""
    return result.findings(subject="CUDA_VISIBLE_DEVICES")


def test_driver_stub_comes_first(machine, static, work):
    scankit = machine("580.159.04")
    stubs = work / "cuda/lib64/stubs"
    library(stubs / "libcuda.so", "libcuda.so.1")
    (stubs / "libcuda.so.1").symlink_to("libcuda.so")
    driver_library(work / "driver", "580.159.04")
    path = {"LD_LIBRARY_PATH": f"{stubs}:{work}/driver"}
    result = scankit.doctor(*static, variables=path).diagnosis("broken", "no_driver_libcuda", found=["no_driver_libcuda"])
    [finding] = result.findings(cause="no_driver_libcuda")
    assert "stubs/libcuda.so" in finding["summary"], f"the stub is not the reason: {finding}"
    # The printed command is run as it stands, and heals.
    command = finding["fixes"][0]["command"]
    healed = run_program("bash", "-c", f'{command}\nprintf %s "$LD_LIBRARY_PATH"', variables=path).ends(0).out
    result = scankit.doctor(*static, variables={"LD_LIBRARY_PATH": healed or None}).diagnosis("healthy")
    assert not result.findings(cause="no_driver_libcuda"), f"the command did not help: {command}"
    assert not [entry for entry in result.json["unknown"] if "driver" in entry["why"]], "the driver is not judged"


def test_driver_compat_libraries(machine, static, work):
    scankit = machine("535.54.03")
    driver_library(work / "driver", "535.54.03")
    driver_library(work / "cuda-13.0/compat", "580.65.06")
    scankit.doctor(*static, variables={"LD_LIBRARY_PATH": work / "driver"}).diagnosis("broken", "driver_too_old", found=["driver_too_old"])
    scankit.doctor(*static, variables={"LD_LIBRARY_PATH": f"{work}/cuda-13.0/compat:{work}/driver"}).diagnosis("healthy")
    # Forward compatibility goes one way: a compat library older than the kernel module is refused.
    driver_library(work / "cuda-12.2/compat", "530.30.02")
    scankit.doctor(*static, variables={"LD_LIBRARY_PATH": f"{work}/cuda-12.2/compat:{work}/driver"}).diagnosis(
        "broken", "nvml_mismatch|driver_too_old", found=["nvml_mismatch"])


def test_driver_hidden_gpus(machine, static, work):
    scankit = machine("580.159.04")
    driver_library(work / "driver", "580.159.04")

    def visible(value):
        return scankit.doctor(*static, variables={"LD_LIBRARY_PATH": work / "driver", "CUDA_VISIBLE_DEVICES": value})
    for value in ("", "-1"):
        result = visible(value).diagnosis("healthy")
        assert any(finding["severity"] == "note" and "hides" in finding["summary"] for finding in about_the_choice(result)), \
            f"'{value}' is not told as hiding the GPU: {result.summary}"
    result = visible("0").diagnosis("healthy")
    assert not about_the_choice(result), "0 hides nothing"
    visible("0,7,0").diagnosis("healthy")  # the list ends at 7
    visible("0,0").diagnosis("broken", "no_driver_libcuda", found=["no_driver_libcuda"])  # error 101, invalid device ordinal
    visible("7").diagnosis("broken", "no_driver_libcuda", found=["no_driver_libcuda"])
    # Without NVML nobody knows the GPU's UUID, or its MIG instances: no verdict on them.
    for value in ("GPU-8d4aeb1b-64ff-4a5b-8f4e-8d2f6a3e1c11", "MIG-8d4aeb1b-64ff-4a5b-8f4e-8d2f6a3e1c11", "MIG-GPU-8d4aeb1b/1/0"):
        result = visible(value).diagnosis("healthy")
        assert not about_the_choice(result), f"{value} is called wrong"


# A container on a GPU host that was started without its GPUs: the kernel shows the module, the driver's files are not there.
def test_driver_container_without_gpus(machine, static):
    result = machine("580.159.04").doctor(*static, variables={"KUBERNETES_SERVICE_HOST": "10.0.0.1"})
    result.diagnosis("healthy", found=["no_driver_libcuda"])
    assert any("container was started without its GPUs" in finding["summary"] for finding in result.findings()), result.json["findings"]


# A card, and no driver of its maker: nothing computes on it.
def test_driver_none_at_all(machine, static):
    scankit = machine()
    scankit.doctor(*static).diagnosis("healthy", found=["no_driver_libcuda"])
    text = scankit.report(*static)
    assert "no NVIDIA driver" in text.text, text


# WSL 2: no card on the bus, the driver's library in a folder of its own, /dev/dxg.
def test_driver_wsl(machine, scankit, static, work):
    inside = machine(mounts="dev:/dev")
    (work / "machine/dev").mkdir()
    for node in ("null", "zero", "urandom", "random", "tty", "dxg"):
        (work / "machine/dev" / node).touch()
    shutil.rmtree(work / "machine/pci/0000:17:00.0")
    library(work / "wsl/lib/libcuda.so.1.1", "libcuda.so.1", 100000)
    (work / "wsl/lib/libcuda.so.1").symlink_to("libcuda.so.1.1")
    result = inside.doctor(*static, variables={"LD_LIBRARY_PATH": work / "wsl/lib"}).diagnosis("unknown")
    result.unknown_names("/dev/dxg")
    # The same system, unpacked: the library is found where WSL puts it, and is no stub although it is small.
    (work / "root/etc").mkdir(parents=True)
    shutil.copytree(work / "wsl/lib", work / "root/usr/lib/wsl/lib", symlinks=True)
    result = scankit.doctor("--root", work / "root")
    assert not result.findings(cause="no_driver_libcuda"), "WSL's library is taken for a stub"
