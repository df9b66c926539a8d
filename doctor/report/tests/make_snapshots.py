# SPDX-License-Identifier: Apache-2.0
"""make_snapshots.py TESTS FOLDER: recorded machines as they are, broken by cases, and with text that hurts."""
import json
import pathlib
import sys

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
    if isinstance(document, list):
        document[int(last)] = value
    else:
        document[last] = value


def hurt(value, key=""):
    if isinstance(value, str):
        return value if key in FACTS else value + HOSTILE
    if isinstance(value, list):
        return [hurt(entry, key) for entry in value[:40]]
    if isinstance(value, dict):
        return {name: hurt(entry, name) for name, entry in value.items()}
    return value


def broken(machine, *cases):
    snapshot = json.loads(json.dumps(machine))
    for case in cases:
        for pointer, value in json.loads((tests / "cases" / f"{case}.json").read_text()).get("at", {}).items():
            at(snapshot, pointer, value)
    return snapshot


tests, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
cpu = json.loads((tests / "machines/cpu_torch211/snapshot.json").read_text())
made = {
    "healthy": cpu,
    "h200": json.loads((tests / "machines/h200_torch211/snapshot.json").read_text()),
    "old_wheel": broken(cpu, "torch_symbols_resolve.old_wheel"),
    "vanished": broken(cpu, "file_is_whole.vanished"),
}
made["hostile"] = hurt(broken(cpu, "torch_symbols_resolve.old_wheel"))
# The module alone keeps its path, so that there are findings too.
made["hostile"]["modules"] = cpu["modules"]
for mine, theirs in zip(made["hostile"]["extensions"]["value"], cpu["extensions"]["value"]):
    for field in ("module", "tag", "sys_path_index"):
        mine[field] = theirs[field]
for field in ("soabi", "extension_suffixes", "version", "implementation"):
    made["hostile"]["python"]["value"][field] = cpu["python"]["value"][field]
for name, snapshot in made.items():
    (folder / f"{name}.snapshot.json").write_text(json.dumps(snapshot))
