# SPDX-License-Identifier: Apache-2.0
"""What python_names_read.py finds in an archive, and which rows python_names.py makes of several.  pytest FILE"""
import io
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
import python_names  # noqa: E402
import python_names_read  # noqa: E402


def wheel(folder, files, name="pack-1.0-py3-none-any.whl"):
    with zipfile.ZipFile(folder / name, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return folder / name


def own(folder, files, module="pack", packages=("pack",)):
    return set(python_names_read.read_archive(wheel(folder, files), packages)[module]["own"])


def test_names_of_statements(tmp_path):
    text = """
import os, numpy as np, collections.abc as container_abcs
from typing import List
from other import thing as renamed
a, (b, *c) = 1, (2, 3)
d: int = 4
e: int
class F: inner = 1
def g(): local = 2
async def h(): pass
for i in (): pass
with open("x") as j: k = 1
gone = 1
del gone
"""
    entry = python_names_read.read_archive(wheel(tmp_path, {"pack/__init__.py": text}), ["pack"])["pack"]
    assert set(entry["own"]) == {"container_abcs", "a", "b", "c", "d", "e", "F", "g", "h", "i", "j", "k"}
    assert entry["got"] == ["renamed"] and set(entry["plain"]) == {"os", "np", "List"} and not entry["open"]


def test_imports_of_a_module_that_is_no_package(tmp_path):
    text = "from .x import one, two\nfrom os import path\nfrom os import sep as three\n__all__ = ['two']\nfrom a import b as b\n"
    entry = python_names_read.read_archive(wheel(tmp_path, {"pack/mod.py": text}), ["pack"])["pack.mod"]
    assert entry == {"own": ["__all__", "b", "two"], "got": ["one", "three"], "plain": ["path"], "maybe": [], "open": False}


def test_blocks(tmp_path):
    text = """
try:
    from a import one
except ImportError:
    one, two = None, 2
else:
    three = 3
finally:
    four = 4
if TYPE_CHECKING:
    from .x import five
elif True:
    six = 6
else:
    seven = 7
"""
    assert own(tmp_path, {"pack/__init__.py": text}) == {"one", "two", "three", "four", "five", "six", "seven"}


def test_star_imports(tmp_path):
    files = {"pack/__init__.py": "from .listed import *\nfrom .sub import *\nfrom pack.free import *\n",
             "pack/listed.py": "__all__ = ['shown'] + ['also']\n__all__ += ['_later']\nshown = also = _later = hidden = 1\n",
             "pack/free.py": "public = _private = 1\n",
             "pack/sub/__init__.py": "from ..free import public as other\nfrom . import *\n"}
    assert own(tmp_path, files) == {"shown", "also", "_later", "public", "other", "listed", "free", "sub"}


def test_a_star_import_of_an_unknown_module_leaves_the_names_open(tmp_path):
    files = {"pack/__init__.py": "from ._C import *\n", "pack/_C.cpython-312-darwin.so": "", "pack/lib/libc10.so": "", "pack/libx.so": ""}
    entries = python_names_read.read_archive(wheel(tmp_path, files), ["pack"])
    assert set(entries) == {"pack", "pack._C"} and entries["pack"]["open"] and entries["pack._C"]["open"]


def test_stubs(tmp_path):
    files = {"pack/__init__.py": "from ._C import *\nglobals()['x'] = 1\n", "pack/__init__.pyi": "from .a import b as b\ndef c(): ...\n",
             "pack/_C.so": "", "pack/_C.pyi": "d: int\n"}
    entries = python_names_read.read_archive(wheel(tmp_path, files), ["pack"])
    # What the stub of a file that runs has more may be for type checkers alone.
    assert set(entries["pack"]["own"]) == {"d", "_C"} and set(entries["pack"]["maybe"]) == {"b", "c"}
    assert not entries["pack"]["open"]
    assert entries["pack._C"] == {"own": ["d"], "got": [], "plain": [], "maybe": [], "open": False}


def test_stubs_of_torch_tell_what_its_compiled_code_adds(tmp_path):
    files = {"torch/__init__.py": "globals()['x'] = 1\n", "torch/__init__.pyi": "def c(): ...\n", "torch/_C.pyi": "d: int\n"}
    entry = python_names_read.read_archive(wheel(tmp_path, files), ["torch"])["torch"]
    assert set(entry["own"]) == {"c", "_C"} and not entry["maybe"] and not entry["open"]


def test_a_module_that_hands_on_what_it_is_asked_for(tmp_path):
    text = "def __getattr__(asked):\n    from . import _real\n    found = getattr(_real, asked, None)\n    return found or error('no name')\n"
    files = {"pack/__init__.py": "", "pack/core.py": text, "pack/core.pyi": "a: int\n", "pack/_real.py": "a = b = 1\n"}
    assert python_names_read.read_archive(wheel(tmp_path, files), ["pack"])["pack.core"]["open"]


def test_lazy_structure(tmp_path):
    text = """
_import_structure = {"a": ["One"], "b.c": []}
_import_structure["a"].append("Two")
try:
    raise X()
except X:
    from .utils import dummy_objects
    _import_structure["utils.dummy"] = [name for name in dir(dummy_objects)]
else:
    _import_structure["b.c"].extend(["Three", "Four"])
    _import_structure["d"] = ["Five"]
    _import_structure["d"] += ["Six"]
sys.modules[__name__] = _LazyModule(__name__, globals()["__file__"], _import_structure)
"""
    entry = python_names_read.read_archive(wheel(tmp_path, {"pack/__init__.py": text}), ["pack"])["pack"]
    assert {"One", "Two", "Three", "Four", "Five", "Six"} < set(entry["own"]) and not entry["open"]
    assert "c" not in entry["own"]


def test_lazy_attach(tmp_path):
    text = "__getattr__, __dir__, __all__ = lazy.attach(__name__, submodules=['sub'], submod_attrs={'sub': ['one']})\n"
    assert {"sub", "one"} < own(tmp_path, {"pack/__init__.py": text})


def test_define_import_structure(tmp_path):
    files = {"transformers/__init__.py": "import_structure = define_import_structure(here / 'models')\nsys.modules[__name__] = _LazyModule(x)\n",
             "transformers/models/gemma/__init__.py": "",
             "transformers/models/gemma/tok.py": "class Helper: pass\n__all__ = [\n    'GemmaTokenizer',\n]\n",
             "transformers/models/gemma/modular_gemma.py": "__all__ = ['Not']\n",
             "transformers/models/gemma/im.py": "@requires(backends=('torch',))\n@other\nclass Processor(Base): pass\n"}
    found = own(tmp_path, files, "transformers", ["transformers"])
    assert {"GemmaTokenizer", "Processor", "models"} <= found and not {"Not", "Helper"} & found


def test_getattr(tmp_path):
    files = {"pack/a.py": "info = ['one']\n_old = {}\n_old.update({name: 1 for name in info})\ndef __getattr__(name):\n    if name in _old: return 1\n    if name == 'two': return 2\n",
             "pack/b.py": "def __getattr__(name): return getattr(other, name)\n",
             "pack/c.py": "def __getattr__(name): raise AttributeError(_expired[name])\n"}
    entries = python_names_read.read_archive(wheel(tmp_path, files), ["pack"])
    assert {"one", "two"} <= set(entries["pack.a"]["maybe"]) and not entries["pack.a"]["open"]
    assert entries["pack.b"]["open"] and not entries["pack.c"]["open"]


def test_source_archive(tmp_path):
    with tarfile.open(tmp_path / "pack-1.0.tar.gz", "w:gz") as archive:
        for path in ("pack-1.0/setup.py", "pack-1.0/src/pack/mod.py", "pack-1.0/src/pack/tests/test_x.py", "pack-1.0/csrc/pack/no.py"):
            info = tarfile.TarInfo(path)
            info.size = 5
            archive.addfile(info, io.BytesIO(b"x = 1"))
    assert set(python_names_read.read_archive(tmp_path / "pack-1.0.tar.gz", ["pack"])) == {"pack", "pack.mod"}


def test_a_file_that_cannot_be_parsed(tmp_path):
    entry = python_names_read.read_archive(wheel(tmp_path, {"pack/old.py": "def one(): pass\nprint 'x'\ntwo = 1\n"}), ["pack"])["pack.old"]
    assert set(entry["own"]) == {"one", "two"} and entry["open"]


@pytest.mark.parametrize("states, ends", [
    ("PPP", False), ("AAA", False), ("APP", (1, None)), ("PPA", (None, 2)), ("APA", (1, 2)),
    # There, gone, there again.
    ("PAP", False), ("APAP", False),
    # Where it is not known, nothing is claimed, unless a release before or after says it.
    ("UPP", False), ("AUP", False), ("UAP", False), ("UAAAP", (4, None)), ("PUP", False), ("PUA", False), ("PAU", (None, 1)), ("UPA", (None, 2)),
    # Known to a __getattr__: deprecated, perhaps.
    ("PMA", (None, 2)), ("PMP", False), ("AMP", False), ("PMMAA", (None, 3)), ("PM", False),
])
def test_span(states, ends):
    assert python_names.span(states) == ends


def entry(*names):
    return {"own": list(names), "got": [], "plain": [], "maybe": [], "open": False}


def test_rows():
    releases = [("1.0", {"numpy": entry("old", "all")}),
                ("1.1", {"numpy": entry("all", "new", "m"), "numpy.m": entry("x", "y", "new"), "numpy.m._p": entry("z")}),
                ("2.0", {"numpy": entry("all", "new", "m"), "numpy.m": entry("x", "z", "new"), "numpy.m._p": entry("a", "_b")})]
    assert sorted(python_names.rows_of(releases)) == [
        "numpy new 1.1 -", "numpy old - 1.1", "numpy.m * 1.1 -", "numpy.m y 1.1 2.0", "numpy.m z 2.0 -", "numpy.m._p z 1.1 2.0"]


@pytest.mark.parametrize("module, name, new, gone", [
    ("torch.nn", "x", True, True), ("torch", "_x", True, True), ("torch.nn", "_x", False, True),
    ("torch._utils", "x", False, True),
    ("torch.utils._pytree", "x", True, True), ("torch.utils._pytree", "_x", False, False), ("torch._a.b", "x", False, False),
    ("torch._C", "x", False, False), ("torch._inductor.x", "x", False, False), ("torch", "__x__", False, False),
    ("torch", "X_Y", True, True), ("torch.a", "X_Y", False, True), ("monai", "x", True, True), ("monai", "_x", False, False),
    ("monai.a.b", "x", False, True), ("sklearn._x", "x", False, False), ("transformers.models.bert", "x", False, False),
    ("transformers.utils.dummy_pt_objects", "x", False, False),
])
def test_told(module, name, new, gone):
    assert (python_names.told(module, name, False), python_names.told(module, name, True)) == (new, gone)


def test_series():
    class Version:
        def __init__(self, *release):
            self.release = release
    assert [python_names.label(Version(*one), 2) for one in ((2, 4, 1), (0, 0, 31), (3,))] == ["2.4", "0.0.31", "3.0"]
    assert python_names.label(Version(82, 0, 1), 1) == "82" and python_names.label(Version(0, 1, 6), 3) == "0.1.6"
