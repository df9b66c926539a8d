# SPDX-License-Identifier: Apache-2.0
"""make.py BUILD [NAME...]: makes the golden files of the present format versions again, by real runs of BUILD/scankit.

It is for a new format or a new version of one: a golden file of a release that users have is never written again, because its
age is what it is for. All runs are in one fixed directory, so that no path of the maker's machine gets into a file. It needs
pytest, the installers and the Python with torch that the end-to-end tests use; `fleet-roster` needs Slurm and root.
"""
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[2]
sys.path[:0] = [str(REPOSITORY / folder) for folder in ("doctor/tests/e2e", "builder/tests", "envspec/tests")]

import pytest  # noqa: E402
from creating import PYTHON  # noqa: E402
from fixtures import python_with_torch, run, shell, site_of  # noqa: E402
from lock_wheels import wheel  # noqa: E402
from program import Scankit  # noqa: E402
from project import Index, Project, isolate  # noqa: E402

WORK = Path("/tmp/scankit-formats")
PAGE = "<!DOCTYPE html><html>not found</html>\n"
ONE_CASE = ["--device", "cpu", "--case", "q011-fp32-b2-d6-l31-n3-g3-D", "--seed", "5"]


def sealed(text):
    """A node's line ends with the hash of what is before it (ci/fleet/node_result.cc)."""
    body = text[:text.rindex(',"sha256":"')]
    return f'{body},"sha256":"{hashlib.sha256(body.encode()).hexdigest()}"}}\n'


