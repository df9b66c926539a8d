# SPDX-License-Identifier: Apache-2.0
"""mutation.py WORK [--slice N --turn T] [--only GROUP] [--list] [--jobs N]: do the unit tests notice a wrong judgement?

Each condition, comparison, limit and severity in the code that judges (checks, root cause, drift, judge, policy, limits of the
ELF reader) is inverted, shifted or replaced, one at a time, and the component's unit tests run. A mutant that no test notices
is printed. All mutants of a file are compiled at once, behind a switch that an environment variable sets, so that a mutant
costs one run of the tests and no compilation.

WORK: a scratch directory (a copy of the sources, a build tree). --slice: every Nth mutant, beginning with the Tth.
Needs the libclang wheel. Status 0 where at least 95 % are noticed, 1 where fewer are, 3 where the unchanged tests fail.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import threading
import time

import clang.cindex as ci

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOAL = 0.95
LOCK = threading.Lock()  # for the tests that noticed something, which all jobs share
GROUPS = {  # name: (sources, the test programs that must notice)
    "checks": (["doctor/checks/*.cc", "doctor/preflight/checks/*.cc"], ["doctor/checks/scankit_checks_test", "doctor/report/scankit_report_test"]),
    "drift": (["envspec/check/check_*.cc", "envspec/lock/lock_drift.cc", "envspec/lock/lock_files.cc"],
              ["envspec/scankit_envspec_test"]),
    "judge": (["validate/judge/judge.cc", "validate/judge/speed.cc"], ["validate/scankit_validate_test"]),
    "policy": (["ci/gate/policy_apply.cc", "ci/gate/plan.cc"], ["ci/gate/scankit_gate_test"]),
    "elf": (["doctor/elf/dynamic.cc"], ["doctor/elf/scankit_elf_test"]),
}
# Tests that are left out, since they take long and notice only a crash: fewer mutants are noticed for that, never more.
LEFT_OUT = "DoctorJson.AnswersToAnyOddSnapshot"
NOT_JUDGEMENT = {"doctor/checks/recorded_cases.cc"}
SWAPPED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||", "||": "&&"}
SEVERITIES = {"Error": "Note", "Warning": "Error", "Note": "Error"}
SWITCH = """#pragma once
#include <cstdlib>
inline bool scankit_mutant(int n) {
  static const char* word = std::getenv("SCANKIT_MUTANT");
  static const int active = word ? std::atoi(word) : 0;
  return n == active;
}
"""

Edit = collections.namedtuple("Edit", "start end kind old new")  # offsets into the file; `new` in place of [start, end)


def text_of(source, node):
    return source[node.extent.start.offset:node.extent.end.offset].decode()


def in_macro(source, node):
    """Whether the node comes from a macro: its extent then is that of the macro's name."""
    return node.extent.start.offset >= node.extent.end.offset


def operator_of(source, node):
    """(offset, text) of the operator between the two operands of a BinaryOperator, or None."""
    operands = list(node.get_children())
    if len(operands) != 2:
        return None
    between = source[operands[0].extent.end.offset:operands[1].extent.start.offset]
    # Of "a >> b" no part is a comparison. Between the operands there may be parentheses, line ends and comments.
    found = re.search(rb"(?<![<>=!])(<=|>=|==|!=|&&|\|\||<|>)(?![<>=])", re.sub(rb"//[^\n]*", b"", between))
    return None if found is None else found.group(0).decode()


def fixed_at_compile_time(source, node):
    return any(token.spelling in ("constexpr", "consteval", "static_assert")
               for token, _ in zip(node.get_tokens(), range(4)))


def mutants_of(source, node, path, out, inside=False):
    """Walks the tree; `inside`: in the body of a function that runs at run time."""
    kind = ci.CursorKind
    for child in node.get_children():
        place = child.location.file
        if place is not None and pathlib.Path(place.name) != path:
            continue
        if child.kind in (kind.FUNCTION_DECL, kind.CXX_METHOD, kind.FUNCTION_TEMPLATE, kind.LAMBDA_EXPR, kind.CONSTRUCTOR):
            mutants_of(source, child, path, out, not fixed_at_compile_time(source, child))
            continue
        if child.kind == kind.STATIC_ASSERT or (child.kind == kind.VAR_DECL and fixed_at_compile_time(source, child)):
            continue
        if inside and not in_macro(source, child):
            start, end = child.extent.start.offset, child.extent.end.offset
            if child.kind == kind.BINARY_OPERATOR and (op := operator_of(source, child)) in SWAPPED:
                left, right = list(child.get_children())
                a, b = text_of(source, left), text_of(source, right)
                out.append(Edit(start, end, "operator", f"{a} {op} {b}", (a, SWAPPED[op], b)))
            elif child.kind == kind.INTEGER_LITERAL and (digits := text_of(source, child)).isdigit() and int(digits) > 1:
                out.append(Edit(start, end, "limit", digits, str(int(digits) + 1)))
            elif child.kind == kind.CXX_BOOL_LITERAL_EXPR:
                word = text_of(source, child)
                out.append(Edit(start, end, "value", word, "false" if word == "true" else "true"))
            elif child.kind == kind.DECL_REF_EXPR and (m := re.fullmatch(r"Severity::(\w+)", text_of(source, child))):
                out.append(Edit(start, end, "severity", m.group(0), "Severity::" + SEVERITIES[m.group(1)]))
            elif child.kind == kind.IF_STMT and source.startswith(b"if", start):  # not that of a macro
                condition = next((c for c in child.get_children()), None)
                plain = condition is not None and condition.kind not in (kind.DECL_STMT, kind.VAR_DECL)
                if plain and not in_macro(source, condition) and b"constexpr" not in source[start:condition.extent.start.offset]:
                    out.append(Edit(condition.extent.start.offset, condition.extent.end.offset, "condition",
                                    text_of(source, condition), None))
        mutants_of(source, child, path, out, inside)


