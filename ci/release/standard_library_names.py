# SPDX-License-Identifier: Apache-2.0
"""Which versions of Python have which modules and names:  standard_library_names.py --out FILE PYTHON...

Makes doctor/knowledge/standard_library.txt. Each PYTHON is an interpreter of another minor version, 2.7 and 3.6 upwards; it
imports the modules of its own standard library and says what they have. Give all of them: a row says what is between
two that were asked. The table in the tree was made with CPython 2.7 and 3.6 to 3.14 on Linux.
"""
import argparse
import json
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import python_names  # noqa: E402

HEAD = """\
# SPDX-License-Identifier: Apache-2.0
# Which versions of Python have which modules and names. Made by ci/release/standard_library_names.py; the rows are those
# of python_names.txt, and one with two - for each other module at the top. 3 is any version of 3.0 to 3.6.
"""
# Run by each interpreter, 2.7 among them: what modules there are, or which of the names given on standard input they have.
# What a module merely imported (`re.enum`, `configparser.Iterable`) is left out; what its __getattr__ knows, dir() does not show, hence the question.
ASK = r"""
import importlib, io, json, os, sys, types, warnings
warnings.simplefilter("ignore")
SKIPPED = ("antigravity", "this", "test", "idlelib", "turtledemo", "site-packages", "lib-dynload", "__pycache__",
           "ensurepip", "config", "pydoc_data", "__phello__", "_pyrepl", "lib-tk", "plat-linux2", "posix", "sitecustomize")
def load(name):
    try:
        return importlib.import_module(name)
    except BaseException:
        return None  # it needs a library that this build of Python was made without, or another system
def modules():
    root = os.path.dirname(os.__file__)
    found = set(sys.builtin_module_names)
    found.update(name for name in ("os.path", "collections.abc") if load(name))  # which need not be files
    for folder, folders, files in os.walk(root):
        inner = os.path.relpath(folder, root)
        parts = [] if inner == "." else inner.split(os.sep)
        folders[:] = [one for one in folders if "-" not in one and one not in SKIPPED and
                      one not in ("tests", "test", "command") and "__init__.py" in os.listdir(os.path.join(folder, one))]
        for name in files:
            if name.endswith(".py"):
                found.add(".".join(parts + ([] if name == "__init__.py" else [name[:-3]])))
    native = os.path.join(root, "lib-dynload")
    found.update(name.split(".")[0] for name in (os.listdir(native) if os.path.isdir(native) else []))
    return sorted(one for one in found if one and not one.startswith("_") and "._" not in one and one not in SKIPPED)
def is_own(module, name):
    value, offered = getattr(module, name, None), getattr(module, "__all__", None)
    if name.startswith("_") or isinstance(value, types.ModuleType):
        return False
    if offered is not None and name in offered:
        return True
    home = getattr(value, "__module__", None)
    top = home.split(".")[0].lstrip("_") if isinstance(home, str) else ""
    return top in ("", module.__name__.split(".")[0], "strop")  # 2.7 keeps the functions of string in strop
asked, out, result = json.loads(sys.stdin.read()), sys.stdout, {}
sys.stdout = sys.stderr
for name in modules():
    module = load(name)
    if module is None:
        result[name] = None
    elif not asked:
        result[name] = [one for one in dir(module) if is_own(module, one)]
    else:
        result[name] = [one for one in asked.get(name, []) if hasattr(module, one)]
json.dump({"version": list(sys.version_info[:2]), "modules": result}, out)
"""


def ask(python, names):
    ran = subprocess.run([python, "-c", ASK], input=json.dumps(names), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         text=True, timeout=600)
    if ran.returncode != 0:
        sys.exit(f"{python}: exit status {ran.returncode}: {ran.stderr[-2000:]}")
    return json.loads(ran.stdout)


def entry(names):
    """An entry of python_names.spans_of; of a module that could not be imported, no name is known."""
    return {"own": names or [], "got": [], "plain": [], "maybe": [], "open": names is None}


def series(version):
    return "3" if (3, 0) <= tuple(version) < (3, 7) else ".".join(map(str, version))


def releases_of(pythons):
    """[(series, entries)], oldest first, of interpreters."""
    names = {}
    for python in pythons:
        for module, found in ask(python, {})["modules"].items():
            names.setdefault(module, set()).update(found or [])
    asked = {module: sorted(found) for module, found in names.items()}
    answers = sorted((ask(python, asked) for python in pythons), key=lambda answer: answer["version"])
    return [(series(one["version"]), {module: entry(found) for module, found in one["modules"].items()}) for one in answers]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("python", nargs="+")
    options = parser.parse_args()
    releases = releases_of(options.python)
    rows = set(python_names.rows_of(releases))
    tops = {module for _, entries in releases for module in entries if "." not in module}
    rows |= {f"{top} * - -" for top in tops - {row.split(" *")[0] for row in rows if " * " in row}}
    lines = HEAD.splitlines() + [f"# Python: {', '.join(one for one, _ in releases)}"]
    options.out.write_text("\n".join(lines + sorted(rows, key=str.encode)) + "\n")


if __name__ == "__main__":
    main()
