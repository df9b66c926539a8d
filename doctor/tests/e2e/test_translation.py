# SPDX-License-Identifier: Apache-2.0
"""What lint.catalogue refuses in a translation: each defect is planted into a copy of the Chinese one."""
import shutil
import subprocess
import sys

import pytest

from fixtures import REPOSITORY

pytestmark = pytest.mark.ctest(group="translation", labels="ci;lint", timeout=600)

PO = REPOSITORY / "doctor/text/zh_CN.po"
FIRST = 'msgid "a FIFO"\nmsgstr "FIFO"\n'  # an entry that each defect changes or stands behind
DEFECTS = {
    "lacking": ("not translated: a FIFO", {FIRST: ""}),
    "empty": ("not translated: a FIFO", {FIRST: 'msgid "a FIFO"\nmsgstr ""\n'}),
    "fuzzy": ("fuzzy; look at the translation, then remove the flag: a FIFO", {FIRST: "#, fuzzy\n" + FIRST}),
    "obsolete": ("an obsolete entry; remove it", {FIRST: FIRST + '\n#~ msgid "gone"\n#~ msgstr "没有了"\n'}),
    "superfluous": ("no such text in the sources any more: gone", {FIRST: FIRST + '\nmsgid "gone"\nmsgstr "没有了"\n'}),
    "singular": ("its plural is another one in the sources: a FIFO",
                 {FIRST: 'msgid "a FIFO"\nmsgid_plural "FIFOs"\nmsgstr[0] "FIFO"\n'}),
    "places": ("the places in braces differ from those of: {}, {}", {'msgid "{}, {}"\nmsgstr "{}，{}"': 'msgid "{}, {}"\nmsgstr "{}"'}),
    "term": ("'GPU' is GPU in the glossary, not so in: 显卡 {}", {'msgid "GPU {}"\nmsgstr "GPU {}"': 'msgid "GPU {}"\nmsgstr "显卡 {}"'}),
}


def lint(build, po):
    run = subprocess.run(["bash", REPOSITORY / "ci/lint/catalogue.sh", build, po], capture_output=True, text=True)
    if run.returncode == 77:
        pytest.skip(run.stdout.strip())
    return run.returncode, run.stdout + run.stderr


def planted(work, changes):
    shutil.copy(PO.with_suffix(".terms.tsv"), work / "zh_CN.terms.tsv")
    text = PO.read_text()
    for before, after in changes.items():
        assert text.count(before) == 1, f"not once in {PO}: {before!r}"
        text = text.replace(before, after)
    (work / "zh_CN.po").write_text(text)
    return work / "zh_CN.po"


def test_complete(build, work):
    """The copy without a change passes: what the others name is the defect."""
    status, said = lint(build, planted(work, {}))
    assert status == 0, said


def test_defects(build, work):
    """All at once through the lint, so that it runs twice and not nine times; then each by itself."""
    status, said = lint(build, planted(work, {FIRST: FIRST + '\n#~ msgid "gone"\n#~ msgstr "x"\n',
                                              **DEFECTS["places"][1], **DEFECTS["term"][1]}))
    assert status == 1, said
    for name in ("obsolete", "places", "term"):
        assert DEFECTS[name][0] in said, f"{name}: {said}"
    for name, (message, changes) in DEFECTS.items():
        if name == "places":  # scankit_check_translation's
            continue
        run = subprocess.run([sys.executable, "-B", REPOSITORY / "ci/lint/translation.py", build / "scankit.pot", planted(work, changes)],
                             capture_output=True, text=True)
        assert run.returncode == 1 and message in run.stdout, f"{name}: {run.stdout}{run.stderr}"
        assert len(run.stdout.splitlines()) <= 2, f"{name} names more than the defect: {run.stdout}"


def test_glossary(build, work):
    """A row that lacks a column is an error and not a term that nobody checks."""
    po = planted(work, {})
    (work / "zh_CN.terms.tsv").write_text("GPU\tGPU\n")
    status, said = lint(build, po)
    assert status == 1 and "not four columns" in said, said
