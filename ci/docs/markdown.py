# SPDX-License-Identifier: Apache-2.0
"""Text as Markdown: what the generators of the pages share."""
import re


def text(words):
    """Words of another source in a paragraph or a cell: nothing in them is markup, except `code`."""
    parts = re.split(r"(`[^`\n]+`)", words)
    return "".join(p if p.startswith("`") and len(p) > 1 else re.sub(r"([\\*_{}\[\]<>#|])", r"\\\1", p).replace("\\<", "&lt;").replace("\\>", "&gt;")
                   for p in parts)


def code(words):
    """A span of code, whatever is in it. In a table a | would end the cell, also in code."""
    fence = "``" if "`" in words else "`"
    pad = " " if words.startswith("`") or words.endswith("`") else ""
    return fence + pad + words + pad + fence


def cell(words):
    return words.replace("|", "&#124;").replace("\n", " ")


def code_cell(words):
    return "<code>" + words.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("|", "&#124;") + "</code>"


def block(lines):
    return "".join("    " + line + "\n" for line in lines) + "\n"


def table(heads, rows):
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return "\n".join(lines + ["| " + " | ".join(cell(c) for c in row) + " |" for row in rows]) + "\n\n"


def page(title, heading, body):
    """`title` is plain text for the tab and the search, `heading` its Markdown."""
    quoted = title.replace("\\", "\\\\").replace('"', '\\"')
    return f'---\ntitle: "{quoted}"\n---\n\n# {heading}\n\n{body}'
