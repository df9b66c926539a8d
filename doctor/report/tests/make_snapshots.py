# SPDX-License-Identifier: Apache-2.0
"""make_snapshots.py TESTS FOLDER readers|browser: recorded machines as they are, broken by cases, and with text that hurts."""
import json
import pathlib
import re
import sys

import yaml

# What each reader could take for its own: XML, HTML, Markdown, workflow commands, terminals, mentions, links.
HOSTILE = (
    "|`</script><script>window.hit=1;alert(1)</script><img src=x onerror=\"window.hit=1\">'%0A::error::\x1b[31m\r\n"
    "::error::owned\uffff]]> @you #1 www.example.test http://example.test \u202e*_~$![a](http://example.test) &lt; <!-- "
) + "w" * 120
# Fields whose values the tool itself writes; another word there is another fact.
FACTS = {"state", "outcome", "variant", "string_abi", "file_state", "kind", "owner", "schema", "machine", "sm", "role", "cause"}


def at(document, pointer, value):
    *parents, last = [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]
    for part in parents:
        document = document[int(part)] if isinstance(document, list) else document[part]
    if not isinstance(document, list):
        document[last] = value
    elif last == "-":
        document.append(value)
    else:
        document[int(last)] = value


def hurt(value, key=""):
    if isinstance(value, str):
        return value if key in FACTS else value + HOSTILE
    if isinstance(value, list):
        return [hurt(entry, key) for entry in value[:40]]
    if isinstance(value, dict):
        return {name: hurt(entry, name) for name, entry in value.items()}
    return value


def merged(document, patch):
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    result = dict(document) if isinstance(document, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result


def machine(name):
    return json.loads((tests / "machines" / name / "snapshot.json").read_text())


def each_text(value, change):
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [each_text(entry, change) for entry in value]
    if isinstance(value, dict):
        return {name: each_text(entry, change) for name, entry in value.items()}
    return value


def expanded(value):
    """`$NAME`, `$NAME ARGUMENT` and `$SITE` as doctor/checks/recorded_cases.cc expands them."""
    def put(text):
        fragment = re.fullmatch(r"\$(\w+)(?: (\S+))?", text)
        if not fragment or fragment[1] not in fragments:
            return text.replace("$SITE", "/home/user/project/.venv/lib/python3.11/site-packages")
        argument = fragment[2] or ""
        return expanded(each_text(fragments[fragment[1]],
                                  lambda inner: int(argument) if inner == "$1" and argument.isdigit() else inner.replace("$1", argument)))
    return each_text(value, put)


def case(name):
    check, situation = name.split(".")
    test = expanded({str(key): value for key, value in yaml.safe_load((tests / "cases" / f"{check}.yaml").read_text()).items()}[situation])
    snapshot = merged(machine(test.get("base", "cpu_torch211")), test.get("patch", {}))
    for pointer, value in test.get("at", {}).items():
        at(snapshot, pointer, value)
    return snapshot


tests, folder, many = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3] == "readers"
fragments = yaml.safe_load((tests / "cases" / "fragments.yaml").read_text())
cpu = machine("cpu_torch211")
made = {"healthy": cpu, "h200": machine("h200_torch211")}
for name in ("torch_symbols_resolve.old_wheel", "file_is_whole.vanished", "every_extension_loads.old_torch_module"):
    made[name] = case(name)
made["hostile"] = merged(hurt(made["torch_symbols_resolve.old_wheel"]), {"modules": cpu["modules"]})
# What decides whether there are findings keeps its value.
for mine, theirs in zip(made["hostile"]["extensions"]["value"], cpu["extensions"]["value"]):
    mine.update({field: theirs[field] for field in ("module", "tag", "sys_path_index")})
fixed = ("soabi", "extension_suffixes", "version", "implementation")
made["hostile"]["python"]["value"].update({field: cpu["python"]["value"][field] for field in fixed})
made["hostile"]["audit"] = hurt(made["every_extension_loads.old_torch_module"]["audit"])
if many:  # one case of each check
    for path in sorted((tests / "cases").glob("*.yaml")):
        if path.stem != "fragments":
            made[path.stem] = case(f"{path.stem}.{min(map(str, yaml.safe_load(path.read_text())))}")
for name, snapshot in made.items():
    (folder / f"{name}.snapshot.json").write_text(json.dumps(snapshot))
