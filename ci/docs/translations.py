# SPDX-License-Identifier: Apache-2.0
"""The Chinese pages, compared with the English ones that they translate.

translations.py [--root DIR]: each must have the structure, the code, the links and the numbers of its English page, and must have
been compared with the English text as it is now. translations.py --compared PAGE... notes in translations.txt that this was done,
for the English pages named there."""
import collections
import hashlib
import pathlib
import posixpath
import re
import sys
import unicodedata

import documents

LIST = "ci/docs/translations.txt"
PAGES = "ci/docs/pages/"
LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]+)\)")
CODE = re.compile(r"`([^`]+)`")
Block = collections.namedtuple("Block", "kind text")


def translation_of(english):
    return PAGES + "zh/" + english.removeprefix(PAGES) if english.startswith(PAGES) else english.removesuffix(".md") + ".zh_CN.md"


def listed(root):
    """The English pages, and the hash of the text with which the translation of each was compared."""
    lines = [line.split() for line in (root / LIST).read_text().splitlines() if line and not line.startswith("#")]
    return {english: text_hash for text_hash, english in lines}


def english_text(root, english):
    """What the translation contains: that of the glossary also the terms that the generator adds to the English page."""
    text = (root / english).read_text()
    if english == PAGES + "glossary.md":
        text += "\n" + documents.glossary((root / "ARCHITECTURE.md").read_text())
    return text


def hash_of(text):
    """As git hashes a file, so that `git diff HASH FILE` shows what has changed."""
    data = text.encode()
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def blocks_of(text):
    """The blocks of a page, in their order. The documents have code only in indented blocks, and no lists in lists."""
    blocks = []
    # Code is what is indented after a blank line, with the blank lines in it; split() keeps it as every second part.
    for number, part in enumerate(re.split(r"(?:(?<=\n\n)|\A)(    .*(?:\n+    .*)*)", text)):
        for block in [part] if number % 2 else filter(None, re.split(r"\n{2,}", part.strip("\n"))):
            if number % 2:
                blocks.append(Block("code", block))
            elif block.startswith("#"):
                blocks.append(Block(f"heading of level {len(block) - len(block.lstrip('#'))}", block))
            elif block.startswith("|"):
                cells = [line.count("|") - 1 for line in block.split("\n")]
                blocks.append(Block(f"table of {len(cells)} rows and {max(cells)} columns", block))
            elif block.startswith("- "):
                blocks += [Block("list item", item) for item in re.split(r"\n(?=- )", block)]
            else:
                blocks.append(Block("paragraph", block))
    return blocks


def prose_of(blocks):
    return "\n\n".join(block.text for block in blocks if block.kind != "code")


def codes_in(prose):
    """Code in sentences, wherever its lines are broken."""
    return collections.Counter(" ".join(code.split()) for code in CODE.findall(prose))


def links_in(prose, page):
    """The links of `page`: (what is written, where it leads as a path of the repository)."""
    return [(text, target if ":" in target else posixpath.normpath(posixpath.join(posixpath.dirname(page), target)))
            for text, target in LINK.findall(CODE.sub("", prose))]


def numbers_in(prose):
    return collections.Counter(re.findall(r"\d+(?:\.\d+)*", LINK.sub("", CODE.sub("", prose))))


def structure_problems(chinese, english):
    """The first block that is not what it is in English; the rest follows from that."""
    count = collections.Counter
    ours, theirs = (count(b.kind for b in blocks if b.kind.startswith("heading")) for blocks in (chinese, english))
    if ours != theirs:
        yield f"has {ours.total()} headings {dict(ours)}, and the English page {theirs.total()} {dict(theirs)}"
        return
    for number, (our, their) in enumerate(zip(chinese, english), 1):
        if our.kind != their.kind:
            yield f"block {number} is a {our.kind} ({our.text[:30]!r}), and in the English page a {their.kind} ({their.text[:60]!r})"
            return
    if len(chinese) != len(english):
        yield f"has {len(chinese)} blocks, and the English page {len(english)}"


def code_problems(chinese, english):
    ours, theirs = ([b.text for b in blocks if b.kind == "code"] for blocks in (chinese, english))
    if len(ours) != len(theirs):
        yield f"has {len(ours)} blocks of code, and the English page {len(theirs)}"
    for our, their in zip(ours, theirs):
        if our != their:
            pairs = zip(our.split("\n") + [""], their.split("\n") + [""])
            yield "a block of code differs from the English page's: {!r}, there {!r}".format(*next(p for p in pairs if p[0] != p[1]))


