# SPDX-License-Identifier: Apache-2.0
"""Device images of what the real nvcc makes, read by us (scankit_list_images), by expectation and by cuobjdump (found, or
fetched as a wheel by pip; where neither is, the expectation alone decides)."""
import re
import shutil
import struct
from pathlib import Path

import pytest

from fixtures import Failed, need_nvcc, run, shared_torch, shell

pytestmark = pytest.mark.ctest(group="fatbins", fixtures="torch_env")


@pytest.fixture(autouse=True)
def in_work(work):
    """Every file of a test is in its own folder."""
    need_nvcc()


def kernel(name):
    """A translation unit with one kernel."""
    Path(f"{name}.cu").write_text(
        f"__global__ void {name}(float* a) {{ a[threadIdx.x] *= 2.0f; }}\nvoid go_{name}(float* a) {{ {name}<<<1, 32>>>(a); }}\n")
    return f"{name}.cu"


def nvcc(output, *words):
    run("nvcc", "-shared", "-Xcompiler", "-fPIC", "-o", output, *words)
    return output


def code(*pairs):
    """nvcc's flags: code("sm_80", "compute_90")"""
    return [word for kind in pairs for word in ("-gencode", f"arch={kind.replace('sm', 'compute')},code={kind}")]


class Images:
    """What we, and cuobjdump, see in a file."""

    def __init__(self, build):
        self.ours = build / "doctor/elf/scankit_list_images"
        self.theirs = shutil.which("cuobjdump")
        if not self.theirs:
            try:
                folder = shell("cuobjdump", file="doctor/tests/e2e/packages.sh")
                self.theirs = next(file for file in Path(folder).rglob("cuobjdump") if file.is_file())
                self.theirs.chmod(0o755)
            except Failed as problem:
                print(f"no cuobjdump: {problem}")

    def of(self, file, *words):
        """The lines of scankit_list_images."""
        return run(self.ours, *words, file).splitlines()

    def exactly(self, file, *kinds):
        """The images are these kinds, whatever their packing: "cubin sm_90a"."""
        lines = self.of(file)
        assert not [line for line in lines if re.search("UNREADABLE|CONTRADICTED|unknown", line)], f"an image was not understood: {lines}"
        assert {" ".join(line.split(" ")[:2]) for line in lines} == set(kinds), f"{file} holds other images: {lines}"
        self.as_cuobjdump_reads(file)

    def as_cuobjdump_reads(self, file):
        """cuobjdump names no family ("sm_100" for sm_100f), and lists LTO images nowhere. Returns the images, sorted."""
        ours = sorted(" ".join(line.split(" ")[:2]).rstrip("f") for line in self.of(file) if re.match("(cubin|ptx) ", line))
        if self.theirs:
            listed = run(self.theirs, "--list-elf", file, status=None) + run(self.theirs, "--list-ptx", file, status=None)
            theirs = sorted(f"{kind} {arch}" for arch, kind in re.findall(r"\.(sm_[0-9]+a?)f?\.(cubin|ptx)$", listed, re.MULTILINE))
            assert ours == theirs, f"cuobjdump reads other images of {file}"
        return ours

    def packed_with(self, file, kind, packing):
        lines = [line for line in self.of(file) if line.startswith(f"{kind} ")]
        assert packing in {line.split()[2] for line in lines}, f"{kind} images of {file} should be packed with {packing}: {lines}"


@pytest.fixture
def images(build):
    return Images(build)


def test_architectures(images):
    nvcc("a.so", kernel("k"), *code("sm_80", "sm_90a", "sm_100f", "compute_90"))
    images.exactly("a.so", "cubin sm_80", "cubin sm_90a", "cubin sm_100f", "ptx sm_90")


def test_ptx_only(images):
    nvcc("a.so", kernel("k"), *code("compute_75"))
    images.exactly("a.so", "ptx sm_75")
    nvcc("b.so", "k.cu", *code("compute_90a"))
    images.exactly("b.so", "ptx sm_90a")


def test_compress_modes(images):
    kernel("k")
    both = code("sm_90", "compute_90")
    for name, flag, packings in (("none", "-compress-mode=none", {"ptx": "none", "cubin": "none"}),
                                 ("speed", "-compress-mode=speed", {"ptx": "lz4"}),
                                 ("size", "-compress-mode=size", {"ptx": "zstd", "cubin": "zstd"}),
                                 ("balance", "-compress-mode=balance", {"ptx": "zstd"}),
                                 ("raw", "-no-compress", {"ptx": "none"})):
        file = nvcc(f"{name}.so", "k.cu", *both, flag)
        for kind, packing in packings.items():
            images.packed_with(file, kind, packing)
        images.exactly(file, "cubin sm_90", "ptx sm_90")


