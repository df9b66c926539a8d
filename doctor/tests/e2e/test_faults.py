# SPDX-License-Identifier: Apache-2.0
"""Every planted fault: the real interpreter fails as the fault says, and the doctor names the right cause, with the observed
import and without. What both said stays in the test's folder: import.txt, doctor.json, static.json, log.json, doctor.txt."""
import re

import pytest

from fault import load_faults

FAULTS = load_faults()


@pytest.mark.ctest(fixtures="torch_env;modules")
@pytest.mark.parametrize("name", FAULTS)
def test_fault(name, fault, scankit, work):
    planted = fault(name)
    wanted = planted.fault
    how = dict(variables=wanted.variables, cwd=planted.starts_in)
    python = ["--python", planted.environment.python]

    def ask(file, *words):
        result = scankit("doctor", *words, *wanted.options, **how)
        (work / file).write_text(result.out)
        return result

    if planted.helps_itself():
        print(wanted.may_work)
        ask("doctor.json", *python, "--json").diagnosis("healthy")
        return

    # 1. The environment is really broken, in the way meant.
    status, said = planted.fails()
    (work / "import.txt").write_text(said)
    assert status != 0, f"the planted fault does not break: {wanted.statement}"
    assert re.search(wanted.error, said, re.MULTILINE), f"the interpreter's error is not '{wanted.error}': {said[-2000:]}"

    # 2. The doctor names it, watching the import and from the files alone.
    text = work / "doctor.txt"  # of the same run: an import of torch takes longer than all else
    for file, more in ("doctor.json", ["--report", f"text={text}"]), ("static.json", ["--no-import"]):
        result = ask(file, *python, "--json", *more)
        if file == "static.json" and wanted.only_observed:
            assert result.json["root"] is None, f"the files alone cannot prove {result.summary}"
            continue
        result.diagnosis(wanted.verdict, wanted.root, planted.found, wanted.status)
        if wanted.built_for:
            result.built_for(*wanted.built_for)

    # 3. The interpreter's own words, alone, lead there too.
    if wanted.error and wanted.log is not None:
        log = scankit.doctor("--log", work / "import.txt")
        (work / "log.json").write_text(log.out)
        root = log.root or "none"
        assert root in (wanted.log or wanted.root).split("|"), f"the log alone gives {root}, not {wanted.log or wanted.root}"

    assert re.search(wanted.says, text.read_text(), re.MULTILINE), f"no line matches '{wanted.says}': {text.read_text()}"
