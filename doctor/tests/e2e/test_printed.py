# SPDX-License-Identifier: Apache-2.0
"""The last line of the doctor's report, run as it is printed (`scankit fix` gets --yes, since nobody is there to answer) in
the environment that it was printed for: the fault's own failing command must work then, and the doctor must no longer find
that cause. Each result is a row in WORK/printed; test_table prints them all. Hours for all faults: some reinstall
torch."""
import json
import os
import re
import subprocess

import pytest

from fault import load_faults
from fixtures import CACHE, SkipTest, shell

FAULTS = load_faults()

# The faults that no command of this user repairs on this machine: who has to do what, and a pattern of the sentence that must
# say so. Strict: one of these for which the report prints a command is an error too.
NOBODY = {
    "torch_not_imported_first": ("nothing is broken: the author of the program imports torch first", "import torch"),
    "pybind_internals": ("who built the two modules builds them with one pybind11", "pybind11"),
    "sources_no_python_headers": ("root installs the headers of this Python", "install|headers"),
    "sources_ask_for_a_gpu": ("other hardware: the setup.py of these sources runs where a GPU is", "where the GPU is"),
    "sources_of_an_old_torch": ("the author of the sources: they use a torch interface that is gone", "release of these sources"),
    "system_library_missing": ("root installs the package of the system that contains it", "install the package that contains libGL"),
    "package_of_operators": ("the maker of the package: it has neither sources nor a release here", "install a release of"),
}


def last_words(text):
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].replace("\t", " ")[:160] if lines else ""


def statement_that_must_work(name, statement):
    if name == "sources_archive_without_csrc":
        # An archive without its sources cannot be built by anything: what it was unpacked for must import.
        return 'import sys; sys.path.remove(""); from mamba_ssm import Mamba'
    if name == "sources_isolated_pip":
        # pip's own isolation is what is wrong: the printed command is the build itself, and what it made must import.
        return "import torch, scan_cuda"
    return statement


def installer_variables(name):
    """The index is the user's; what the fixtures hold is taken from there."""
    variables = {"PIP_FIND_LINKS": f"{shell('fx_wheels')} {CACHE}/packages {os.environ.get('PIP_FIND_LINKS', '')}",
                 "PYTHONDONTWRITEBYTECODE": "1"}
    # torch's CUDA libraries come from the toolkit of this machine, as in the shared environment, or are there already.
    if name.startswith(("torch_incomplete_", "compound_torch_")) or name == "sources_without_torch":
        variables["PIP_NO_DEPS"] = "1"
    if name == "sources_without_torch":
        variables["PIP_NO_INDEX"] = "1"
    return variables


def run_printed(planted, scankit, work, command, statement, options):
    """Runs the printed command in a shell; a line that sets a variable holds for the shell that ran it, so the statement and
    the doctor come behind it there. Returns the statuses of the command and of the statement, and what both said."""
    how = {**os.environ, **planted.fault.variables, "python": str(planted.environment.python), "PROOF": statement,
           "work": str(work), "STARTS_IN": str(planted.starts_in), "scankit": str(scankit.path)}
    again, shell_file = work / "again.sh", work / "shell.sh"
    again.write_text(f"""\
cd "$STARTS_IN" || exit 1
timeout 300 "$python" -c "$PROOF" >"$work/again.txt" 2>&1
echo $? >"$work/again.status"
"$scankit" doctor --python "$python" --json {' '.join(options)} >"$work/after.json" 2>"$work/after.err"
""")
    line = command + (" --yes" if " fix " in command else "")
    behind = f". '{again}'\n" if re.match(r"(export|unset) ", command) else ""
    shell_file.write_text(f'cd "$STARTS_IN" || exit 1\n{line}\necho $? >"$work/command.status"\n{behind}')
    with open(work / "command.txt", "w") as said:
        subprocess.run(["timeout", "1500", "bash", shell_file], env=how, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT)
    if not (work / "again.status").exists():
        subprocess.run(["bash", again], env=how, stdin=subprocess.DEVNULL)
    status = (work / "command.status").read_text().strip() if (work / "command.status").exists() else "none"
    return status, (work / "again.status").read_text().strip()