def test_several_units(images):
    nvcc("a.so", kernel("one"), kernel("two"), *code("sm_80", "sm_86"))
    images.exactly("a.so", "cubin sm_80", "cubin sm_86")


KERNELS = """
__global__ void plain(float* a) { a[threadIdx.x] *= 2.0f; }
__global__ void __launch_bounds__(128) shared_and_bounded(float* a) {
  __shared__ float row[300];
  row[threadIdx.x] = a[threadIdx.x];
  __syncthreads();
  a[threadIdx.x] = row[299 - threadIdx.x];
}
__global__ void stacked(float* a, int n) {
  volatile float kept[200];
  for (int i = 0; i < 200; ++i) kept[i] = a[i];
  a[n] = kept[n] + kept[threadIdx.x % 200];
}
__device__ __noinline__ float called(float x) { return x * x + 1.0f; }
__global__ void calls(float* a) { a[0] = called(a[1]); }
"""


# What a kernel takes, against cuobjdump's own figures: shared memory, a bound on the threads, a stack, many registers.
def test_resources(images):
    Path("k.cu").write_text(KERNELS)
    nvcc("a.so", "k.cu", *code("sm_75", "sm_90", "sm_100", "sm_120"))
    ours = sorted(images.of("a.so", "--kernels"))
    assert len(ours) == 16, f"there are 4 kernels for each of 4 architectures: {ours}"
    for pattern in ("shared_and_bounded.* 128 threads$", "plain.* 0 threads$", "stacked.* STACK:800 "):
        assert sum(bool(re.search(pattern, line)) for line in ours) == 4, f"4 times {pattern}: {ours}"
    if not images.theirs:
        return
    theirs, arch, name = [], "", ""
    for line in run(images.theirs, "-res-usage", "a.so", status=None).splitlines():
        words = line.split()
        if line.startswith("arch = "):
            arch = words[2]
        if "Function" in line:
            name = words[1].removesuffix(":")
        if " REG:" in line and "called" not in name:
            theirs.append(" ".join([arch, name, *words[:3]]))
    assert [" ".join(line.split(" ")[:5]) for line in ours] == sorted(theirs), "cuobjdump -res-usage says something else"


def test_relocatable(images):
    nvcc("a.so", kernel("one"), kernel("two"), "-rdc=true", *code("sm_80"))
    images.exactly("a.so", "cubin sm_80")


def test_stripped(images):
    nvcc("a.so", kernel("k"), *code("sm_80", "compute_90"))
    before = images.of("a.so")
    run("strip", "-s", "a.so")
    assert images.of("a.so") == before, "strip changed what is seen"
    images.exactly("a.so", "cubin sm_80", "ptx sm_90")


def test_patched(images):
    if not shutil.which("patchelf"):
        pytest.skip("no patchelf here")
    nvcc("a.so", kernel("k"), *code("sm_80"))
    before = images.of("a.so")
    run("patchelf", "--set-rpath", "$ORIGIN/../a/long/folder/name/that/needs/a/segment/of/its/own", "a.so")
    assert images.of("a.so") == before, "patchelf changed what is seen"


# Without section headers only the loaded segments are left (sstrip, some packers).
def test_no_section_headers(images):
    nvcc("a.so", kernel("k"), *code("sm_80"), "-compress-mode=size")
    before = set(images.of("a.so"))
    data = bytearray(Path("a.so").read_bytes())
    struct.pack_into("<Q", data, 40, 0)  # e_shoff
    struct.pack_into("<HHH", data, 58, 0, 0, 0)  # e_shentsize, e_shnum, e_shstrndx
    Path("a.so").write_bytes(data)
    assert set(images.of("a.so")) == before, "without section headers other images are seen"


@pytest.mark.ctest(labels="matrix;e2e")  # half a minute of cuobjdump
def test_torch(images):
    for name in ("libtorch_cuda.so", "libtorch_cuda_linalg.so"):
        library = shared_torch() / "lib" / name
        if not library.exists():
            pytest.skip(f"this torch has no {name}")
        wrong = [line for line in images.of(library) if re.search("UNREADABLE|CONTRADICTED|unknown", line)]
        assert not wrong, f"{name}: {wrong[:3]}"
        read = images.as_cuobjdump_reads(library)
        assert read or not images.theirs, f"{name}: no image was read"
