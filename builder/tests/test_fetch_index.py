# SPDX-License-Identifier: Apache-2.0
"""A build where there is neither pip nor uv: NVRTC's real wheel from a package index on the loopback."""
import os
import re
import shutil
from pathlib import Path

import pytest

import fetch_server
from fixtures import run, shell_or_skip
from program import run_program

pytestmark = pytest.mark.ctest(group="builder.fetch_index", labels="matrix;e2e", timeout=600)


@pytest.fixture
def wheel(work):
    """The wheel of NVRTC 13.0, in WORK/served."""
    packages = shell_or_skip("fx_packages", "nvidia-cuda-nvrtc==13.0.88")
    [wheel] = Path(packages).glob("nvidia_cuda_nvrtc-13.0.88-*.whl")
    (work / "served").mkdir()
    try:
        os.link(wheel, work / "served" / wheel.name)
    except OSError:
        shutil.copy(wheel, work / "served")
    return wheel.name


@pytest.fixture
def serve():
    """serve(FOLDER, html=False): the URL of an index of the folder's wheels."""
    servers = []

    def serve(folder, html=False):
        servers.append(fetch_server.Server(fetch_server.Folder(folder)))
        servers[-1].html_only = html
        return f"{servers[-1].url}/simple"
    yield serve
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def build_there(scankit, work):
    """Builds on a machine of its own: no pip, no uv, no Python on PATH, no configuration but what the test writes. sm_88 is what
    NVRTC 12.9 does not make, so that the wheel is the one that is served."""
    for name in ("pip", "uv"):
        (work / "home/.config" / name).mkdir(parents=True)

    def build_there(*variables, before=()):
        there = ["env", "-i", f"HOME={work / 'home'}", "PATH=/nonexistent", *variables]
        return run_program(*before, *there, scankit.path, "build", "--toolchain", "nvrtc-wheel", "--allow-download", "--module",
                           "causal_conv1d_cuda", "--arch", "sm_88", "--cache-dir", work / "cache", "--out", f"{work / 'out.so'}/",
                           timeout=400)
    yield build_there
    shutil.rmtree(work / "cache", ignore_errors=True)


def nothing_half(work):
    folder = work / "cache/toolchains"
    assert not folder.exists() or not os.listdir(folder), os.listdir(folder)


def test_refused(build_there, serve, wheel, work):
    result = build_there().ends(5, "neither pip nor uv is installed, and no package index is configured")
    result.ends(5, "PIP_INDEX_URL")
    result = build_there("PIP_INDEX_URL=http://index.invalid/simple")
    result.ends(5, "http://index.invalid/simple/nvidia-cuda-nvrtc/: only https is supported").ends(5, "PIP_INDEX_URL")
    (work / "other").mkdir()
    (work / "other" / wheel).write_text("not a wheel")
    index = serve(work / "other")
    build_there(f"PIP_INDEX_URL={index}").ends(5, "the index has nvidia-cuda-nvrtc==13.0.88 with another sha256")
    none = index.removesuffix("/simple") + "/none"
    build_there(f"PIP_INDEX_URL={none}").ends(5, "/none/nvidia-cuda-nvrtc/: not found (status 404)")
    nothing_half(work)


def configured_for_pip(serve, work):
    settings = work / "home/.config/pip/pip.conf"
    settings.write_text(f"[global]\nindex-url = {serve(work / 'served')}/\n")
    return settings


def test_index_of_pip_conf(build_there, serve, wheel, work):
    """In JSON."""
    settings = configured_for_pip(serve, work)
    result = build_there().ends(0, f"querying the index of {settings} for nvidia-cuda-nvrtc")
    result.ends(0, f"fetching {wheel} (90 MB)").ends(0, "sm_88")
    assert not os.listdir(work / "cache/downloads")
    result = build_there().ends(0)
    assert "querying" not in result.err and "asking" not in result.err, f"a second build fetches again: {result!r}"


def test_index_of_uv_toml(build_there, serve, wheel, work):
    """In HTML."""
    settings = work / "home/.config/uv/uv.toml"
    settings.write_text(f'[[index]]\nurl = "{serve(work / "served", html=True)}"\ndefault = true\n')
    build_there().ends(0, f"querying the index of {settings}")


WITHOUT_LIBCURL = """
folder=$1 layer=$2 && shift 2 && mkdir -p "$layer" && mount -t tmpfs none "$layer" && mkdir "$layer/new" "$layer/work" &&
mount -t overlay overlay -o "lowerdir=$folder,upperdir=$layer/new,workdir=$layer/work" "$folder" &&
rm "$folder"/libcurl*.so.4* && exec "$@"
"""


def test_without_libcurl(build_there, serve, wheel, work):
    """In a mount namespace of its own, where an overlay of the library's directory lacks it."""
    configured_for_pip(serve, work)
    library = re.search(r"(?m)libcurl\.so\.4 .*=> (.*)", run("/sbin/ldconfig", "-p"))
    folder = library and os.path.dirname(os.path.realpath(library[1]))
    before = library and ["unshare", "-m", "bash", "-c", WITHOUT_LIBCURL, "-", folder, work / "layer"]
    if not before or run_program(*before, "true").status:
        pytest.skip("no library can be taken away here")
    result = build_there(before=before).ends(5, "libcurl.so.4 was not found, and no other")
    result.ends(5, "install it (Debian: libcurl4, others: libcurl), or install pip or uv, which do not need it")
    nothing_half(work)