class Makers:
    """One method a format, in an order in which each has what it needs. Each returns the text of its file."""

    def __init__(self, build):
        self.build, self.patch = build, pytest.MonkeyPatch()
        installers, self.torch = Path(shell("fx_installers")) / "bin", python_with_torch()
        shutil.rmtree(WORK, ignore_errors=True)
        (WORK / "project").mkdir(parents=True)
        isolate(WORK, self.patch)
        self.patch.chdir(WORK / "project")
        self.scankit = Scankit(build / "scankit")
        self.project = Project(self.scankit, WORK, installers, Index(WORK, self.patch))
        self.project.index.serve()
        self.project.make_environment("env")
        self.project.install_alpha_and_beta()
        self.python = self.project.python
        self.path = {"PATH": f"{installers}:/usr/bin:/bin", "SHELL": "/bin/bash"}

    def said(self, status, *words, **how):
        return self.scankit(*words, timeout=1200, **how).ends(status).out

    def neutral(self, text):
        """Without the paths of the machine on which it is made."""
        for path, name in ((REPOSITORY, "/src/scankit"), (self.torch.parents[1], "/opt/torch-env"), (Path(PYTHON).parents[1], "/opt/python")):
            text = text.replace(str(path), name)
        return text

    # An environment without torch ---------------------------------------------------------------------------------------

    def spec(self):
        """As `env init` writes it, and edited as a user does."""
        self.said(0, "env", "init", "--python", self.python)
        text = Path("scankit.yaml").read_text()
        edited = text.replace("# torch:\n#   version:", "torch:\n  version:")
        assert edited != text
        return edited

    def lock(self):
        self.project.lock().ends(0)
        return Path("scankit.lock").read_text()

    def record(self):
        self.project.export("requirements", "requirements.txt").ends(0)  # packs the wheel that no index has
        self.answer = self.said(0, "env", "create", "new", "--python", PYTHON, "--json", variables=self.path)
        return Path("new/.scankit/record.json").read_text()

    def env_create(self):
        return self.answer

    def env_check(self):
        self.project.uninstall("alpha")
        return self.said(7, "env", "check", "--lock", "scankit.lock", "--json", "--python", self.python, "--redact")

    def env_diff(self):
        return self.said(7, "env", "diff", "scankit.lock", self.python, "--json", "--redact")

    def env_history(self):
        """alpha was removed, which nothing records, and a package was installed."""
        wheel(self.project.index.served, "tool", "1.1", "py3-none-any", {"tool.py": b"\n"})
        self.project.index.stop()
        self.project.index.serve()
        self.project.install("tool==1.1")
        return self.said(7, "env", "check", "--since", "scankit.lock", "--python", self.python, "--json")

    def env_suggest(self):
        return self.said(0, "env", "suggest", "--gpu", "sm_90", "--driver", "550.54", "--glibc", "2.28", "--python", "3.11", "--offline",
                         "--json")

    def policy(self):
        """As `ci init` writes it, with what a user adds."""
        self.said(0, "ci", "init", "policy")
        text = Path("scankit-ci.yaml").read_text() + "\nallow_empty: true\ncauses:\n  corrupt_binary: {severity: warning}\n"
        Path("scankit-ci.yaml").unlink()
        return text

    def module(self):
        """As a maintainer writes it; scankit only reads it."""
        return (HERE / "1/module.yaml").read_text()

    def snapshot(self):
        """What a failed download leaves in the place of the module."""
        (site_of(self.python) / "selective_scan_cuda.abi3.so").write_text(PAGE)
        text = self.said(0, "snapshot", "--redact", "--python", self.python)
        (WORK / "snapshot.json").write_text(text)
        return text

    def doctor(self):
        return self.said(1, "doctor", "--from", WORK / "snapshot.json", "--json")

    def doctors(self):
        return self.said(1, "doctor", "--from", "../snapshot.json", "--from", "../snapshot.json", "--json")

    def ci_run(self):
        Path("scankit.yaml").unlink(), Path("scankit.lock").unlink()
        return self.said(1, "ci", "run", "--python", self.python, "--out", "kept", "--json")

    def step(self):
        return Path("kept/doctor.step.json").read_text()

    def matrix(self):
        return self.said(1, "doctor", "--so", site_of(self.python) / "selective_scan_cuda.abi3.so", "--torch", "2.11", "--json")

    def selftest(self):
        return self.said(0, "selftest", "--json")

    def version(self):
        return self.said(0, "--version", "--json")

    def commands(self):
        return self.said(0, "man", "--json")

    # Fleets -------------------------------------------------------------------------------------------------------------

    def fleet_node(self):
        self.fleet_roster()
        return Path("fleet/node1.json").read_text()

    def fleet_roster(self):
        """A real Slurm of two nodes on this machine."""
        if not Path("fleet/fleet.json").exists():
            script = ('. "$0"; mkdir -p "$1"; trap slurm_down EXIT; slurm_up "$1" 2; "$2" fleet run --slurm --out fleet -N2 -- '
                      'doctor --redact --no-import --python "$3" || [ $? = 1 ]')
            run("bash", "-euo", "pipefail", "-c", script, REPOSITORY / "ci/fleet/tests/slurm.sh", WORK / "slurm", self.scankit.path, self.python,
                variables={"PATH": "/usr/sbin:/usr/bin:/bin"})
        return Path("fleet/fleet.json").read_text()

    def fleet_report(self):
        return self.said(1, "fleet", "report", "fleet", "--json")

    repair = ["--module", "causal_conv1d_cuda", "--arch", "sm_90"]

    # With torch ---------------------------------------------------------------------------------------------------------

    def manifest(self):
        self.said(0, "build", "--python", self.torch, "--module", "causal_conv1d_cuda", "--arch", "sm_90", "--out", "built/")
        [file] = Path("built").glob("*.json")
        return file.read_text()

    def fix(self):
        """A web page is there in place of the module, and a .pth file lends the environment torch."""
        site = site_of(self.python)
        (site / "selective_scan_cuda.abi3.so").unlink()
        (site / "torch.pth").write_text(f"{site_of(self.torch)}\n")
        (site / "causal_conv1d_cuda.abi3.so").write_text(PAGE)
        return self.said(0, "fix", *self.repair, "--python", self.python, "--dry-run", "--json")

    def journal(self):
        self.said(0, "fix", *self.repair, "--python", self.python, "--yes")
        [file] = (WORK / "env/.scankit/journal").glob("*.json")
        return file.read_text()

    def validate(self):
        module = self.build / "modules/selective_scan_cuda.abi3.so"
        os.symlink(module, WORK / "selective_scan_cuda.abi3.so")
        return self.said(0, "validate", "--python", self.torch, "--module", WORK / "selective_scan_cuda.abi3.so", "--against",
                         WORK / "selective_scan_cuda.abi3.so", *ONE_CASE, "--json")


def main(build, *names):
    makers = Makers(Path(build).resolve())
    try:
        for name, maker in list(vars(Makers).items()):
            if name.startswith("_") or name in ("said", "neutral", "repair"):
                continue
            text, name = maker(makers), name.replace("_", "-")
            if names and name not in names:
                continue
            file = HERE / "1" / (name + (".yaml" if name in ("spec", "policy", "module") else ".json"))
            text = makers.neutral(text)
            file.write_text(sealed(text) if name == "fleet-node" else text)
            print(f"{file.relative_to(HERE)}: {len(text)} bytes", flush=True)
    finally:
        makers.project.index.stop()
        shutil.rmtree(WORK, ignore_errors=True)
        makers.patch.undo()


if __name__ == "__main__":
    main(*sys.argv[1:])
