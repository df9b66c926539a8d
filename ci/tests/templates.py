# SPDX-License-Identifier: Apache-2.0
"""templates.py wheel SCANKIT FOLDER | github|gitlab|action FILE PROJECT | npd FOLDER: runs what the templates hold."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

import yaml


def wheel(scankit, folder):
    """The program that was just built, as pip would get it: ci/wheel.sh builds the real one, which takes minutes."""
    version = subprocess.check_output([scankit, "--version"], text=True).split()[1]
    stem = f"scankit-{version}"
    with zipfile.ZipFile(pathlib.Path(folder) / f"{stem}-py3-none-any.whl", "w") as file:
        file.write(scankit, f"{stem}.data/scripts/scankit")
        file.writestr(f"{stem}.dist-info/METADATA", f"Metadata-Version: 2.1\nName: scankit\nVersion: {version}\n")
        file.writestr(f"{stem}.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        names = [*file.namelist(), f"{stem}.dist-info/RECORD"]
        file.writestr(f"{stem}.dist-info/RECORD", "".join(f"{name},,\n" for name in names))


def shell(text, environment, project):
    # https://docs.github.com: `shell: bash` is `bash --noprofile --norc -eo pipefail {0}`.
    with tempfile.NamedTemporaryFile("w", suffix=".sh") as script:
        script.write(text)
        script.flush()
        subprocess.run(["shellcheck", "--shell=bash", script.name], check=True) if found("shellcheck") else None
        subprocess.run(["bash", "--noprofile", "--norc", "-eo", "pipefail", script.name], check=True, cwd=project,
                       env={**os.environ, **environment})


def found(program):
    return any(os.access(os.path.join(folder, program), os.X_OK) for folder in os.environ["PATH"].split(":"))


def python_on_path(folder):
    """What actions/setup-python leaves: a python of its own, first on PATH."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    return {"PATH": f"{folder}/bin:{os.environ['PATH']}"}


def github(file, project):
    workflow = yaml.safe_load(pathlib.Path(file).read_text())
    (job,) = workflow["jobs"].values()
    steps = [step for step in job["steps"] if "run" in step]
    assert len(steps) == 3 and all(step["shell"] == "bash" for step in steps), steps
    with tempfile.TemporaryDirectory() as temporary:
        environment = {"RUNNER_TEMP": temporary, **python_on_path(f"{temporary}/python"), **job["env"]}
        for step in steps:
            shell(step["run"], environment, project)


def gitlab(file, project):
    job = yaml.safe_load(pathlib.Path(file).read_text())["scankit"]
    with tempfile.TemporaryDirectory() as temporary:
        shell("\n".join(job["script"]) + "\n", {**python_on_path(f"{temporary}/python"), **job["variables"]}, project)


def action(file, project):
    document = yaml.safe_load(pathlib.Path(file).read_text())
    inputs = {name: os.environ.get("INPUT_" + name.upper(), given["default"]) for name, given in document["inputs"].items()}

    def filled(text):
        return re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda match: inputs[match[1]], text)

    with tempfile.TemporaryDirectory() as temporary:
        common = {"RUNNER_TEMP": temporary, "GITHUB_ACTION_PATH": str(pathlib.Path(file).resolve().parent)}
        for step in document["runs"]["steps"]:
            # An input inside of `run` would be code of whoever sets it.
            assert "${{" not in step["run"], step["run"]
            shell(step["run"], {**common, **{name: filled(text) for name, text in step["env"].items()}}, project)


def npd(folder):
    config = json.loads((pathlib.Path(folder) / "scankit-npd.json").read_text())
    assert config["plugin"] == "custom"
    (rule,), (condition,) = config["rules"], config["conditions"]
    assert rule["condition"] == condition["type"] and rule["reason"] != condition["reason"]
    script = pathlib.Path(folder) / pathlib.Path(rule["path"]).name
    assert os.access(script, os.X_OK), script
    budget = int(re.search(r"SCANKIT_BUDGET:-(\d+)s", script.read_text())[1])
    assert budget < int(rule["timeout"].rstrip("s")) <= int(config["pluginConfig"]["timeout"].rstrip("s"))


try:
    {"wheel": wheel, "github": github, "gitlab": gitlab, "action": action, "npd": npd}[sys.argv[1]](*sys.argv[2:])
except subprocess.CalledProcessError as failed:
    sys.exit(f"{failed.cmd} ended with status {failed.returncode}")
