# SPDX-License-Identifier: Apache-2.0
"""What a Chinese reader sees on a terminal: no English sentence of ours, straight columns, whole letters; and that what programs
read is the same in every language."""
import functools
import os
import pty
import re
import sys
import unicodedata

import pytest

from fixtures import MACHINES, REPOSITORY

sys.path.insert(0, str(REPOSITORY / "ci/lint"))
import translation  # noqa: E402

pytestmark = pytest.mark.ctest(group="chinese", fixtures="torch_env")

HELP_COLUMNS = 100
WORDS = 4  # a shorter piece of a sentence could be data
SNAPSHOTS = [MACHINES / name / "snapshot.json" for name in ("cpu_torch211", "h200_torch211", "sources_torch211")]


def columns(text):
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def squeezed(text):
    return " ".join(text.split())


@functools.cache
def english_pieces():
    """What stands between the places of each English text, if it is long enough and not in the translation too, as a command is."""
    pieces = set()
    for one in translation.entries(REPOSITORY / "doctor/text/zh_CN.po"):
        for english in filter(None, (one["msgid"], one["msgid_plural"])):
            for piece in map(squeezed, re.split(r"\{[^{}]*\}|`[^`]*`", english)):
                if len(re.findall(r"[A-Za-z]{2,}", piece)) >= WORDS and piece not in squeezed(" ".join(one["msgstr"])):
                    pieces.add(piece)
    assert len(pieces) > 2000
    return pieces


def english_in(text):
    text = squeezed(text)
    return [piece for piece in english_pieces() if piece in text and re.search(rf"(?<!\w){re.escape(piece)}(?!\w)", text)]


def plain(raw):
    """Without colours and without the line of progress, which is drawn over."""
    text = raw.decode()  # fails where a letter was cut
    assert "\ufffd" not in text and not re.search(r"\\x[0-9a-f]{2}", text), text
    return re.sub(r"\x1b\[[0-9;]*m|\r\x1b\[J[^\r\n]*\r|\x1b\[J|\r", "", text)


class Screen:
    """scankit on a terminal of `wide` columns: all that it wrote, and its status."""

    def __init__(self, scankit, words, wide=120, **variables):
        base = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        self.raw, (pid, fd) = b"", pty.fork()
        if pid == 0:
            os.execve(scankit.path, ["scankit", *map(str, words)],
                      {**base, "TERM": "xterm", "COLUMNS": str(wide), "SOURCE_DATE_EPOCH": "0", **variables})
        while True:
            try:
                piece = os.read(fd, 65536)
            except OSError:  # EIO: nobody has the other end open
                piece = b""
            if not piece:
                break
            self.raw += piece
        self.status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        os.close(fd)
        self.text = plain(self.raw)


@pytest.fixture
def chinese(scankit, work):
    """chinese("doctor", ...): the screen, by --lang in a container without a locale and by LANG, which must not differ."""
    def run(*words, same=True):
        asked = Screen(scankit, ["--lang", "zh_CN", *words])
        by_locale = Screen(scankit, words, LANG="zh_CN.UTF-8")
        if same:
            assert asked.text == by_locale.text and asked.status == by_locale.status
        for screen in (asked, by_locale):
            assert re.search("[\u4e00-\u9fff]", screen.text), f"not Chinese: {screen.text}"
            assert not english_in(screen.text), f"{english_in(screen.text)} in:\n{screen.text}"
        return asked
    return run


def test_finder():
    """The search for English finds it, however it is wrapped."""
    assert english_in("查明\nfind out why\n      an import fails") == ["find out why an import fails"]
    assert not english_in("查明导入失败的原因")
    with pytest.raises(UnicodeDecodeError):
        plain("中文".encode()[:4])


def commands(scankit):
    """The words of every command, out of the manual page, which is made of the parser's own table."""
    page = scankit("man").ends(0).out
    found = re.findall(r"^\.SS (?:\\fB)?scankit ([a-z ]+?)(?:\\fR)?$|^\.S[HS] \"?scankit ([a-z ]+)\"?$", page, re.MULTILINE)
    return [""] + [next(filter(None, one)) for one in found]


def test_help(scankit, chinese):
    all_of_them = commands(scankit)
    assert len(all_of_them) > 20, all_of_them
    for command in all_of_them:
        text = chinese(*command.split(), "--help").text
        for line in text.splitlines():
            # A word without a break, a path or a list of options, may be longer.
            assert columns(line) <= HELP_COLUMNS or " " not in line.strip(), f"{columns(line)} columns: {line}"
            assert not re.match(r"\s*[，。：；）、”」]", line), f"begins with closing punctuation: {line}"
            assert not re.search(r"[（“「]\s*$", line), f"ends with an opening one: {line}"
        assert_straight(text)


