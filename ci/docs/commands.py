# SPDX-License-Identifier: Apache-2.0
"""A page for each command, and that of the exit statuses, from `scankit man --json`."""
import json
import subprocess

import markdown as md


def name_of(path):
    return path.replace(" ", "-") or "scankit"


def _text_of(option):
    text = md.text(option["text"])
    if option["choices"] and option["value"].strip("<>[]") != "|".join(option["choices"]):
        text += " (" + ", ".join(option["choices"]) + ")"
    if option["default"] is not None:
        text += f" [default: {option['default']}]"
    notes = [word for word, there in (("required", option["required"]), ("may be repeated", option["repeats"])) if there]
    return text + (" (" + ", ".join(notes) + ")" if notes else "")


def _rows(options):
    return [(md.code_cell(" ".join([", ".join(o["names"]), o["value"]]).strip()), _text_of(o)) for o in options]


def _options(command):
    """In their groups, in the order of the help, in which that of --help comes last."""
    groups = []
    for option in command["options"]:
        if option["group"] not in groups:
            groups.append(option["group"])
    groups.sort(key=lambda group: group == command["options"][0]["group"])
    return "".join(f"## {group}\n\n" + md.table(("option", "meaning"), _rows([o for o in command["options"] if o["group"] == group]))
                   for group in groups)


def page_of(command, known):
    name = "scankit " + command["path"] if command["path"] else "scankit"
    body = md.text(command["text"][:1].upper() + command["text"][1:]) + ".\n\n" + md.block([command["usage"]])
    if command["examples"]:
        body += "## Examples\n\n" + md.block(command["examples"])
    if command["commands"]:
        rows = [(f"[`scankit {path}`]({name_of(path)}.md)", md.text(known[path]["text"])) for path in command["commands"]]
        body += "## Commands\n\n" + md.table(("command", "does"), rows)
    if command["arguments"]:
        body += "## Arguments\n\n" + md.table(("argument", "meaning"), _rows(command["arguments"]))
    body += _options(command)
    if command["combinations"]:
        body += md.text(command["combinations"]) + "\n\n"
    if command["exit_statuses"]:
        body += "## Exit statuses of this command\n\n" + md.table(
            ("status", "means"), [(str(s["status"]), md.text(s["text"])) for s in command["exit_statuses"]])
    return md.page(name, md.code(name), body + "[All exit statuses](../exit-statuses.md) · [all commands](index.md)\n")


def index_of(commands, known):
    rows = [(f"[`scankit {c['path']}`]({name_of(c['path'])}.md)", md.text(c["text"])) for c in commands if not c["commands"]]
    return ("\n## Every command\n\nGenerated from the table from which `--help` and the manual page are made. "
            "[Options of scankit itself](scankit.md).\n\n" + md.table(("command", "does"), rows))


def statuses_of(data):
    body = md.table(("status", "means"), [(str(s["status"]), md.text(s["text"])) for s in data["exit_statuses"]])
    for command in data["commands"]:
        if command["exit_statuses"]:
            path = command["path"]
            body += f"## `scankit {path}`\n\n" + md.table(
                ("status", "means"), [(str(s["status"]), md.text(s["text"])) for s in command["exit_statuses"]])
    return body


def write(scankit, pages):
    data = json.loads(subprocess.run([scankit, "--lang", "en", "man", "--json"], check=True, capture_output=True, text=True).stdout)
    known = {command["path"]: command for command in data["commands"]}
    for command in data["commands"]:
        (pages / "commands" / (name_of(command["path"]) + ".md")).write_text(page_of(command, known))
    with (pages / "commands/index.md").open("a") as index:
        index.write(index_of(data["commands"], known))
    with (pages / "exit-statuses.md").open("a") as page:
        page.write("\n" + statuses_of(data))
