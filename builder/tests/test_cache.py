# SPDX-License-Identifier: Apache-2.0
"""The cache of compiled images, --explain and the manifest."""
import gzip
import os
import re
import struct
import time
import zlib
from pathlib import Path

import pytest

from building import Builds, may_trace
from fixtures import REPOSITORY
from program import run_program

pytestmark = pytest.mark.ctest(group="builder.cache", labels="matrix;large;e2e", timeout=1800, processors=2)
HEADER = "kernels/causal_conv1d/cuda/forward.cuh"


@pytest.fixture(autouse=True)
def builds(convolution, need_nvrtc):
    return convolution


@pytest.fixture
def sm_90(builds):
    """The module for sm_90, built into an empty cache."""
    return builds.into("first", "--arch", "sm_90")


def test_builders_at_once(builds, work):
    """Two with one cache, and a third that is killed in the middle of a write into it."""
    two = [builds.start("--arch", "compute_90", "--out", f"{work / name}/", out=work / f"{name}.log") for name in ("one", "two")]
    killed = kill_in_a_write(builds, work) if may_trace() else None
    assert [one.wait() for one in two] == [0, 0]
    one, two = (work / name / builds.file for name in ("one", "two"))
    assert one.read_bytes() == two.read_bytes()
    builds("--arch", "compute_90").ends(0, "are in the cache")
    assert (builds.out / builds.file).read_bytes() == one.read_bytes()
    if killed is None:
        pytest.skip("no strace that may trace here: no builder is killed in the middle of a write")
    assert killed and not (work / "three" / builds.file).exists(), "no builder was killed in the middle of a write"
    five = builds.into("five", "--arch", "compute_86")
    six = builds.into("six", "--arch", "compute_86", "--cache-dir", work / "cache-clean")
    assert five.read_bytes() == six.read_bytes(), "other bytes than from a clean cache"
    two_hours_ago = time.time() - 7200
    os.utime(killed[0], (two_hours_ago, two_hours_ago))
    builds("--arch", "sm_90").ends(0, "compiled: conv_f32 and 3 more for sm_90: never built with this cache")
    assert not killed[0].exists(), "what the killed one left is still there"


def kill_in_a_write(builds, work):
    """The half files that it leaves. fchmod() comes after the bytes and before the rename; the first one is of the memo on the
    compiler, or of the source."""
    tracer = ["strace", "-qq", "-f", "-o", work / "trace", "-e", "trace=fchmod", "-e", "inject=fchmod:signal=SIGKILL:when=3"]
    builds("--arch", "compute_86", "--out", f"{work / 'three'}/", before=tracer)
    return [path for path in builds.cache.rglob("*.??????") if path.is_file()]


