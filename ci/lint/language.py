# SPDX-License-Identifier: Apache-2.0
"""The texts that a person reads are plain English: language.py [TEXT...]

Reads the texts out of the sources by itself (as ci/lint/catalogue.sh does with xgettext, but without a build, in seconds):
messages in C++ and in validate's harness, titles of causes, questions of checks, texts of the tables. Fails on each that
uses one of the expressions of BANNED, on help of an option or command that begins with a capital or ends with a full stop,
and on the same expressions in the documents. With TEXTs it judges these instead.
"""
import ast
import io
import os
import re
import subprocess
import sys
import tokenize

# What is not said; a sentence that shows it, which must be found in every run; what is said instead.
BANNED = [
    (r"\b(is|are|was|were) no (?!longer\b|more\b)", "x is no GPU", "is not a ..., no ... found"),
    (r"\bnone (is|are|here|does)\b", "none is here", "not found"),
    (r"\blies?\b|\blying\b", "the file lies outside", "is"),
    (r"\bholds?\b|\bheld\b", "the module holds code", "contains, has"),
    (r"\bstands?\b|\bstood\b", "it stands in the list", "is"),
    (r"\bbeside\b", "the file beside it", "next to, in addition to, compared with"),
    (r"\belsewhere\b", "install elsewhere", "in another ..."),
    (r"\bto be (seen|had)\b", "no GPU is to be seen", "is not visible, not found"),
    (r"\bfolders?\b", "a folder", "directory"),
    (r"\b(is|are|was|were|been) asked for\b", "it was asked for", "requested"),
    (r"\balone\b", "CPU tensors alone", "only"),
    (r"\bthose (who|which)\b", "those which load", "the ... that"),
    (r"\b(for|to|by|with) who(ever)?\b|\bwhoever\b", "for who runs it", "name the person or thing"),
    (r"\bmade for\b", "a wheel made for Windows", "built for"),
    (r"\bpatience\b", "the launcher's patience", "timeout"),
    (r"\banew\b", "make it anew", "recreate, rebuild, again"),
    (r"\bset-up\b", "the set-up script", "setup"),
    (r"\bgo(es)? on\b", "the same line goes on", "continue"),
    (r"\b(come|came|comes) to (it|its end|one|the missing)\b", "did it come to its end", "reaches, finish"),
    (r"\b(is|are|was) (not )?here\b|\bnot here\b", "no tool is here", "was found, is installed"),
    (r"\bfor want of\b", "for want of memory", "for lack of"),
    (r"\b(other|another) bytes\b", "has other bytes", "differs"),
    (r"\bno whole\b|\bno such (kind|thing)\b", "no whole library", "not a complete"),
    (r"\bcut short\b|\bcut off\b", "the file is cut short", "truncated, interrupted"),
]
# Texts where an expression has another meaning.
ALLOWED = [
    r"rounding alone",  # alone: by itself
    r"a call timed alone",
]
# Functions whose literals are texts for people, and the tables' fields that are.
CALLS = r"\b(?:say|sayable|say_n|message|message_n|Message|tr|tr_n|N_)\s*[({]\s*"
FIELDS = ("title", "root_cause", "fix", "meaning", "settles", "repair", "static", "observed", "no_static", "no_observed", "no_log")
TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|R"([^ ()\\\n]{0,16})\(.*?\)\1"|\'(?:[^\'\\\n]|\\.)+\'|"(?:[^"\\\n]|\\.)*"'
                   r"|[A-Za-z0-9_.]+(?:'[0-9A-Fa-f]+)*", re.S)
LEAST = 2500  # texts in the tree: fewer means that this reads the sources wrongly


def files(*patterns):
    out = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "--", *patterns], capture_output=True, text=True, check=True)
    test = re.compile(r"_test\.(cc|h|py)$|/tests?/|/testdata/|/fuzz/|^ci/lint/|/tool/")
    return [f for f in out.stdout.split("\n") if f and not test.search(f) and os.path.isfile(f)]


def literals(source):
    """Runs of adjacent literals of C++: (where the run begins, its text)."""
    at, end, text = None, 0, ""
    for token in TOKEN.finditer(source):
        word = token.group()
        if word[0] == '"':
            if at is not None and source[end:token.start()].strip() == "":
                text += word[1:-1]
            else:
                if at is not None:
                    yield at, text
                at, text = token.start(), word[1:-1]
            end = token.end()
        elif at is not None and not word.startswith(("//", "/*")):
            yield at, text
            at = None
    if at is not None:
        yield at, text


