# SPDX-License-Identifier: Apache-2.0
"""Documents of the repository as pages. They stay where they are; a link between two of them leads to the page."""
import re

PAGES = {"ARCHITECTURE.md": "design.md", "SECURITY.md": "security.md", "kernels/README.md": "kernels.md",
         "doctor/run/transcripts.md": "transcripts.md", "envspec/suggest/followed.md": "followed.md"}
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)#:\s]+)(#[^)\s]*)?\)")


def _linked(text, folder, root):
    """A link to a file that has no page becomes the path of the file in the repository."""
    def replaced(match):
        target = (folder / match[2]).resolve().relative_to(root.resolve()).as_posix()
        if target in PAGES:
            return f"[{match[1]}]({PAGES[target]}{match[3] or ''})"
        return f"{match[1]} (`{target}`)"
    return LINK.sub(replaced, text)


def glossary(text):
    """ARCHITECTURE.md's table of terms."""
    return text[text.index("## Glossary"):].split("\n", 1)[1].strip() + "\n"


def write(root, pages):
    for source, name in PAGES.items():
        text = (root / source).read_text()
        (pages / name).write_text(_linked(text, (root / source).parent, root))
    with (pages / "glossary.md").open("a") as page:
        page.write("\n" + glossary((root / "ARCHITECTURE.md").read_text()))
