# SPDX-License-Identifier: Apache-2.0
"""A project whose environment a real conda has made, from a channel on the loopback, and `scankit env create` by that conda."""
import functools
import http.server
import os
import threading
from pathlib import Path

import pytest

from conda_packages import make_channel
from fixtures import host_python, run
from program import run_program

CONDAS = ("CONDA_EXE", "MAMBA_EXE", "CONDA_PREFIX", "CONDA_DEFAULT_ENV", "CONDARC", "MAMBA_ROOT_PREFIX")


class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def serve(folder):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


class CondaProject:
    def __init__(self, project, program, work, monkeypatch):
        scheme = run(host_python(), "-c", "import sysconfig; print(sysconfig.get_default_scheme(), end='')")
        if scheme != "posix_prefix":
            pytest.skip(f"Debian's Python would install by its scheme {scheme} from a conda package too")
        self.project, self.program, self.work = project, program, work
        self.channel = make_channel(work / "channel", host_python(), (work / "answer.so").read_bytes())
        self.channel_server = serve(work / "channel")
        self.url = f"http://127.0.0.1:{self.channel_server.server_address[1]}"
        for name in CONDAS:
            monkeypatch.delenv(name, raising=False)
        for name, value in (("CONDA_EXE", program), ("CONDA_PKGS_DIRS", work / "pkgs"), ("CONDA_OVERRIDE_CUDA", ""), ("SHELL", "/bin/bash")):
            monkeypatch.setenv(name, str(value))
        self.settings(f"channels: ['{self.url}']")
        self.prefix = work / "conda"
        self.run("create", "--prefix", self.prefix, "python", "pip", "zeta=1.0", "native").ends(0)
        project.python = self.prefix / "bin/python"
        project.environments += [self.prefix, work / "channel"]
        project.install_alpha_and_beta()
        project.lock().ends(0)
        project.export("requirements", "requirements.txt", "--partial").ends(0)  # packs beta, which no index has

    def settings(self, *lines):
        """The user's own ones."""
        Path(os.environ["HOME"], ".condarc").write_text("".join(f"{line}\n" for line in (*lines, "number_channel_notices: 0")))

    def run(self, command, *words):
        return run_program(self.program, command, "--yes", "--quiet", *words, timeout=300)

    def create(self, folder, *words, seconds=300, **how):
        return self.project.env("create", folder, *words, timeout=seconds, **how)