def counted_problems(what, ours, theirs):
    yield from (f"misses the {what} {name} of the English page" for name in (theirs - ours))
    yield from (f"has the {what} {name}, and the English page does not" for name in (ours - theirs))


def link_problems(root, english, ours, theirs, pages):
    """A link to a page that is translated leads to the translation; that of README to its translation leads back."""
    own = translation_of(english)
    wanted = collections.Counter(english if target == own else translation_of(target) if target in pages else target for _, target in theirs)
    found = collections.Counter(target for _, target in ours)
    for text, target in ours:
        if target not in wanted and ":" not in target and not (root / target).exists():
            yield f"links to {target}, which does not exist"
        if target.endswith(".md") and target != english and target not in map(translation_of, pages) and "英文" not in text:
            yield f"does not say that {target} is in English (（英文）)"
    yield from counted_problems("link to", found, wanted)


def page_problems(root, english, pages):
    own = translation_of(english)
    if not (root / english).is_file() or not (root / own).is_file():
        yield f"{LIST}: lists {english}; {english if not (root / english).is_file() else own} does not exist"
        return
    text = english_text(root, english)
    if hash_of(text) != pages[english]:
        show = f"git diff {pages[english]} {english}" if text == (root / english).read_text() else f"git log -p -- {english} ARCHITECTURE.md"
        yield (f"{own}: {english} has changed since they were compared. See what changed by '{show}', change the translation too, "
               f"and then: python3 -B ci/docs/translations.py --compared {english}")
    chinese_blocks, english_blocks = blocks_of((root / own).read_text()), blocks_of(text)
    ours, theirs = prose_of(chinese_blocks), prose_of(english_blocks)
    for problems in (structure_problems(chinese_blocks, english_blocks), code_problems(chinese_blocks, english_blocks),
                     counted_problems("code", codes_in(ours), codes_in(theirs)),
                     counted_problems("number", numbers_in(ours), numbers_in(theirs)),
                     link_problems(root, english, links_in(ours, own), links_in(theirs, english), pages)):
        yield from (f"{own}: {problem}" for problem in problems)


def problems_of(root):
    pages = listed(root)
    for english in pages:
        yield from page_problems(root, english, pages)
    files = ["README.zh_CN.md"] + [file.relative_to(root).as_posix() for file in sorted((root / PAGES / "zh").glob("**/*.md"))]
    yield from (f"{file}: is not in {LIST}" for file in files if file not in map(translation_of, pages))


def note_compared(root, names):
    text = (root / LIST).read_text()
    for name in names:
        if name not in listed(root):
            sys.exit(f"translations.py: {name} is not in {LIST}; a new translation needs a line '- {name}' there first")
        text = re.sub(rf"^\S+ +{re.escape(name)}$", f"{hash_of(english_text(root, name))} {name}", text, flags=re.M)
    (root / LIST).write_text(text)


def joined(text):
    """Chinese has no spaces between words, and a browser makes one of each line break: lines are joined where none belongs."""
    def wide(character):
        return unicodedata.east_asian_width(character) in "WF"

    def join(match):
        before, after = match[1], match[2]
        marks = "，。：；、（）！？"
        return before if wide(before) and wide(after) or before in marks or after in marks else match[0]
    # Not between blocks, nor before a list item, a row or an indented block.
    return re.sub(r"(\S)\n(?:  )?(?![\s|#-])(?=(\S))", join, text)


def write(pages):
    """The Chinese pages as the site shows them. What the generator adds to an English page in English is linked."""
    for file in (pages / "zh").glob("**/*.md"):
        file.write_text(joined(file.read_text()))
    with (pages / "zh/exit-statuses.md").open("a") as page:
        page.write("\n[各命令的退出状态表（英文）](../exit-statuses.md)\n")


def main(words):
    root = pathlib.Path(__file__).resolve().parents[2]
    if words[:1] == ["--root"]:
        root, words = pathlib.Path(words[1]), words[2:]
    if words[:1] == ["--compared"]:
        return note_compared(root, words[1:])
    wrong = list(problems_of(root))
    print("\n".join(wrong + [f"{'not ok' if wrong else 'ok'}: {len(listed(root))} translated pages, {len(wrong)} problems"]))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
