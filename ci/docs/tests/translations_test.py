# SPDX-License-Identifier: Apache-2.0
"""translations_test.py: the translations of this tree are whole, and each damage to a copy of them is reported."""
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "ci/docs"))
import translations  # noqa: E402

FAQ, GUIDE = "ci/docs/pages/zh/faq.md", "ci/docs/pages/zh/how-to/maintainer.md"
# The file that is changed, what in it, into what; and what must be said.
DAMAGES = [
    ("README.md", "One command", "A command", "README.zh_CN.md: README.md has changed since they were compared. See what changed by 'git diff "),
    ("ci/docs/pages/faq.md", "Never by itself.", "Hardly ever.", "--compared ci/docs/pages/faq.md"),
    ("ARCHITECTURE.md", "| drift | a difference", "| drift | any difference", "'git log -p -- ci/docs/pages/glossary.md ARCHITECTURE.md'"),
    (FAQ, "    scankit restore", "    scankit  restore", "a block of code differs from the English page's: '    scankit  restore', there '    scankit restore'"),
    ("README.zh_CN.md", "    pip install .", "    pip3 install .", "README.zh_CN.md: a block of code differs"),
    (GUIDE, "    scankit doctor --sources .\n\n", "", "blocks of code, and the English page "),
    (FAQ, "`--offline`", "`--online`", "misses the code --offline of the English page"),
    (FAQ, "`--offline`", "`--online`", "has the code --online, and the English page does not"),
    (FAQ, "## 如何撤销修复？\n\n", "", "has 8 headings"),
    (FAQ, "## 如何", "### 如何", "has 9 headings {'heading of level 1': 1, 'heading of level 2': 7, 'heading of level 3': 1}"),
    (FAQ, "不需要。", "不需要。\n\n", "is a paragraph ('本机"),
    (GUIDE, "| `build.torch` | 构建所能针对的最旧的 torch |\n", "", "is a table of 7 rows and 2 columns"),
    ("ci/docs/pages/zh/install.md", "- 新版本", "新版本", "is a paragraph"),
    (FAQ, "[这些模块（英文）](../modules.md)", "这些模块（英文）", "misses the link to ci/docs/pages/modules.md of the English page"),
    (FAQ, "../modules.md", "../module.md", "links to ci/docs/pages/module.md, which does not exist"),
    (FAQ, "这些模块（英文）", "这些模块", "does not say that ci/docs/pages/modules.md is in English"),
    (GUIDE, "../../causes/", "../causes/", "links to ci/docs/pages/zh/causes/index.md, which does not exist"),
    ("ci/docs/pages/zh/index.md", "](install.md)", "](../install.md)", "misses the link to ci/docs/pages/zh/install.md"),
    (FAQ, "3.8 起", "3.9 起", "misses the number 3.8 of the English page"),
    (translations.LIST, " ci/docs/pages/faq.md", " ci/docs/pages/fag.md", "ci/docs/translations.txt: lists ci/docs/pages/fag.md"),
    (translations.LIST, " ci/docs/pages/faq.md", " ci/docs/pages/fag.md", FAQ + ": is not in ci/docs/translations.txt"),
]


def damaged(copy, name, old, new):
    """What is said of the copy with this damage; the file is put back."""
    text = (copy / name).read_text()
    assert text.count(old) == 1, f"{name} has {text.count(old)} times {old!r}"
    (copy / name).write_text(text.replace(old, new))
    said = list(translations.problems_of(copy))
    (copy / name).write_text(text)
    return said


def not_reported(copy):
    for name, old, new, wanted in DAMAGES:
        said = damaged(copy, name, old, new)
        if not any(wanted in line for line in said):
            yield f"{old!r} for {new!r} in {name}: {wanted!r} is not reported, but {said}"
    (copy / FAQ).unlink()
    if not any(FAQ + " does not exist" in line for line in translations.problems_of(copy)):
        yield "a missing translation is not reported"


def compared_again(copy):
    """After --compared the changed page, and only that, is accepted."""
    english = copy / "ci/docs/pages/faq.md"
    english.write_text(english.read_text().replace("Never by itself.", "Hardly ever."))
    (copy / "README.md").write_text((copy / "README.md").read_text().replace("One command", "A command"))
    subprocess.run([sys.executable, "-B", ROOT / "ci/docs/translations.py", "--root", copy, "--compared", "ci/docs/pages/faq.md"], check=True)
    left = list(translations.problems_of(copy))
    if len(left) != 1 or not left[0].startswith("README.zh_CN.md: README.md has changed"):
        yield f"after --compared of the one page: {left}"


def copied(folder):
    for name in ["README.md", "README.zh_CN.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", translations.LIST]:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    shutil.copytree(ROOT / translations.PAGES, folder / translations.PAGES, dirs_exist_ok=True)
    return folder


def main():
    wrong = list(translations.problems_of(ROOT))
    text = "甲乙\n丙，\n`code`\n丁 torch\n戊\n\n- 己\n  庚\n- 辛\n\n| 壬 |\n| 癸 |\n\n    子\n    丑\n"
    if translations.joined(text) != "甲乙丙，`code`\n丁 torch\n戊\n\n- 己庚\n- 辛\n\n| 壬 |\n| 癸 |\n\n    子\n    丑\n":
        wrong.append(f"lines are joined to {translations.joined(text)!r}")
    if not wrong:
        with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
            wrong = list(not_reported(copied(pathlib.Path(one)))) + list(compared_again(copied(pathlib.Path(two))))
    print("\n".join(wrong + [f"{'not ok' if wrong else 'ok'}: {len(translations.listed(ROOT))} translated pages, {len(DAMAGES) + 1} damages"]))
    return bool(wrong)


sys.exit(main())
