# SPDX-License-Identifier: Apache-2.0
"""Whether the files of a release agree with each other:  consistent.py DIR COMMIT

Each statement of provenance is about this commit and about files beside it, with their hashes; every file is in one.
"""
import hashlib
import json
import sys
from pathlib import Path


def check(folder, commit):
    there = {one.name: hashlib.sha256(one.read_bytes()).hexdigest() for one in folder.iterdir()
             if one.name != "SHA256SUMS" and not one.name.endswith(".provenance.json")}
    told = {}
    for path in sorted(folder.glob("*.provenance.json")):
        statement = json.loads(path.read_text())
        assert (statement["_type"], statement["predicateType"]) == ("https://in-toto.io/Statement/v1", "https://slsa.dev/provenance/v1")
        definition = statement["predicate"]["buildDefinition"]
        assert definition["resolvedDependencies"][0]["digest"] == {"gitCommit": commit}, path
        arch = definition["externalParameters"]["arch"]
        assert path.name.endswith("-linux-%s.provenance.json" % arch), path
        files = {one["name"]: one["digest"]["sha256"] for one in statement["subject"]}
        foreign = [name for name in files if ("aarch64" in name or "arm64" in name) != (arch == "aarch64") and "64." in name]
        assert not foreign, (path.name, foreign)
        assert {name: there[name] for name in files} == files, path
        told.update(files)
        document = json.loads((folder / path.name.replace("provenance", "spdx")).read_text())
        assert document["spdxVersion"] == "SPDX-2.3" and document["name"].endswith("-linux-" + arch), path
    assert told == there, set(told) ^ set(there)


if __name__ == "__main__":
    check(Path(sys.argv[1]), sys.argv[2])
