# SPDX-License-Identifier: Apache-2.0
"""Which modules a Python package has, and which names each of them has at its top level:  read_archive(PATH, ["torch"])

Reads a wheel, a zip or a source archive, and runs nothing of it. The result is {module: entry}; an entry is a dictionary
of sorted lists: "own" (names that the module makes or hands on: what is in __all__, and what an __init__ imports from its
own package), "got" (other imports, and of star imports all), "plain" (names from the standard library, and those
of `import numpy as np`), "maybe" (names that a module's __getattr__ seems to know), and "open" (true if the module may
have names that its text does not show). LIGHT are modules whose names nobody asks for: only __all__ is read of them.
"""
import ast
import hashlib
import re
import sys
import tarfile
import warnings
import zipfile

SKIPPED = {"tests", "test", "_vendor", "third_party", "extern", "__pycache__"}
# What others take from the files of a model is what its family had for long.
LIGHT = re.compile(r"transformers\.models\.(?!(llama|mistral|mixtral|qwen2|qwen2_vl|gemma|bert|gpt2|clip|t5|opt|falcon|mamba|"
                   r"whisper|bart)\.modeling_)|diffusers\.(models|pipelines)\.|torch\.(_inductor|_dynamo|testing|_refs)\b|"
                   r"gradio\.(.*\.)?_[a-z]")
COMPILED = re.compile(r"^([A-Za-z_]\w*)(\.cpython-[\w-]+|\.cp\d+-[\w-]+|\.abi3|\.pypy[\w-]+)?\.(so|pyd)$")
LAZY = re.compile(r"import_structure|submod_attrs|lazy_import|_dynamic_imports|_attr_to_module|_class_to_module", re.I)
GONE = re.compile(r"former|expired|removed", re.I)
# Modules that fill their globals() from compiled ones, whose names are in stubs next to them.
STUBBED = {"torch": "torch._C"}
SYSTEM = sys.stdlib_module_names - {"builtins"} | {"typing_extensions"}
WORD = re.compile(r"[A-Za-z_]\w*$")


def strings(node, keys=False):
    """The strings in an expression that could be names, of a dictionary its values only, unless keys are asked for."""
    if isinstance(node, ast.Constant):
        return {node.value} if isinstance(node.value, str) and WORD.match(node.value) else set()
    children = ast.iter_child_nodes(node) if keys or not isinstance(node, ast.Dict) else node.values
    return set().union(*(strings(child, keys) for child in children)) if node else set()


