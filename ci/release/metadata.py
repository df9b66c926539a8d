# SPDX-License-Identifier: Apache-2.0
"""What a wheel and a source archive say of themselves, from pyproject.toml and CMakeLists.txt; printed when run."""
import re
import tomllib
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[2]


def version():
    return re.search(r"^project\(scankit VERSION ([0-9.]+)", (SOURCES / "CMakeLists.txt").read_text(), re.M).group(1)


def core_metadata():
    """The text of METADATA or PKG-INFO; version 2.4 is the first with License-Expression."""
    project = tomllib.loads((SOURCES / "pyproject.toml").read_text())["project"]
    fields = [("Metadata-Version", "2.4"), ("Name", project["name"]), ("Version", version()),
              ("Summary", project["description"]), ("License-Expression", project["license"])]
    fields += [("License-File", name) for name in project["license-files"]]
    fields += [("Classifier", one) for one in project["classifiers"]]
    fields += [("Requires-Python", project["requires-python"]), ("Description-Content-Type", "text/markdown")]
    return "".join("%s: %s\n" % field for field in fields) + "\n" + (SOURCES / project["readme"]).read_text()


if __name__ == "__main__":
    print(core_metadata(), end="")