def texts_of_sources():
    """(file, line, text, whether it is the help of an option or command)"""
    said = re.compile(CALLS + r"(?:[^\"()]*,\s*)?$")
    plural = re.compile(CALLS + r'[^"]*"(?:[^"\\]|\\.)*"(?:\s*"(?:[^"\\]|\\.)*")*,\s*$')
    help_of = re.compile(r"add_(?:option|flag|subcommand)(?:_function)?(?:<[\w: ]+>)?\([^;]*$")
    for path in files("doctor/*.cc", "doctor/*.h", "builder/*.cc", "builder/*.h", "envspec/*.cc", "envspec/*.h", "validate/*.cc",
                      "validate/*.h", "ci/*.cc", "ci/*.h", "doctor/*.def"):
        with open(path, encoding="utf-8") as file:
            source = file.read()
        helper = "/helpers/" in path
        if not (path.endswith(".def") or helper or re.search(CALLS, source) or "/checks/" in path):
            continue
        for at, text in literals(source):
            before = source[max(0, at - 400):at]
            is_text = said.search(before) or plural.search(before) or (helper and re.search(r"report_error\(\s*$", before)) or (
                path.endswith("causes.def") and " " in text) or ("/checks/" in path and text.endswith("?") and " " in text)
            if is_text and text:
                call = re.search(CALLS + r"$", before)
                yield path, source.count("\n", 0, at) + 1, text, bool(call and help_of.search(before[:call.start()]))


def texts_of_python():
    for path in files("validate/harness/*.py"):
        with open(path, encoding="utf-8") as file:
            tokens = [t for t in tokenize.generate_tokens(file.readline) if t.type not in (tokenize.NL, tokenize.COMMENT)]
        for one, two, three in zip(tokens, tokens[1:], tokens[2:]):
            if one.string == "say" and two.string == "(" and three.type == tokenize.STRING and three.string[0] in "\"'":
                yield path, three.start[0], ast.literal_eval(three.string), False


def texts_of_tables():
    """The fields of the YAML tables, by lines, so that this needs no YAML reader; folded texts are joined."""
    path = "doctor/knowledge/log_rules.yaml"
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            for match in re.finditer(r"\b(?:meaning|settles|repair): (?:'((?:[^']|'')*)'|\"((?:[^\"\\]|\\.)*)\")", line):
                yield path, number, (match.group(1) or match.group(2) or "").replace("''", "'"), False
    path, field, text, first = "doctor/knowledge/faults.yaml", None, "", 0
    with open(path, encoding="utf-8") as file:
        lines = file.read().split("\n")
    for number, line in enumerate(lines, 1):
        key = re.match(r"\s*(?:- )?(\w+):\s*(.*)$", line)
        item = re.match(r"\s*- ['\"]?(.*?)['\"]?$", line)
        if key or item and field in ("static", "observed"):
            if field and text:
                yield path, first, text, False
            if key:
                field = key.group(1) if key.group(1) in FIELDS else None
            text, first = (key.group(2).strip(">|-'\" ") if key else item.group(1)), number
        elif field:
            text = (text + " " + line.strip()).strip()
    if field and text:
        yield path, first, text, False


def texts_of_documents():
    """Prose only: no transcripts, no `code`."""
    for path in files("*.md"):
        fenced = False
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if line.lstrip().startswith("```"):
                    fenced = not fenced
                elif not fenced and not line.startswith("    "):
                    yield path, number, re.sub(r"`[^`]*`", "``", line.rstrip("\n")), False


def faults(text, is_help):
    found = []
    rest = text
    for allowed in ALLOWED:
        rest = re.sub(allowed, "", rest)
    for pattern, _, instead in BANNED:
        match = re.search(pattern, rest, re.I)
        if match:
            found.append(f'"{match.group()}": say {instead}')
    if is_help and re.match(r"[A-Z][a-z]+\b", text) and not re.match(r"(Python|Slurm|Kubernetes)\b", text):
        found.append("help begins with a small letter")
    if is_help and text.endswith(".") and not text.endswith("..."):
        found.append("help ends without a full stop")
    return found


def main():
    for pattern, example, _ in BANNED:
        assert re.search(pattern, example, re.I), f"{pattern} does not find its example"
    if len(sys.argv) > 1:
        status = 0
        for text in sys.argv[1:]:
            for fault in faults(text, False):
                print(f"{text}: {fault}")
                status = 1
        return status
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
    status, count, helps, of = 0, 0, 0, {}
    for source in (texts_of_sources, texts_of_python, texts_of_tables, texts_of_documents):
        for path, line, text, is_help in source():
            count += source is not texts_of_documents
            helps += is_help
            of[source.__name__] = of.get(source.__name__, 0) + 1
            for fault in faults(text, is_help):
                print(f"{path}:{line}: {fault}: {text[:120]}")
                status = 1
    print(of) if os.environ.get("DEBUG") else None
    if count < LEAST or helps < 60:
        print(f"language: only {count} texts and {helps} helps were read: has the function's name changed? see CALLS")
        return 1
    print(f"language: {count} texts, {helps} of them helps, are plain" if status == 0 else "language: see CONTRIBUTING.md for how texts are written")
    return status


sys.exit(main())