def root(node):
    """The first name of an expression: a of a.b["c"].d(...)."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call, ast.Starred)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


class File:
    """What one file's text says; imports are resolved later, since equal files are read once for all releases."""

    def __init__(self):
        self.own, self.got, self.plain, self.maybe = set(), {}, set(), set()
        self.all, self.all_open, self.stars, self.open, self.forwards = None, False, [], False, False
        self.texts, self.asked, self.structure, self.used = {}, None, False, set()

    def read(self, text):
        self.structure = "define_import_structure(" in text
        try:
            self.body(ast.parse(text).body)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            self.guess(text)
        if self.asked is not None:
            words, names = self.asked
            words = words.union(*(self.texts.get(name, ()) for name in names))
            # For the names of __former_attrs__ numpy only has a message.
            self.maybe |= words.difference(*(self.texts.get(name, ()) for name in names if GONE.search(name)))
            # A __getattr__ that names nothing hands every name on to some other module.
            self.open |= not words and not any(GONE.search(name) for name in names)
        return self

    def guess(self, text):
        """For a file in a Python that this one cannot parse: what starts its lines."""
        self.open = True
        self.own.update(re.findall(r"^(?:async def |def |class |type |(?=\w+ *(?::[^=\n]+)?=[^=])) *(\w+)", text, re.M))

    def light(self, text):
        """For a module whose names nobody asks for: __all__, and what transformers' decorators export."""
        for found in re.finditer(r"^__all__ *(?::[^=\n]*)?\+?= *([\[(][^\])]*[\])])", text, re.M):
            self.all = (self.all or set()) | set(re.findall(r"[\"'](\w+)[\"']", found.group(1)))
        exported = re.findall(r"^@(?:requires|export)\b(?:[^\n]*\n)(?:[@ )][^\n]*\n)*(?:class|def) +(\w+)", text, re.M)
        self.own.update(exported, self.all or ())
        self.all = (self.all or set()) | set(exported) if self.all is not None or exported else None
        self.structure = "define_import_structure(" in text
        if self.all is None and "import_structure" in text and not self.structure or "import *" in text:
            self.read(text)
        return self

    def body(self, statements):
        for one in statements:
            getattr(self, type(one).__name__.lower(), self.other)(one)

    def other(self, one):
        for part in ("body", "orelse", "finalbody"):
            self.body(getattr(one, part, []))
        for part in getattr(one, "handlers", []) + getattr(one, "cases", []):
            self.body(part.body)
        for target in [getattr(one, "target", None)] + [item.optional_vars for item in getattr(one, "items", [])]:
            self.bind(target)

    def bind(self, target):
        parts = ast.walk(target) if target else ()
        self.own.update(part.id for part in parts if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store))

    def classdef(self, one):
        self.own.add(getattr(one.name, "id", one.name))

    def functiondef(self, one):
        self.own.add(one.name)
        if one.name == "__getattr__":
            self.asked = (set().union(*(strings(part, True) for part in one.body)),
                          {part.id for part in ast.walk(one) if isinstance(part, ast.Name)})
            # numpy.core.umath hands what it is asked for on to numpy._core.umath.
            self.forwards = any(isinstance(part, ast.Call) and root(part.func) == "getattr" and len(part.args) > 1
                                and root(part.args[1]) == one.args.args[0].arg for part in ast.walk(one))

    asyncfunctiondef = typealias = classdef

    def delete(self, one):
        for name in (getattr(target, "id", None) for target in one.targets):
            self.got.pop(name, None)
            self.own, self.plain = self.own - {name}, self.plain - {name}

    def assign(self, one):
        for target in one.targets:
            self.bind(target)
            self.value(target, one.value)

    def annassign(self, one):
        self.bind(one.target)
        if one.value:
            self.value(one.target, one.value)

    augassign = annassign

    def value(self, target, value):
        """target = value, where target may be __all__, a dictionary of lazy imports, or an entry of one or of globals()."""
        name, lazy = root(target), isinstance(value, ast.Call) and re.search(r"attach|LazyModule", ast.unparse(value.func))
        if name == "__all__":
            self.listed(value)
        elif LAZY.search(name):
            # transformers' map a module to its names, pydantic's a name to its module: only the former's keys are modules.
            self.own |= strings(value, keys=bool(re.search(r"dynamic|_to_module|lazy_import", name)))
        elif isinstance(target, ast.Subscript) and name in ("globals", "locals", "vars"):
            self.open = True
        elif isinstance(target, ast.Subscript) and ast.unparse(target) == "sys.modules[__name__]" and not lazy:
            self.open = True
        elif isinstance(target, ast.Name):
            self.note(name, value)
        if lazy:
            self.own |= set().union(*map(strings, value.args + [word.value for word in value.keywords]))

    def note(self, name, value):
        """Keeps the strings of a variable, since a __getattr__ may use it; also those of variables that it is made of."""
        used = (self.texts.get(part.id, set()) for part in ast.walk(value) if isinstance(part, ast.Name))
        self.texts.setdefault(name, set()).update(strings(value, True), *used)

    def listed(self, value):
        self.all = (self.all or set()) | strings(value, True)
        self.all_open |= any(isinstance(part, (ast.Name, ast.Attribute, ast.comprehension)) for part in ast.walk(value))

    def expr(self, one):
        call = one.value
        if not isinstance(call, ast.Call):
            return
        name = root(call.func)
        if name == "__all__":
            for part in call.args:
                self.listed(part)
        elif LAZY.search(name):
            self.own |= set().union(*(strings(part) for part in call.args), set())
        elif name in ("globals", "vars", "locals", "exec") or name == "setattr" and "__name__" in ast.unparse(call):
            self.open = True
        else:
            self.note(name, call)

    def import_(self, one):
        for name in one.names:
            bound = name.asname or name.name.split(".")[0]
            short = not name.asname or len(bound) <= 3 or bound.lstrip("_") in sys.stdlib_module_names
            (self.plain if short else self.own).add(bound)

    def importfrom(self, one):
        for name in one.names:
            if name.name == "*":
                self.stars.append((one.level, one.module or ""))
                continue
            bound = name.asname or name.name
            source = "" if one.level else one.module.split(".")[0]
            # In a stub, `import a as a` says that the name is for others too.
            if name.asname == name.name:
                self.own.add(bound)
            elif source in SYSTEM and bound == name.name:
                self.plain.add(bound)
            else:
                self.got[bound] = source