def rewritten(source, edits, number):
    """The source with each edit behind the switch; `number` gives an edit its number. Edits nest or are apart."""
    def build(start, end, among):
        out, at, i = b"", start, 0
        among = sorted(among, key=lambda e: (e.start, -e.end))
        while i < len(among):
            outer = among[i]
            inner = [e for e in among[i + 1:] if e.start >= outer.start and e.end <= outer.end]
            out += source[at:outer.start]
            out += one(outer, inner)
            at = outer.end
            i += 1 + len(inner)
        return out + source[at:end]

    def one(edit, inner):
        same = [e for e in inner if (e.start, e.end) == (edit.start, edit.end)]
        n = number[edit]
        plain = build_inner(edit, [e for e in inner if e not in same], same)
        if edit.kind == "operator":
            changed = "({} {} {})".format(*edit.new).encode()
        elif edit.kind == "condition":
            changed = b"!(" + source[edit.start:edit.end] + b")"
        else:
            changed = edit.new.encode()
        if edit.kind in ("operator", "condition"):
            return b"(scankit_mutant(%d) ? static_cast<bool>(%s) : static_cast<bool>(%s))" % (n, changed, plain)
        return b"(scankit_mutant(%d) ? %s : %s)" % (n, changed, plain)

    def build_inner(edit, inner, same):
        if same:
            return one(same[0], inner + same[1:])
        return build(edit.start, edit.end, inner)

    return build(0, len(source), edits)


def flags_of(build, source):
    """The compiler's flags of the component, from the command that compiles it."""
    folder = str(source.relative_to(ROOT).parts[0])
    commands = json.loads((build / "compile_commands.json").read_text())
    command = next(c["command"] for c in commands if f"/{folder}/" in c["file"] or f"{folder}/" in c.get("output", ""))
    words = command.split()
    # libclang comes without the compiler's own headers (stddef.h).
    own = run(["c++", "-print-file-name=include"]).stdout.strip()
    return [w for w in words if w.startswith(("-I", "-D", "-std=", "-isystem"))] + ["-isystem", own]


