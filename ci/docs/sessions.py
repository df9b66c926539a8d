# SPDX-License-Identifier: Apache-2.0
"""The page of the recorded sessions: each picture, and its text for those who read or search it."""
import html
import re


def write(pages):
    with (pages / "sessions.md").open("a") as page:
        for name in ("run", "fix", "validate"):
            folder = pages / "assets/sessions"
            title = html.unescape(re.search("<title>([^<]*)</title>", (folder / f"{name}.svg").read_text())[1])
            text = html.escape((folder / f"{name}.txt").read_text(), quote=False)
            page.write(f"\n## scankit {name}\n\n{title}.\n\n![{title}](assets/sessions/{name}.svg)\n\n"
                       f"<details><summary>The text of this session</summary><pre><code>{text}</code></pre></details>\n")