setattr(File, "import", File.import_)


def is_wheel(path):
    return str(path).endswith((".whl", ".zip"))


def unpack(path):
    """Each file of an archive that matters: its name, and a function that reads it."""
    if is_wheel(path):
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                yield name, lambda name=name: archive.read(name)
    else:
        with tarfile.open(path) as archive:
            for member in archive:
                if member.isfile():
                    yield member.name, lambda member=member: archive.extractfile(member).read()


def place(name, packages, wheel):
    """(module, kind) of a file in an archive, or None; kind is "py", "pyi", "so", with "+" if it is a package's own file."""
    parts = [part for part in name.split("/") if part != "."]
    stem, _, suffix = parts[-1].rpartition(".")
    # A wheel has the package at its top or in NAME.data/purelib; a source archive in NAME-VERSION, or in src below that.
    above = re.match(r"(?:[^/]+\.data/[^/]+/)?" if wheel else r"[^/]+/(?:(?:src|python|lib)/)?", "/".join(parts))
    start = above.group(0).count("/") if above else len(parts)
    if SKIPPED & set(parts[start:-1]) or stem.startswith("test_") or stem == "conftest":
        return None
    if (parts[start] if start < len(parts) - 1 else stem) not in packages:
        return None
    found = COMPILED.match(parts[-1])
    if found and (not found.group(1).startswith("lib") or found.group(1) == "libtriton") and "lib" not in parts:
        stem, suffix = found.group(1), "so"
    elif suffix not in ("py", "pyi"):
        return None
    path = parts[start:-1] + ([] if stem == "__init__" else [stem])
    if not path or not all(part.isidentifier() for part in path):
        return None
    return ".".join(path), suffix + ("+" if stem == "__init__" else "")


def collect(path, packages, known):
    """{module: {kind: File}} of an archive; `known` keeps what was read of equal files."""
    files = {}
    for name, read in unpack(path):
        where = place(name, packages, is_wheel(path))
        if not where:
            continue
        module, kind = where
        if kind == "so":
            files.setdefault(module, {})["so"] = None
            continue
        light, text = bool(LIGHT.match(module + ".")), read()
        key = light, hashlib.sha256(text).digest()
        if key not in known:
            decoded = text.decode("utf-8", "replace").lstrip("\ufeff")
            known[key] = File().light(decoded) if light else File().read(decoded)
            if module.split(".")[0] in STUBBED:
                known[key].used = set(re.findall(r"\b%s\.([A-Za-z]\w*)" % module.split(".")[0], decoded))
        files.setdefault(module, {})[kind] = known[key]
    for module in list(files):
        while "." in module:
            module = module.rpartition(".")[0]
            files.setdefault(module, {})
    return files


def empty():
    return {kind: set() for kind in ("own", "got", "plain", "maybe", "out")} | {"open": False}


