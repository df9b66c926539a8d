# SPDX-License-Identifier: Apache-2.0
"""formats.py SCHEMAS FILE...: which golden file belongs to which schema, and whether each follows its own.

`N/NAME.json` (or .yaml) is a file of format NAME in version N, as a real run of the release that introduced it wrote it, and
`NAME-N.json` in one of the schema directories describes it. Run as a program it needs jsonschema and yaml, and prints one line
for each file that does not follow its schema.
"""
import json
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[2]


def schemas(root=REPOSITORY):
    """(NAME, N) and the file of every schema of the repository."""
    found = {}
    for file in sorted(root.glob("*/**/schema/*.json")):
        parts = re.fullmatch(r"([a-z-]+)-([0-9]+)", file.stem)
        if parts and file.relative_to(root).parts[0] != "build":
            found[parts[1], int(parts[2])] = file
    return found


def golden(folder=HERE):
    """(NAME, N) and the golden file."""
    return {(file.stem, int(file.parent.name)): file for file in sorted(folder.glob("[0-9]*/*.*"))}


def without_golden(root=REPOSITORY, folder=HERE):
    return sorted(f"{name}-{number}" for name, number in schemas(root).keys() - golden(folder).keys())


def without_schema(root=REPOSITORY, folder=HERE):
    """Golden files, and names of schemas in the sources, that no schema describes."""
    known = schemas(root)
    wrong = {f"{name}-{number}" for name, number in golden(folder).keys() - known.keys()}
    for source in root.glob("[a-z]*/**/*.cc"):
        if source.name.endswith("_test.cc") or source.relative_to(root).parts[0] == "build":
            continue
        for name, number in re.findall(r"urn:scankit:([a-z-]+):([0-9]+)", source.read_text(errors="replace")):
            if (name, int(number)) not in known:
                wrong.add(f"{name}-{number}")
    return sorted(wrong)


def read(file):
    """The document of a golden file."""
    if file.suffix == ".yaml":
        import yaml
        return yaml.safe_load(file.read_text())
    return json.loads(file.read_text())


def problems(file, known):
    import jsonschema
    import referencing
    registry = referencing.Registry().with_resources(
        (schema["$id"], referencing.Resource.from_contents(schema)) for schema in known.values())
    schema = known[file.stem, int(file.parent.name)]
    judge = jsonschema.validators.validator_for(schema)
    judge.check_schema(schema)
    for error in judge(schema, registry=registry).iter_errors(read(file)):
        yield f"{file.parent.name}/{file.name}: {error.json_path}: {error.message[:200]}"


def main(*files):
    known = {key: json.loads(file.read_text()) for key, file in schemas().items()}
    wrong = [line for file in files for line in problems(Path(file).resolve(), known)]
    print("\n".join(wrong) or f"ok: {len(files)} files follow their schemas")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
