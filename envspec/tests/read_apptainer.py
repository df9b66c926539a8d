# SPDX-License-Identifier: Apache-2.0
"""read_apptainer.py FILE: the sections of an Apptainer definition as JSON, by spython, which reads such files for others."""
import json
import sys

from spython.main.parse.parsers import SingularityParser

recipe = SingularityParser(sys.argv[1]).recipe["spython-base"]
print(json.dumps({"from": recipe.fromHeader, "files": [line.split() for line in recipe.files], "post": recipe.install}))
