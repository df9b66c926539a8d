# SPDX-License-Identifier: Apache-2.0
"""What standard_library_names.py asks interpreters, and its table against the Python that runs this.  pytest FILE"""
import importlib
import sys
import warnings
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import python_names  # noqa: E402
import standard_library_names as names  # noqa: E402

TABLE = HERE.parent.parent / "doctor/knowledge/standard_library.txt"


def rows():
    for line in TABLE.read_text().splitlines():
        if not line.startswith("#"):
            yield line.split()


def number(series):
    return tuple(map(int, series.split(".")))


def has(first, gone):
    """Whether this Python should have what a row speaks of."""
    here = sys.version_info[:2]
    return (first == "-" or number(first) <= here) and (gone == "-" or here < number(gone))


@pytest.fixture(scope="module")
def here():
    return names.ask(sys.executable, {})["modules"]


def test_an_interpreter_tells_its_modules_and_what_is_their_own(here):
    assert {"collections", "collections.abc", "os.path", "json.decoder", "math", "sys"} <= set(here)
    assert not {"antigravity", "this", "test", "_io", "posix"} & set(here)
    assert "OrderedDict" in here["collections"] and "getcwd" in here["os"] and "sqrt" in here["math"]
    assert "enum" not in here["re"] and "sys" not in here["os"] and "Iterable" not in here["configparser"]


def test_what_an_attribute_hook_knows_is_asked_for():
    asked = {"collections": ["OrderedDict", "no_such_name"], "importlib": ["import_module"]}
    answer = names.ask(sys.executable, asked)["modules"]
    assert answer["collections"] == ["OrderedDict"] and answer["importlib"] == ["import_module"] and answer["json"] == []


def test_an_interpreter_that_fails_is_named(tmp_path):
    with pytest.raises(SystemExit, match="false: exit status 1"):
        names.ask("/bin/false", {})


def test_rows_name_the_versions():
    found = [("2.7", {"a": names.entry(["x"]), "old": names.entry(["y"])}), ("3", {"a": names.entry(["x", "z"])}),
             ("3.10", {"a": names.entry(["z"]), "b": names.entry(None)}), ("3.11", {"a": names.entry(["z"]), "b": names.entry(["c"])})]
    rows = set(python_names.rows_of(found))
    assert rows == {"a x - 3.10", "a z 3 -", "old * - 3", "b * 3.10 -"}
    assert names.series([2, 7]) == "2.7" and names.series([3, 6]) == "3" and names.series([3, 7]) == "3.7"


def test_the_table_is_right_of_this_python(here):
    """Modules that a distribution leaves out (tkinter) count only where they are there but should not be. Repairs of security
    are published for old versions, too, and bring names: of 3.11.2, 17 of 2080 rows are wrong, nine of them in tarfile."""
    tried, wrong = 0, []
    for module, name, first, gone in rows():
        if name == "*":
            tried += 1
            if module in here and not has(first, gone):
                wrong.append(module)
        elif here.get(module) is not None:
            tried += 1
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                there = hasattr(importlib.import_module(module), name)
            # A submodule is an attribute only once it was imported.
            if there != has(first, gone) and f"{module}.{name}" not in here:
                wrong.append(f"{module}.{name}")
    assert tried > 1500
    assert len(wrong) < tried / 100, f"{len(wrong)} of {tried} rows are wrong of {sys.version.split()[0]}: {wrong[:20]}"
