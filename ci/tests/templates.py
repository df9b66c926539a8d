# SPDX-License-Identifier: Apache-2.0
"""templates.py wheel SCANKIT FOLDER | broken FOLDER | github|gitlab|jenkins|action FILE PROJECT | npd FOLDER: runs what the templates hold.

RUNNER: a folder for the runner's Python; TORCH: a folder to put on its path; PAGE: the file of the job summary.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

import yaml


def wheel(scankit, folder):
    """The program that was just built, as pip would get it: ci/release/wheel.sh builds the real one, which takes minutes."""
    version = subprocess.check_output([scankit, "--version"], text=True).split()[1]
    stem = f"scankit-{version}"
    with zipfile.ZipFile(pathlib.Path(folder) / f"{stem}-py3-none-any.whl", "w") as file:
        file.write(scankit, f"{stem}.data/scripts/scankit")
        file.writestr(f"{stem}.dist-info/METADATA", f"Metadata-Version: 2.1\nName: scankit\nVersion: {version}\n")
        file.writestr(f"{stem}.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        names = [*file.namelist(), f"{stem}.dist-info/RECORD"]
        file.writestr(f"{stem}.dist-info/RECORD", "".join(f"{name},,\n" for name in names))


def broken(folder):
    """A package with a module that no loader takes: what an environment is known by, and why its gate is red."""
    with zipfile.ZipFile(pathlib.Path(folder) / "broken-1.0-py3-none-any.whl", "w") as file:
        file.writestr("selective_scan_cuda.abi3.so", "<html>404</html>")
        file.writestr("broken-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
        file.writestr("broken-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        names = [*file.namelist(), "broken-1.0.dist-info/RECORD"]
        file.writestr("broken-1.0.dist-info/RECORD", "".join(f"{name},,\n" for name in names))


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


def python_on_path():
    """What actions/setup-python leaves: a python of its own, first on PATH."""
    new = pathlib.Path(os.environ["RUNNER"]) / "new"  # made once, since pip takes seconds to be installed
    folder = pathlib.Path(os.environ["RUNNER"]) / "python"
    if not new.exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        shutil.copytree(folder, new, symlinks=True)
    shutil.rmtree(folder)
    shutil.copytree(new, folder, symlinks=True)
    if "TORCH" in os.environ:
        (site,) = folder.glob("lib/python3*/site-packages")
        (site / "torch.pth").write_text(os.environ["TORCH"] + "\n")
    return {"PATH": f"{folder}/bin:{os.environ['PATH']}"}


def github(file, project):
    workflow = yaml.safe_load(pathlib.Path(file).read_text())
    (job,) = workflow["jobs"].values()
    uploads = [step for step in job["steps"] if "upload-sarif" in step.get("uses", "")]
    assert len(uploads) == 1 and uploads[0]["if"].startswith("always()"), uploads
    assert workflow["permissions"]["security-events"] == "write", workflow["permissions"]
    sarif = uploads[0]["with"]["sarif_file"]
    steps = [step for step in job["steps"] if "run" in step]
    assert all(step["shell"] == "bash" and "${{" not in step["run"] for step in steps), steps
    with tempfile.TemporaryDirectory() as temporary:
        handed_on = pathlib.Path(temporary) / "env"
        handed_on.touch()
        environment = {"GITHUB_ACTIONS": "true", "GITHUB_ENV": str(handed_on), "RUNNER_TEMP": temporary, "TMPDIR": temporary,
                       "GITHUB_STEP_SUMMARY": os.environ.get("PAGE", f"{temporary}/page"),
                       **python_on_path(), **job["env"]}
        try:
            for step in steps:
                environment.update(line.split("=", 1) for line in handed_on.read_text().splitlines())
                shell(step["run"], environment, project)
        finally:
            print("SARIF to upload:", (pathlib.Path(project) / sarif).exists())


def gitlab(file, project):
    job = yaml.safe_load(pathlib.Path(file).read_text())["scankit"]
    with tempfile.TemporaryDirectory() as temporary:
        shell("\n".join(job["script"]) + "\n",
              {"TMPDIR": temporary, **python_on_path(), **job["variables"]}, project)


def groovy(text):
    """The syntax tree; a file that is no Groovy is an error, as it is in Jenkins."""
    import tree_sitter
    import tree_sitter_groovy
    tree = tree_sitter.Parser(tree_sitter.Language(tree_sitter_groovy.language())).parse(text.encode())
    assert not tree.root_node.has_error, "it is not Groovy"
    return tree.root_node


def nodes(node, kind):
    found = [node] if node.type == kind else []
    return found + [one for child in node.children for one in nodes(child, kind)]


def literal(node):
    """What a string in single quotes means."""
    text = node.text.decode()
    quote = "'''" if text.startswith("'''") else "'"
    assert text.startswith(quote), f"{text[:40]} would expand variables of Groovy"
    return re.sub(r"\\(.)", lambda escape: {"n": "\n", "t": "\t"}.get(escape[1], escape[1]), text[len(quote):-len(quote)], flags=re.S)


def jenkins(file, project):
    tree = groovy(pathlib.Path(file).read_text())
    calls = [node.child(0).text.decode() for node in nodes(tree, "method_invocation")]
    assert calls[0] == "pipeline" and {"agent", "options", "environment", "stages", "stage", "steps", "post", "always"} <= set(calls), calls
    variables = {node.child(0).text.decode(): literal(node.child(2)) for node in nodes(tree, "assignment_expression")}
    (script,) = [literal(node) for node in nodes(tree, "string_literal")]
    # Jenkins runs what begins with #! by that program.
    assert script.startswith("#!/usr/bin/env bash\n"), script[:40]
    templates = pathlib.Path(__file__).resolve().parent.parent / "templates"
    for part in ("install-environment.sh", "fetch-scankit.sh"):
        lines = [line.strip() for line in (templates / part).read_text().splitlines() if not line.startswith("#")]
        assert not set(lines) - {line.strip() for line in script.splitlines()}, f"Groovy reads {part} as something else"
    with tempfile.TemporaryDirectory() as temporary:
        # As the user of a container: no home directory, and what an earlier build left in the workspace.
        stale = pathlib.Path(project) / "scankit-results/stale"
        stale.parent.mkdir(exist_ok=True)
        stale.touch()
        try:
            shell(script, {"TMPDIR": temporary, **python_on_path(), **variables, "HOME": "/nonexistent"}, project)
        finally:
            assert not stale.exists(), "results of an earlier build would be published"


def action(file, project):
    document = yaml.safe_load(pathlib.Path(file).read_text())
    inputs = {name: os.environ.get("INPUT_" + name.upper(), given["default"]) for name, given in document["inputs"].items()}

    def filled(text):
        return re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda match: inputs[match[1]], text)

    with tempfile.TemporaryDirectory() as temporary:
        handed_on = pathlib.Path(temporary) / "env"
        handed_on.touch()
        common = {"TMPDIR": temporary, "GITHUB_ENV": str(handed_on), **python_on_path(), "GITHUB_ACTION_PATH": str(pathlib.Path(file).resolve().parent)}
        for step in document["runs"]["steps"]:
            # An input inside of `run` would be code of whoever sets it.
            assert "${{" not in step["run"], step["run"]
            common.update(line.split("=", 1) for line in handed_on.read_text().splitlines())
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
    {"wheel": wheel, "broken": broken, "github": github, "gitlab": gitlab, "jenkins": jenkins, "action": action, "npd": npd}[sys.argv[1]](*sys.argv[2:])
except subprocess.CalledProcessError as failed:
    sys.exit(f"{failed.cmd} ended with status {failed.returncode}")
