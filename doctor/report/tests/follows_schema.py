# SPDX-License-Identifier: Apache-2.0
"""follows_schema.py SCHEMAS: whether the JSON on standard input follows the schema that it names, one of that directory."""
import json
import pathlib
import sys

import jsonschema
import referencing


def check_json(text, schemas):
    """By the schema that it names; those of the other commands may be referred to."""
    known = {schema["$id"]: schema for schema in (json.loads(file.read_text()) for file in schemas.glob("*-1.json"))}
    registry = referencing.Registry().with_resources(
        (name, referencing.Resource.from_contents(schema)) for name, schema in known.items())
    report = json.loads(text)
    schema = known[report["$schema"]]
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema, registry=registry).validate(report)
    return report


if __name__ == "__main__":
    check_json(sys.stdin.read(), pathlib.Path(sys.argv[1]))