class Release:
    """The modules of one archive, with star imports followed."""

    def __init__(self, files):
        self.files, self.done, self.children = files, {}, {}
        for module in files:
            package, _, name = module.rpartition(".")
            self.children.setdefault(package, set()).add(name)

    def target(self, module, kind, star):
        level, name = star
        if not level:
            return name
        parts = module.split(".") + [""] * kind.endswith("+")
        return ".".join(parts[:len(parts) - level] + ([name] if name else []))

    def names(self, module):
        """What a module has: an entry with sets, and in "out" what a star import of it takes."""
        if module in self.done or module not in self.files:
            return self.done.get(module, {"out": set(), "open": True})
        entry, typed = empty(), empty()
        # A module that imports itself in a circle sees what is there so far.
        self.done[module] = entry
        kinds = {kind: file for kind, file in self.files[module].items() if file}
        entry["open"] = "so" in self.files[module] and not kinds
        # What only the stub of a file that runs has may be for type checkers alone: numpy's has the names of typing. torch's
        # stubs tell what compiled code adds to its files.
        runs = any(not kind.startswith("pyi") for kind in kinds) and not self.stubbed(module)
        for kind, file in kinds.items():
            self.add(typed if runs and kind.startswith("pyi") else entry, module, kind, file)
        entry["maybe"] |= typed["own"] | typed["got"] | typed["plain"]
        entry["plain"] |= self.used(module)
        entry["own"] |= self.children.get(module, set())
        return entry

    def add(self, entry, module, kind, file):
        """Adds to a module's entry what one of its files says."""
        own, got, unknown = file.own | (file.all or set()), set(file.got), file.open
        # numpy.float was Python's, imported from builtins.
        handed = {name for name, source in file.got.items() if source in ("", "builtins", module.split(".")[0])}
        for star in file.stars:
            # Dummies stand in for what cannot be imported, and some are made after the release.
            if "utils.dumm" not in star[1]:
                there = self.names(self.target(module, kind, star))
                got |= there["out"]
                handed |= there["out"]
                unknown |= there["open"]
        if file.structure:
            base = module + ".models." if module + ".models" in self.files else module + "."
            own |= set().union(*(self.listed(one) for one in self.files if one.startswith(base)))
            # Those packages list their names; what they import with a star is for type checkers only.
            unknown = False
            # transformers 5 takes a tokenizer or an image processor also by its former name.
            entry["maybe"] |= {name + "Fast" for name in own if name.endswith(("Tokenizer", "ImageProcessor"))}
        if kind.endswith("+"):
            own |= handed
        for name, names in (("own", own), ("got", got), ("plain", file.plain), ("maybe", file.maybe)):
            entry[name] |= names
        entry["out"] |= file.all or set()
        if file.all is None or file.all_open:
            entry["out"] |= {name for name in own | got | file.plain if not name.startswith("_")}
        # A stub tells what a module makes when it is run.
        covered = self.stubbed(module) or not kind.startswith("pyi") and any(one.startswith("pyi") for one in self.files[module])
        entry["open"] |= file.forwards or unknown and not covered

    def stubbed(self, module):
        return any(kind.startswith("pyi") for kind in self.files.get(STUBBED.get(module), {}))

    def used(self, module):
        """Names that the package's own files use of it: some stubs have a name only some releases after the module."""
        return set().union(*(file.used for kinds in self.files.values() for file in kinds.values() if file and module in STUBBED))

    def listed(self, module):
        """What transformers' __init__ takes from a file below models/: its __all__, and what its decorators export."""
        left_out = re.search(r"\.(modular|convert)_\w+$", module)
        return set().union(*(file.all or () for file in self.files[module].values() if file and not left_out))

    def entries(self):
        result = {}
        for module in sorted(self.files):
            entry, seen = {"open": True} if LIGHT.match(module + ".") else self.names(module), set()
            result[module] = {"open": entry["open"]}
            for kind in ("own", "got", "plain", "maybe"):
                result[module][kind] = sorted(entry.get(kind, set()) - seen)
                seen |= entry.get(kind, set())
        return result


def read_archive(path, packages, known=None):
    sys.setrecursionlimit(10000)
    warnings.simplefilter("ignore", SyntaxWarning)
    return Release(collect(path, packages, {} if known is None else known)).entries()