@pytest.mark.ctest(labels="matrix;large", timeout=1800, fixtures="torch_env;modules")
@pytest.mark.parametrize("name", FAULTS)
def test_printed(name, fault, scankit, work, monkeypatch):
    row = work.parent / f"{name}.row"
    row.write_text(f"{name}\t-\t-\tinvalid\tthe test ended before the command was run\n")

    def result(word, reason=""):
        """The end of this fault, which the table reads."""
        row.write_text("\t".join((name, cause, command or "-", word, reason)) + "\n")
        print(row.read_text())
        assert word in ("worked", "nobody"), reason

    try:
        planted = fault(name, FAULTS[name].files_printed)
        wanted, python = planted.fault, planted.environment.python
        if planted.helps_itself():
            pytest.skip(wanted.may_work)
    except (SkipTest, pytest.skip.Exception):
        row.write_text(f"{name}\t-\t-\tskipped\tcannot be planted here\n")
        raise
    for variable, value in installer_variables(name).items():
        monkeypatch.setenv(variable, value)
    statement = statement_that_must_work(name, wanted.statement)
    # The call goes on into the scan, where the small module of these tests would stop it: scankit's own computes it.
    if name.startswith(("signature_mismatch_", "silent_none_")):
        planted.environment.module_file.unlink()
        scankit("build", "--python", python, "--module", "selective_scan_cuda", "--out", f"{planted.environment.site}/",
                timeout=1500).ends(0)
    # On a loaded machine an import takes longer than the doctor waits.
    options = list(map(str, wanted.options))
    if "--timeout" not in options:
        options += ["--timeout", os.environ.get("PRINTED_TIMEOUT", "180")]

    status, said = planted.fails()
    assert status != 0, f"the planted fault does not break: {wanted.statement}"
    assert re.search(wanted.error, said, re.MULTILINE), f"the interpreter's error is not '{wanted.error}': {said[-2000:]}"

    before = scankit("doctor", "--python", python, "--report", f"json={work / 'before.json'}", *options, cwd=planted.starts_in,
                     variables=wanted.variables, timeout=600)
    (work / "before.txt").write_text(before.out)
    report = json.loads((work / "before.json").read_text())
    cause = (report["root"] or (report["findings"] or [{}])[0]).get("cause", "-")
    command = report.get("repair") or ""
    who, sentence = NOBODY.get(name, ("", ""))
    if not command:
        if not who:
            return result("none", "no command is printed")
        if not re.search(sentence, before.out, re.MULTILINE):
            return result("none", f"the report does not say who has to do what ({sentence})")
        return result("nobody", who)
    if who:
        return result("none", f"a command is printed: remove {name} from NOBODY")
    if before.last_line != command:
        return result("none", f"the last line is not the command: {before.last_line}")

    status, again = run_printed(planted, scankit, work, command, statement, options)
    said = last_words((work / "command.txt").read_text(errors="replace"))
    # Of several repairs one may fail and say so by its status; what decides is what was broken.
    if again != "0":
        words = last_words((work / "again.txt").read_text(errors="replace"))
        return result("failed", f"it still fails: {words}; the command exited with status {status}: {said}")
    # A warning may stay: of sources that name no torch, say, which are built nevertheless.
    after = json.loads((work / "after.json").read_text())
    if any(finding["cause"] == cause and finding["severity"] == "error" for finding in after["findings"]):
        return result("failed", f"the doctor still finds {cause}")
    return result("worked", "" if status == "0" else f"with status {status}: {said}")


@pytest.mark.ctest(group="printed", labels="matrix;large", depends="printed")
def test_table(build):
    """All rows, and the share of the broken environments that work after the printed command: at least 93 %."""
    rows = sorted((file.read_text().rstrip("\n").split("\t") for file in (build / "e2e/printed").glob("*.row")),
                  key=lambda row: (row[3], row[1], row[0]))
    assert rows, "no test printed.* was run"
    for row in rows:
        print("  ".join(row))
    count = {word: sum(row[3] == word for row in rows) for word in ("worked", "failed", "none", "invalid", "nobody", "skipped")}
    broken = count["worked"] + count["failed"] + count["none"] + count["invalid"]
    print(f"{count['worked']} of {broken} broken environments work after the printed command; {count['nobody']} need somebody else, "
          f"{count['skipped']} could not be planted here")
    assert count["worked"] >= 0.93 * broken