def run(words, cwd=None, env=None, timeout=None):
    return subprocess.run([str(w) for w in words], cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", timeout=timeout)


def prepared(work):
    """A clone of the committed sources below WORK, configured without unity, so that an error names a file."""
    tree, build = work / "tree", work / "build"
    if not tree.exists():
        subprocess.run(["git", "clone", "-q", "--shared", str(ROOT), str(tree)], check=True)
    subprocess.run(["git", "-C", str(tree), "fetch", "-q", str(ROOT), "HEAD"], check=True)
    subprocess.run(["git", "-C", str(tree), "checkout", "-qf", "FETCH_HEAD"], check=True)
    (work / "switch.h").write_text(SWITCH)
    # Warnings are no errors here: a mutant may compare what the compiler knows.
    done = run(["cmake", "-S", tree, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON",
                "-DCMAKE_COMPILE_WARNING_AS_ERROR=OFF", "-DSCANKIT_UNITY=OFF", f"-DCMAKE_CXX_FLAGS=-include {work}/switch.h -w -D_GLIBCXX_ASSERTIONS"])
    if done.returncode != 0:
        sys.exit(done.stdout[-3000:])
    return tree, build


def found_in(path, build):
    source = path.read_bytes()
    unit = ci.Index.create().parse(str(path), args=flags_of(build, path))
    broken = [str(d) for d in unit.diagnostics if d.severity >= ci.Diagnostic.Error]
    if broken:
        sys.exit(f"{path} cannot be read: {broken[0]}")
    out = []
    mutants_of(source, unit.cursor, path, out)
    return source, list(dict.fromkeys(out))


def place_of(path, source, edit):
    line = source[:edit.start].count(b"\n") + 1
    return f"{path.relative_to(ROOT)}:{line}: {edit.kind}: {' '.join(edit.old.split())[:80]}"


def blamed(line, column):
    """The numbers of the mutants that an error at this column of a mutated line is due to: the innermost one around it,
    else all of the line."""
    around, every = None, set()
    for found in re.finditer(rb"\(scankit_mutant\((\d+)\)", line):
        every.add(int(found.group(1)))
        depth, end = 0, found.start()
        while end < len(line) and (depth or end == found.start()):
            depth += {ord("("): 1, ord(")"): -1}.get(line[end], 0)
            end += 1
        if found.start() <= column < end:
            around = int(found.group(1))  # a later one begins inside of it
    return every if around is None else {around}


def compiled(tree, build, chosen, number, programs):
    """Builds the programs with every chosen edit in; drops those that do not compile. Returns the edits that are in."""
    for _ in range(20):
        for path, (source, edits) in chosen.items():
            (tree / path.relative_to(ROOT)).write_bytes(rewritten(source, edits, number))
        done = run(["ninja", "-C", build, "-k", "0", *[pathlib.Path(p).name for p in programs]])
        if done.returncode == 0:
            return chosen
        dropped = 0
        for path, (source, edits) in chosen.items():
            name = re.escape(str(path.relative_to(ROOT)))
            lines = (tree / path.relative_to(ROOT)).read_bytes().split(b"\n")
            gone = set()
            for line, column in re.findall(name + r":(\d+):(\d+): error", done.stdout):
                gone |= blamed(lines[int(line) - 1], int(column) - 1)
            kept = [e for e in edits if number[e] not in gone]
            for edit in edits:
                if number[edit] in gone:
                    print(f"   does not compile: {place_of(path, source, edit)}", flush=True)
            dropped += len(edits) - len(kept)
            edits[:] = kept
        if not dropped:
            sys.exit("the mutated sources do not compile:\n" + done.stdout[-3000:])
    sys.exit("the mutated sources do not compile after twenty attempts")


def notices(build, programs, n, limit, before):
    """`before`: the tests that noticed the file's other mutants. They run first, since they mostly notice this one, too."""
    env = dict(os.environ, SCANKIT_MUTANT=str(n))

    def fails(program, tests):
        words = [build / program, "--gtest_brief=1", "--gtest_fail_fast", f"--gtest_filter={tests}"]
        try:
            done = run(words, env=env, timeout=limit)
        except subprocess.TimeoutExpired:
            return True
        if done.returncode != 0 and (failed := re.search(r"\[  FAILED  \] ([\w./]+)", done.stdout)):
            with LOCK:
                before.setdefault(program, collections.Counter())[failed.group(1)] += 1
        return done.returncode != 0

    for program in programs:
        with LOCK:
            usual = [name for name, _ in before.get(program, collections.Counter()).most_common(8)]
        if usual and fails(program, ":".join(usual)):
            return True
    return any(fails(program, f"-{LEFT_OUT}") for program in programs)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("--slice", type=int, default=1)
    parser.add_argument("--turn", type=int, default=0)
    parser.add_argument("--only", choices=sorted(GROUPS))
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    work = options.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    tree, build = prepared(work)
    total = noticed_total = used = 0
    for group, (patterns, programs) in GROUPS.items():
        if options.only and group != options.only:
            continue
        sources = sorted({p for pattern in patterns for p in ROOT.glob(pattern)
                          if not p.name.endswith("_test.cc") and str(p.relative_to(ROOT)) not in NOT_JUDGEMENT})
        number, chosen, count = {}, {}, 0
        for path in sources:
            source, edits = found_in(path, build)
            mine = []
            for edit in edits:
                count += 1
                if count % options.slice == options.turn % options.slice:
                    mine.append(edit)
            chosen[path] = (source, mine)
        every = [(path, edit) for path, (_, edits) in chosen.items() for edit in edits]
        if not count:
            sys.exit(f"{group}: no mutant was found in {len(sources)} files")
        if options.list:
            print(f"{group}: {count} mutants in {len(sources)} files")
            continue
        # A number is of one mutant of one group: those of the groups before are still in the sources.
        for n, (path, edit) in enumerate(every, used + 1):
            number[edit] = n
        used += len(every)
        compiled(tree, build, chosen, number, programs)
        start = time.monotonic()
        if notices(build, programs, 0, 600, {}):
            print(f"{group}: the tests fail without a mutant")
            sys.exit(3)
        limit = 5 * (time.monotonic() - start) + 10
        every = [(path, edit) for path, (_, edits) in chosen.items() for edit in edits]
        before = {path: {} for path in chosen}
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            results = []
            judged = pool.map(lambda one: notices(build, programs, number[one[1]], limit, before[one[0]]), every)
            for (path, edit), noticed in zip(every, judged):
                results.append(noticed)
                if not noticed:
                    print(f"   lives ({len(results)} of {len(every)}): {place_of(path, chosen[path][0], edit)}", flush=True)
        total, noticed_total = total + len(every), noticed_total + sum(results)
        print(f"{group}: {sum(results)} of {len(every)} mutants noticed, {time.monotonic() - start:.0f} s", flush=True)
    if options.list:
        return 0
    share = noticed_total / total if total else 0
    print(f"{noticed_total} of {total} noticed ({100 * share:.1f} %), wanted {100 * GOAL:.0f} %")
    return 0 if total and share >= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
