# SPDX-License-Identifier: Apache-2.0
"""What the tests of locks are written with: a package index on the loopback, and a project with an environment."""
import hashlib
import json
import os
import shutil
from pathlib import Path

import fetch_server
from fixtures import run, site_of
from lock_wheels import make_wheels
from program import run_program

# What a caller's settings could add to the index of the test.
CALLERS = ("PIP_FIND_LINKS", "UV_FIND_LINKS", "PIP_EXTRA_INDEX_URL", "UV_INDEX", "UV_EXTRA_INDEX_URL")


def isolate(work, monkeypatch):
    """A home, caches and a PATH of the test's own."""
    for name in CALLERS:
        monkeypatch.delenv(name, raising=False)
    (work / "home").mkdir()
    for name, value in (("HOME", work / "home"), ("XDG_CACHE_HOME", work / "cache"), ("PIP_CACHE_DIR", work / "cache/pip"),
                        ("UV_CACHE_DIR", work / "cache/uv"), ("PIP_DISABLE_PIP_VERSION_CHECK", "1"), ("PATH", "/usr/bin:/bin")):
        monkeypatch.setenv(name, str(value))


def sha256(path):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def library(output, answer):
    """A shared library whose answer() is that number."""
    run("cc", "-x", "c", "-shared", "-fPIC", "-o", output, "-", stdin=f"int answer(void) {{ return {answer}; }}\n")


def text_of(path):
    return Path(path).read_text()


class Index:
    """The wheels of WORK/served by an index in JSON or in HTML; WORK/own has wheels that it never had."""

    def __init__(self, work, monkeypatch):
        self.served, self.own, self.monkeypatch, self.server = work / "served", work / "own", monkeypatch, None
        library(work / "answer.so", 42)
        make_wheels(work, (work / "answer.so").read_bytes())
        self.alpha = self.served / "alpha-1.0-py3-none-any.whl"
        self.beta = next(self.own.glob("beta-*.whl"))

    def serve(self, html=False):
        """From now on, with the files that are there now."""
        self.server = fetch_server.Server(fetch_server.Folder(self.served))
        self.server.html_only = html
        self.use(self.server.url)

    def use(self, url):
        self.monkeypatch.setenv("PIP_INDEX_URL", f"{url}/simple")
        self.monkeypatch.setenv("UV_DEFAULT_INDEX", f"{url}/simple")

    def stop(self):
        if self.server:
            self.server.shutdown()
            self.server.server_close()
            self.server = None


class Project:
    """The current directory, with an environment whose Python is `python`."""

    def __init__(self, scankit, work, installers, index):
        self.scankit, self.work, self.installers, self.index = scankit, work, installers, index
        self.environments, self.python = [], None

    # Environments --------------------------------------------------------------------------------------------------------

    def new_python(self, name, pip=False):
        """The Python of a new venv WORK/NAME."""
        folder = self.work / name
        run(self.installers / "python", "-m", "venv", *([] if pip else ["--without-pip"]), folder)
        self.environments.append(folder)
        return folder / "bin/python"

    def make_environment(self, name, pip=False):
        self.python = self.new_python(name, pip)

    def remove_environments(self):
        for folder in [*self.environments, self.work / "cache"]:
            shutil.rmtree(folder, ignore_errors=True)

    def install_alpha_and_beta(self):
        self.install("alpha==1.0")
        self.install("--no-index", "--no-deps", self.index.beta)

    @property
    def site(self):
        return site_of(self.python)

    def uv(self, *words, **how):
        return run_program(self.installers / "uv", "-q", "--no-progress", *words, **how)

    def install(self, *words):
        self.uv("pip", "install", "--python", self.python, *words).ends(0)

    def pip(self, *words):
        """The environment's own."""
        return run_program(self.python, "-m", "pip", *words, timeout=300).ends(0)

    def uninstall(self, *names):
        self.uv("pip", "uninstall", "--python", self.python, *names).ends(0)

    # scankit env ---------------------------------------------------------------------------------------------------------

    def env(self, *words, **how):
        """`scankit env WORDS`"""
        return self.scankit("env", *words, **how)

    def lock(self, *words, uv_on_path=True, timeout=300):
        path = f"{self.installers}:{os.environ['PATH']}" if uv_on_path else os.environ["PATH"]
        return self.env("lock", "--python", self.python, *words, variables={"PATH": path}, timeout=timeout)

    def drift(self, *words):
        """`env check` of the lock: of this environment, or of what the words name."""
        return self.env("check", "--lock", "scankit.lock", *(words or ["--python", self.python]))

    def drifts(self, status, causes, *words):
        """The check ends with that status, and finds exactly these causes."""
        result = self.drift("--json", *(words or ["--python", self.python])).ends(status)
        found = {finding["cause"] for finding in result.json["findings"]}
        assert found == set(causes.split()), f"found: {sorted(found)}: {result!r}"
        return result

    def export(self, form, out, *words):
        return self.env("export", form, "--python", self.python, "--out", out, *words)

    # What the lock says --------------------------------------------------------------------------------------------------

    @property
    def locked(self):
        return json.loads(text_of("scankit.lock"))

    def distribution(self, name):
        return next(one for one in self.locked["distributions"] if one["name"] == name)

    def artifact(self, name):
        """The SHA-256 of the file that it can be installed from."""
        return next(one["artifact"]["sha256"] for one in self.locked["distributions"] if one["name"] == name and one["artifact"])

    # Three ways to rebuild it from an export -----------------------------------------------------------------------------

    def rebuild(self, way, python):
        if way == "pip":
            return run_program(self.installers / "python", "-m", "pip", "--python", python, "install", "-q", "--no-deps",
                               "--require-hashes", "-r", "requirements.txt", timeout=900)
        if way == "uv":
            return self.uv("pip", "install", "--python", python, "--no-deps", "--require-hashes", "-r", "requirements.txt", timeout=900)
        return self.uv("pip", "sync", "--preview", "--python", python, "pylock.toml", timeout=900)
