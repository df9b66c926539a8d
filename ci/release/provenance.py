# SPDX-License-Identifier: Apache-2.0
"""An in-toto statement with SLSA provenance v1 of the files that one build made:  provenance.py DIR NAME --version V ...

It covers the files in DIR that are for --arch or for every processor, as their names tell, and is written into DIR as NAME.
It has no times, so that two builds write the same bytes. `make.sh --sign` signs it as part of SHA256SUMS.
"""
import argparse
import hashlib
import json
import re
import subprocess
from pathlib import Path


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def cached(build, *names):
    """Entries of CMakeCache.txt without those that name a directory of the building machine."""
    text = Path(build, "CMakeCache.txt").read_text()
    return {name: found.group(1) for name in names if (found := re.search(r"^%s:[A-Z]+=(.*)$" % name, text, re.M))}


def compiler(build):
    """The compiler's name and version as CMake found them when it configured the tree."""
    for path in sorted(Path(build, "CMakeFiles").glob("*/CMakeCXXCompiler.cmake")):
        found = dict(re.findall(r'^set\(CMAKE_CXX_COMPILER_(ID|VERSION) "([^"]*)"', path.read_text(), re.M))
        return "%s %s" % (found["ID"], found["VERSION"])
    return ""


def changed_sources():
    """Whether a tracked file differs from the commit: then the commit alone does not say what was built."""
    shown = subprocess.run(["git", "status", "--porcelain", "--untracked-files=no"], capture_output=True, text=True)
    return bool(shown.stdout.strip())


PROCESSORS = {"x86_64": ("x86_64", "_amd64."), "aarch64": ("aarch64", "_arm64.")}


def is_about(name, arch):
    """Whether a file is for that processor or for none. What other statements say of their own files is not repeated."""
    others = [word for other, words in PROCESSORS.items() if other != arch for word in words]
    return not name.endswith(".provenance.json") and not any(word in name for word in others)


def statement(options):
    subjects = [{"name": path.name, "digest": {"sha256": sha256(path)}} for path in sorted(Path(options.folder).iterdir())
                if is_about(path.name, options.arch)]
    sources = {"name": "scankit sources"}
    if options.commit:
        sources["digest"] = {"gitCommit": options.commit}
        sources["annotations"] = {"changed": changed_sources()}
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": subjects,
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": "urn:scankit:build:ci/release/make.sh:1",
                "externalParameters": {"version": options.version, "arch": options.arch},
                "internalParameters": {"compiler": compiler(options.build),
                                       "cmake": cached(options.build, "CMAKE_BUILD_TYPE", "CMAKE_CXX_FLAGS", "SCANKIT_STATIC",
                                                       "SCANKIT_ASSERTIONS", "SCANKIT_UNITY")},
                "resolvedDependencies": [sources],
            },
            "runDetails": {"builder": {"id": options.builder}},
        },
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("name")
    for option in ("version", "arch", "commit", "builder", "build"):
        parser.add_argument("--" + option, required=True)
    options = parser.parse_args()
    Path(options.folder, options.name).write_text(json.dumps(statement(options), indent=2) + "\n")


if __name__ == "__main__":
    main()