def assert_straight(page):
    """In each list of a help page the texts begin in one column, and so do the lines that continue them."""
    for block in re.split(r"\n\n", page):
        lines = block.splitlines()
        if not lines or not lines[0].endswith(("：", ":")) or lines[0].startswith(("示例", " ")):
            continue
        begins = set()
        for line in lines[1:]:
            entry = re.match(r"(  (?:\s*)\S.*?\s{2,})(?=\S)", line)
            if re.match(r" {12,}\S", line):
                begins.add(columns(re.match(r" +", line)[0]))
            elif entry and len(re.match(r" +", line)[0]) <= 6:
                begins.add(columns(entry[1]))
        assert len(begins) <= 1, f"the columns {sorted(begins)} in:\n{block}"


def test_doctor(fault, chinese):
    broken = fault("corrupt_binary_empty").environment
    text = chinese("doctor", "--python", broken.python, "--module", "selective_scan_cuda").text
    facts = re.search(r"检查对象\n((?:  .*\n)+)", text)[1].splitlines()
    begins = {columns(re.match(r"  \S+(?: \S+)?\s{2,}|  \S+ +", line)[0]) for line in facts}
    assert len(begins) == 1, f"the columns {begins} in {facts}"
    assert "corrupt_binary" in text and "错误" in text
    chinese("fix", "--python", broken.python, "--module", "selective_scan_cuda", "--arch", "sm_90", "--dry-run")


@pytest.mark.ctest(fixtures="")
def test_tables(build, chinese):
    """A wheel's table: each row has its words in the columns of the head, also behind the wide ones."""
    text = chinese("doctor", "--so", build / "modules", "--torch", "2.1..2.11", "--python", "3.9..3.13").text
    head, *rows = re.search(r"  torch .*\n(?:  2\.\d+ .*\n)+", text)[0].splitlines()
    wanted = [columns(head[:found.start()]) for found in re.finditer(r"3\.\d+|torch", head)]
    assert len(wanted) == 6 and len(rows) > 8
    for row in rows:
        begins = [columns(row[:found.start()]) for found in re.finditer(r"\S+", row)]
        assert begins == wanted, f"{begins}, not {wanted}: {row}"
    assert any("是" in row for row in rows)


@pytest.mark.ctest(fixtures="")
def test_recorded(chinese):
    # The others were recorded when a fact's sentence was stored in English.
    chinese("doctor", "--from", MACHINES / "h200_torch211/snapshot.json", "-v")
    for snapshot in SNAPSHOTS:
        chinese("env", "suggest", "--offline", "--for", snapshot, "-v")


@pytest.mark.ctest(fixtures="")
def test_errors(chinese):
    for words in (["doctr"], ["doctor", "--modul", "x"], ["doctor", "--timeout", "never"], ["doctor", "--python", "/nonexistent"],
                  ["doctor", "--from", "/nonexistent"], ["explain", "no_such_cause"], ["env", "check", "--spec", "/nonexistent"],
                  ["doctor", "--from", "/dev/null"], ["fix", "--wheel", "/nonexistent.whl"]):
        assert chinese(*words).status in (2, 3, 4)


@pytest.mark.ctest(fixtures="")
def test_explain(scankit, chinese):
    chinese("explain")
    causes = re.findall(r"^  (\w+) +[f-][i-][l-] ", scankit("explain").ends(0).out, re.MULTILINE)
    assert len(causes) > 50
    for cause in causes[::10]:
        chinese("explain", cause)


@pytest.mark.ctest(fixtures="")
def test_formats_are_english(scankit, work, monkeypatch):
    """Byte for byte, whatever the language; and what people read is not."""
    for snapshot in SNAPSHOTS:
        for form in ("json", "sarif", "junit", "github", "prometheus", "otlp", "text", "markdown", "html"):
            said = {}
            for lang in ("C.UTF-8", "zh_CN.UTF-8"):
                monkeypatch.setenv("LANG", lang)
                out = scankit("doctor", "--from", snapshot, "--report", f"{form}=-").out
                said[lang] = re.sub(r'(TimeUnixNano": )"\d+"', r"\1now", out, flags=re.IGNORECASE)
            for_people = form in ("text", "markdown", "html")
            assert (said["C.UTF-8"] == said["zh_CN.UTF-8"]) != for_people, f"{form} of {snapshot}"
            if form == "html":
                assert '<html lang="en"' in said["C.UTF-8"] and '<html lang="zh-CN"' in said["zh_CN.UTF-8"]


@pytest.mark.ctest(fixtures="")
def test_other_codesets_get_english(scankit, work):
    english = Screen(scankit, ["doctor", "--from", SNAPSHOTS[0]], LANG="C").text
    for variables in ({"LANG": "zh_CN.GBK"}, {"LANG": "zh_CN"}, {"LANG": "zh_CN.UTF-8", "LC_ALL": "C"}, {"LANG": "C.UTF-8", "LC_ALL": "zh_CN.GB18030"}):
        assert Screen(scankit, ["doctor", "--from", SNAPSHOTS[0]], **variables).text == english, variables
    asked = Screen(scankit, ["--lang", "zh_CN", "doctor", "--from", SNAPSHOTS[0]], LANG="zh_CN.GBK").text
    note, _, rest = asked.partition("\n")
    assert "zh_CN.GBK is not UTF-8" in note and rest == english, asked
