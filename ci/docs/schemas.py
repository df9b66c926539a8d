# SPDX-License-Identifier: Apache-2.0
"""A page of tables for each published JSON schema."""
import json

import markdown as md

FOLDERS = ("doctor/report/schema", "doctor/model/schema", "doctor/declared/schema", "builder/schema", "envspec/schema", "ci/gate/schema", "ci/fleet/schema",
           "validate/report/schema")


def files(root):
    return sorted(file for folder in FOLDERS for file in (root / folder).glob("*-*.json"))


def _reference(target, here):
    place, _, inner = target.partition("#")
    if not inner:
        return f"the document `{place}`"
    name = inner.rsplit("/", 1)[-1]
    return f"[{name}](#{name.lower()})" if not place or place == here else f"`{target}`"


def kind(schema, here):
    """The type of a value in a few words."""
    if schema is True or not schema:
        return "anything"
    if "$ref" in schema:
        return _reference(schema["$ref"], here)
    if "const" in schema:
        return "always " + md.code_cell(json.dumps(schema["const"]))
    if "enum" in schema:
        return " or ".join(md.code_cell(json.dumps(value)) for value in schema["enum"])
    for key in ("oneOf", "anyOf"):
        if key in schema:
            return " or ".join(dict.fromkeys(kind(one, here) for one in schema[key]))
    types = schema.get("type", "object" if "properties" in schema else "anything")
    words = " or ".join([types] if isinstance(types, str) else types)
    if "items" in schema and isinstance(schema["items"], dict):
        words += " of " + kind(schema["items"], here)
    if isinstance(schema.get("additionalProperties"), dict) and "properties" not in schema:
        words += " of " + kind(schema["additionalProperties"], here)
    return words


def rows_of(schema, here, path=""):
    """One row a field, those of inner objects under the path to them. A field that is referred to has a table of its own."""
    rows = []
    for name, field in schema.get("properties", {}).items():
        field = field if isinstance(field, dict) else {}
        place = path + name
        rows.append((md.code_cell(place), kind(field, here), "yes" if name in schema.get("required", []) else "",
                     md.text(field.get("description", ""))))
        inner, place = (field["items"], place + "[]") if isinstance(field.get("items"), dict) else (field, place)
        rows += rows_of(inner, here, place + ".")
        for value in (field.get("additionalProperties"), field.get("items", {}).get("additionalProperties") if isinstance(field.get("items"), dict) else 0):
            if isinstance(value, dict):
                rows += rows_of(value, here, place + ".*.")
    for key in ("oneOf", "anyOf", "allOf"):
        for one in schema.get(key, []):
            rows += [row for row in rows_of(one, here, path) if row not in rows]
    return rows


def page_of(schema, file, root):
    here, heads = schema.get("$id", ""), ("field", "type", "required", "meaning")
    body = f"{md.text(schema['title'])}.\n\nIdentifier {md.code(here)}, file {md.code(str(file.relative_to(root)))}. "
    body += "[What stays compatible](../compatibility.md) · [all schemas](index.md)\n\n## Fields\n\n"
    rows = rows_of(schema, here)
    body += md.table(heads, rows) if rows else f"The document is {kind(schema, here)}.\n\n"
    for name, inner in {**schema.get("$defs", {}), **schema.get("definitions", {})}.items():
        body += f"## {name}\n\n" + (md.text(inner["description"]) + "\n\n" if "description" in inner else "")
        rows = rows_of(inner, here)
        body += md.table(heads, rows) if rows else f"{kind(inner, here)}\n\n"
    return md.page(file.stem, md.code(file.stem), body)


def write(root, pages):
    (pages / "schemas").mkdir()
    rows = []
    for file in files(root):
        schema = json.loads(file.read_text())
        (pages / "schemas" / (file.stem + ".md")).write_text(page_of(schema, file, root))
        rows.append((f"[`{file.stem}`]({file.stem}.md)", md.text(schema["title"])))
    body = ("What scankit writes and reads as JSON or YAML, one table a format. The number at the end of a name is that of the schema: "
            "see [what stays compatible](../compatibility.md).\n\n" + md.table(("schema", "of what"), rows))
    (pages / "schemas/index.md").write_text(md.page("JSON schemas", "JSON schemas", body))
