# SPDX-License-Identifier: Apache-2.0
"""A package's Python as its authors published it: its source archive, fetched once by pip, never committed."""
import glob
import importlib.util
import os
import subprocess
import sys
import tarfile
import types


def skip(reason):
    print("SKIPPED:", reason)
    sys.exit(77)


def archive(distribution, release):
    cache = os.environ.get("SCANKIT_CACHE") or os.path.expanduser("~/.cache/scankit-dev")
    folder = os.path.join(cache, "sdists")
    pattern = os.path.join(folder, f"{distribution.replace('-', '?')}-{release}.tar.gz")
    if not glob.glob(pattern):
        command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", "download", "--no-deps",
                   "--no-binary", ":all:", "--no-build-isolation", "-d", folder, f"{distribution}=={release}"]
        prefix = {"mamba-ssm": "MAMBA"}.get(distribution, distribution.replace("-", "_").upper())
        switches = {f"{prefix}_SKIP_CUDA_BUILD": "TRUE", f"{prefix}_FORCE_BUILD": "TRUE"}
        run = subprocess.run(command, env={**os.environ, **switches}, capture_output=True, text=True, timeout=240)
        if run.returncode != 0:
            skip(f"pip could not fetch the source archive of {distribution}: " + run.stderr.strip()[-300:])
    return glob.glob(pattern)[0]


def unpacked(distribution, release, package):
    """The folder of `package` in the unpacked archive."""
    path = archive(distribution, release)
    into = path[: -len(".tar.gz")] + ".unpacked"
    if not os.path.isdir(into):
        scratch = f"{into}.{os.getpid()}"
        with tarfile.open(path) as tar:
            tar.extractall(scratch, [m for m in tar.getmembers() if m.isreg() and ".." not in m.name])
        try:
            os.rename(scratch, into)
        except OSError:  # another test run was faster
            pass
    return glob.glob(os.path.join(into, "*", package))[0]


def bare_package(distribution, release, package):
    """Makes `import package.module` read that release, without its __init__, which imports more than is tested."""
    for name in [name for name in sys.modules if name == package or name.startswith(package + ".")]:
        del sys.modules[name]
    module = types.ModuleType(package)
    module.__path__ = [unpacked(distribution, release, package)]
    sys.modules[package] = module


def require(module, *requirements):
    """Makes `module` importable, from a folder of the cache where the environment has none of its own."""
    if importlib.util.find_spec(module):
        return
    cache = os.environ.get("SCANKIT_CACHE") or os.path.expanduser("~/.cache/scankit-dev")
    folder = os.path.join(cache, "python-extras", "-".join(requirements))
    if not os.path.isdir(folder):
        scratch = f"{folder}.{os.getpid()}"
        command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", "install", "--no-deps", "--target",
                   scratch, *requirements]
        run = subprocess.run(command, capture_output=True, text=True, timeout=240)
        if run.returncode != 0:
            skip(f"pip could not fetch {module}: " + run.stderr.strip()[-300:])
        try:
            os.rename(scratch, folder)
        except OSError:  # another test run was faster
            pass
    sys.path.append(folder)
