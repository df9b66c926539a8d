# SPDX-License-Identifier: Apache-2.0
# audit_truth.py REPORT TRUTH: what the loader really does with each extension of an audit (`doctor --all --json`).
# One process a package imports the package, then forks: every extension is imported in a child of its own, as the
# package left the process. It loads where the file is mapped afterwards, or where dlopen takes it then: an exception that
# comes later is the module's own. TRUTH holds a line an extension: answer, truth, path, error.
# audit_truth.py --table|--wrong|--count ANSWER TRUTH FILE: reads such a file.
import ctypes, importlib, json, os, signal, sys, sysconfig

PATIENCE = 120
DIED = "the process died"


def mapped(path):
    real = os.path.realpath(path)
    with open("/proc/self/maps") as lines:
        return any(line.rstrip("\n").endswith((path, real)) for line in lines)


def module_name(path):
    for folder in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
        if path.startswith(folder + "/"):
            path = path[len(folder) + 1:]
    folder, name = os.path.split(path)
    return ".".join(part for part in folder.split("/") + [name.split(".")[0]] if part)


def attempt(entry):
    """In the child: "loads" or "fails", and why."""
    path, error = entry["file"], ""
    try:
        importlib.import_module(module_name(path))
    except BaseException as problem:  # SystemExit and KeyboardInterrupt of a package too
        error = "%s: %s" % (type(problem).__name__, problem)
    if mapped(path):
        return "loads", ""
    try:
        ctypes.CDLL(path, mode=os.RTLD_NOW)
        return "loads", ""
    except OSError as problem:
        return "fails", str(problem)


def in_child(task):
    """Runs task() in a forked child; its answer, or how the child ended."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(PATIENCE)
        try:
            answer = task()
        except BaseException as problem:
            answer = ("unknown", repr(problem))
        os.write(writer, json.dumps(answer).encode()[:60000])
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else ["fails", DIED]


def package(entries):
    """In a process of its own: the package first, as whoever uses it would import it, then each extension."""
    if any(entry["after_torch"] for entry in entries):
        importlib.import_module("torch")
    top = module_name(entries[0]["file"]).split(".")[0]
    try:
        importlib.import_module(top)
    except BaseException:
        pass  # some other file of it is broken
    return [answer_for(entry) for entry in entries]


def alone(entry):
    """Without its package: a sibling that is damaged may take down whoever imports the package."""
    if entry["after_torch"]:
        importlib.import_module("torch")
    try:
        ctypes.CDLL(entry["file"], mode=os.RTLD_NOW)
        return "loads", ""
    except OSError as problem:
        return "fails", str(problem)


def answer_for(entry):
    answer = in_child(lambda: attempt(entry))
    return answer if answer[1] != DIED else in_child(lambda: alone(entry))


def run(report, truth):
    with open(report) as file:
        audit = json.load(file)["audit"]
    groups = {}
    for entry in audit:
        groups.setdefault((module_name(entry["file"]).split(".")[0], entry["after_torch"]), []).append(entry)
    with open(truth, "w") as out:
        for entries in groups.values():
            answers = in_child_list(entries)
            for entry, (answer, why) in zip(entries, answers):
                out.write("\t".join([entry["verdict"], answer, entry["file"], (why or "").replace("\n", " ").replace("\t", " "),
                                     entry["why"] or ""]) + "\n")


def in_child_list(entries):
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        with os.fdopen(writer, "wb") as pipe:
            pipe.write(json.dumps(package(entries)).encode())
            pipe.flush()
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    # A package that takes the process along leaves each file to be tried alone.
    return json.loads(text) if text else [answer_for(entry) for entry in entries]


ANSWERS, TRUTHS = ("loads", "would-fail", "unknown", "not-for-this-python"), ("loads", "fails", "unknown")


def rows(path):
    with open(path) as file:
        return [line.rstrip("\n").split("\t") for line in file]


def table(path):
    found = rows(path)
    print("%-22s %8s %8s %8s" % (("audit \\ interpreter",) + TRUTHS))
    for answer in ANSWERS:
        print("%-22s" % answer + "".join(
            " %8d" % sum(row[0] == answer and row[1] == truth for row in found) for truth in TRUTHS))
    for row in found:
        if row[0] in ("would-fail", "unknown"):
            print("  %s / %s: %s (%s)" % (row[0], row[1], row[2].split("site-packages/")[-1], row[4]))


def wrong(path):
    for row in rows(path):
        if (row[0], row[1]) in (("loads", "fails"), ("would-fail", "loads")) or row[1] == "unknown":
            print("the audit says %s, the interpreter %s: %s: %s %s" % tuple(row))


if sys.argv[1] == "--table":
    table(sys.argv[2])
elif sys.argv[1] == "--wrong":
    wrong(sys.argv[2])
elif sys.argv[1] == "--count":
    print(sum(row[:2] == sys.argv[2:4] for row in rows(sys.argv[4])))
else:
    run(sys.argv[1], sys.argv[2])
