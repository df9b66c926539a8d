# SPDX-License-Identifier: Apache-2.0
"""ctest_list.py FOLDER...: the CTest tests of the pytest suites in these folders, as calls of CMake's scankit_pytest().

It reads the sources without importing them, so that configuring needs neither pytest nor torch.
A test's CTest name is GROUP.NAME, where NAME is the function without `test_`, and GROUP the group of the file:

    pytestmark = pytest.mark.ctest(group="places", labels="ci;e2e")   # holds for every test of the file

    @pytest.mark.ctest(labels="matrix;e2e", timeout=900)              # and this for one, over that of the file
    def test_uv(...):                                                 # the CTest test places.uv

Without a group the name is the function's (`logs`). A parametrised test is one CTest test for each value: NAME.VALUE
(`fuzz.elf`), or GROUP.VALUE where the group is the function's own name. `@pytest.mark.parametrize("name", FAULTS)` stands
for every fault of faults_*.py, whose @fault(...) gives the labels and the time limit, HEALTHY for
every @healthy(...) of healthy_*.py. `depends="printed"`: after all other
tests of that group; `condition="SCANKIT_STATIC"`: only where that CMake option is on. All these arguments are literals.
"""
import ast
import sys
from pathlib import Path

USUAL = {"group": "", "labels": "ci;e2e", "timeout": 300, "fixtures": "", "processors": 1}


def call_of(node, *names):
    """The keyword arguments of a call of the dotted name that ends so, or None."""
    if isinstance(node, ast.Call) and ast.unparse(node.func) in names:
        return {word.arg: ast.literal_eval(word.value) for word in node.keywords if word.arg != "ids"}
    return None


def marks(nodes):
    found = {}
    for node in nodes:
        found.update(call_of(node, "pytest.mark.ctest") or {})
    return found


def registered(folder, files, decorator_name):
    """Name and arguments of @fault or @healthy, of every function that has it."""
    for file in sorted(folder.glob(files)):
        for function in ast.parse(file.read_text()).body:
            for decorator in getattr(function, "decorator_list", []):
                arguments = call_of(decorator, decorator_name)
                if arguments is not None:
                    yield function.name, arguments


def fault_options(test, arguments):
    """What differs from the usual for one fault in one of the tests that take every fault."""
    if test == "printed":
        return {"labels": f"{arguments['printed']};e2e"} if "printed" in arguments else {}
    options = {"timeout": arguments["timeout"]} if "timeout" in arguments else {}
    return {**options, "labels": "matrix;e2e"} if arguments.get("matrix") else options


def values_of(function, folder, name):
    """(value, options) of each parameter; one (None, {}) where the test has none."""
    for decorator in function.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.parametrize":
            values = ast.unparse(decorator.args[1])
            if values == "FAULTS":
                return [(fault, fault_options(name, arguments)) for fault, arguments in registered(folder, "faults_*.py", "fault")]
            if values == "HEALTHY":
                return [(one, {key: arguments[key] for key in ("labels", "timeout") if key in arguments})
                        for one, arguments in registered(folder, "healthy_*.py", "healthy")]
            return [(value, {}) for value in ast.literal_eval(decorator.args[1])]
    return [(None, {})]


def tests_of(folder):
    for file in sorted(folder.glob("test_*.py")):
        body = ast.parse(file.read_text()).body
        of_file = marks(node.value for node in body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark")
        for function in body:
            if not isinstance(function, ast.FunctionDef) or not function.name.startswith("test_"):
                continue
            name = function.name.removeprefix("test_")
            usual = {**USUAL, **of_file, **marks(function.decorator_list)}
            for value, options in values_of(function, folder, name):
                test = {**usual, **options}
                parts = [test.pop("group"), name, value]
                if parts[0] == name:
                    del parts[1]
                yield ".".join(part for part in parts if part), f"{file.name}::{function.name}" + (f"[{value}]" if value else ""), test


if __name__ == "__main__":
    seen = {}
    for folder in map(Path, sys.argv[1:]):
        for name, test, options in tests_of(folder):
            if name in seen:
                sys.exit(f"{test} and {seen[name]} are both the CTest test {name}")
            seen[name] = test
            words = " ".join(f'{key.upper()} "{value}"' for key, value in options.items())
            print(f'scankit_pytest([==[{name}]==] [==[{test}]==] {words})')