def gzip_of_length(data, length):
    """As gzip writes it; a comment in its header fills it up."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    packed = packer.compress(data) + packer.flush()
    filling = length - 10 - len(packed) - 8
    assert filling > 0, "the new source does not fit in the place of the old one"
    header = b"\x1f\x8b\x08\x10\0\0\0\0\x02\x03" + b"-" * (filling - 1) + b"\0"
    return header + packed + struct.pack("<II", zlib.crc32(data), len(data))


@pytest.fixture
def newer(scankit, build, work):
    """A scankit of which one comment of a header is another: its source is embedded as gzip packs it."""
    text = (REPOSITORY / HEADER).read_text()
    comment = next(line for line in text.splitlines() if re.match("// [A-Z]", line) and "SPDX" not in line).encode()
    embedded = (build / "builder/embed_scankit_device_causal_conv1d.gz").read_bytes()
    source = gzip.decompress(embedded)
    whole = Path(scankit.path).read_bytes()
    assert comment in source and whole.count(embedded) == 1
    changed = source.replace(comment, b"// ".ljust(len(comment), b"x"))
    program = work / "newer"
    program.write_bytes(whole.replace(embedded, gzip_of_length(changed, len(embedded))))
    program.chmod(0o755)
    return scankit.with_(path=program)


def test_changed_header(builds, sm_90, newer, work):
    changed = Builds(newer, work, builds.module)
    changed("--arch", "sm_90").ends(0, f"since the last build {HEADER} changed")
    builds("--arch", "sm_90").ends(0, "are in the cache")
    changed("--arch", "sm_90", "--explain", sm_90).ends(0, f"all images: {HEADER} changed")


def test_explain(builds, sm_90, work):
    """With each kind of OTHER."""
    saved = work / "saved.json"
    saved.write_text(builds("--arch", "sm_90", "--explain", "--json").ends(0).out)
    for other in (saved, sm_90, f"{sm_90}.json"):
        builds("--arch", "sm_90", "--explain", other).ends(0, "everything that this build depends on is the same as in")
    builds("--arch", "sm_90", "--explain").ends(0, f"source {HEADER}: ")
    builds("--arch", "sm_90", "--explain", __file__).ends(2)


def test_bounded(builds, work):
    """Least recently used first, never what the running build needs."""
    small = ["--cache-dir", work / "cache-small"]
    builds("--arch", "sm_90", *small, "--cache-size", "1100K").ends(0)
    builds("--arch", "sm_86", *small, "--cache-size", "1100K").ends(0)
    builds("--arch", "sm_86", *small, "--cache-size", "1100K").ends(0, "are in the cache")
    builds("--arch", "sm_90", *small, "--cache-size", "0").ends(0)
    assert sum(path.lstat().st_blocks for path in (work / "cache-small").rglob("*")) * 512 < 1200 << 10
    builds("--arch", "sm_90", "--cache-size", "1X").ends(2)


def test_damaged(builds, sm_90):
    """Slower, with a note, and right."""
    entry = next(path for path in (builds.cache / "objects").rglob("*") if path.is_file() and path.stat().st_size > 100 << 10)
    with open(entry, "r+b") as file:
        file.seek(5000)
        file.write(b"x")
    builds("--arch", "sm_90,compute_90,compute_86").ends(0, f"the file in the cache was damaged and removed: {entry}")


IN_MOUNT = 'm=$0 o=$1; shift; mount -t tmpfs -o "$o" none "$m" && exec "$@"'
NOT_KEPT = "so the next build will compile again: "


def test_not_writable(builds, sm_90, work):
    """A cache that cannot be made, and one on a full and on a read-only file system."""
    file = work / "file"
    file.touch()
    builds("--arch", "sm_90", "--cache-dir", file / "nowhere").ends(0, f"note: cannot write to the cache {file / 'nowhere'}, {NOT_KEPT}")
    assert (builds.out / builds.file).read_bytes() == sm_90.read_bytes()
    mounted = work / "mounted"
    mounted.mkdir()
    for how in ("size=64k", "ro"):
        before = ["unshare", "-m", "bash", "-c", IN_MOUNT, mounted, how]
        if run_program(*before, "true").status:
            pytest.skip("nothing can be mounted here: no full and no read-only file system is tried")
        builds("--arch", "sm_90", "--cache-dir", mounted / "c", before=before).ends(0, NOT_KEPT)
        assert (builds.out / builds.file).read_bytes() == sm_90.read_bytes()


def test_manifest(builds, sm_90, scankit, work):
    """Of a module, and of what is none."""
    builds.manifest(sm_90).ends(0)
    whole = sm_90.read_bytes()
    (work / "cut.so").write_bytes(whole[:200000])
    builds.manifest(work / "cut.so").ends(2, "contains no manifest:")
    (work / "page.so").write_text("<!DOCTYPE html><p>gone\n")
    builds.manifest(work / "page.so").ends(2, "a web page saved under this name")
    for other in (scankit.path, work / "none.so", work):
        builds.manifest(other).ends(2)
    at = len(whole) * 3 // 4  # in an image: the host module is the first half
    (work / "flipped.so").write_bytes(whole[:at] + b"\xff\xff\xff\xff" + whole[at + 4:])
    builds.manifest(work / "flipped.so").ends(1, "does not match its manifest")
