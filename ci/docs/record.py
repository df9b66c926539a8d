# SPDX-License-Identifier: Apache-2.0
"""record.py WORK BASE OUT: runs scankit on a pseudo terminal in WORK, and writes what a person sees as OUT/NAME.svg and .txt.

BASE, the environment that torch is taken from, is shown as `base`."""
import html
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests"))
from pty_run import Run  # noqa: E402

SESSIONS = {
    "run": ("run -- venv/bin/python train.py", 1,
            "scankit run starts a command that fails, and prints the root cause and the repair below its output"),
    "fix": ("fix --python venv/bin/python --yes", 0,
            "scankit fix prints its plan, builds the module, installs it and checks that it works"),
    "validate": ("validate --python venv/bin/python --quick --no-timing", 0,
                 "scankit validate compares every result with a reference, and says that they are correct"),
}
COLUMNS, WRAP = 400, 110  # wide enough for each line, so that a path can be shortened before the line is wrapped
INK, PAPER = "#e6edf3", "#0d1117"
COLOURS = {"red": "#ff7b72", "green": "#56d364", "brown": "#e3b341", "blue": "#79c0ff", "magenta": "#d2a8ff", "cyan": "#76e3ea"}
CHAR, LINE, EDGE = 7.3, 17, 14  # pixels


def cells_of(run, names):
    """The lines of the screen, each a list of (character, colour, bold). `names`: paths, and what is shown for each."""
    lines = []
    for y in range(run.screen.cursor.y + 1):
        row = run.screen.buffer[y]
        line = [(row[x].data, row[x].fg, row[x].bold) for x in range(COLUMNS)]
        for path, name in names:
            while (at := "".join(cell[0] or " " for cell in line).find(path)) >= 0:
                line[at:at + len(path)] = [(c, *line[at][1:]) for c in name]
        while line and line[-1][0] == " ":
            line.pop()
        lines.append(line)
    while lines and not lines[-1]:
        lines.pop()
    return lines


def wrapped(line):
    """At the last blank before the edge, with the indentation of the line and two columns more."""
    text = "".join(cell[0] for cell in line)
    indent = len(text) - len(text.lstrip())
    while len(line) > WRAP:
        at = "".join(cell[0] for cell in line).rfind(" ", indent + 3, WRAP)
        at = at if at > 0 else WRAP
        yield line[:at]
        line = [(" ", "default", False)] * (indent + 2) + [c for c in line[at:] if c[0] != " " or at == WRAP or c is not line[at]]
    yield line


def runs_of(line):
    """Neighbours of one style as (text, colour, bold)."""
    found = []
    for data, colour, bold in line:
        if found and found[-1][1:] == (colour, bold):
            found[-1] = (found[-1][0] + data, colour, bold)
        else:
            found.append((data, colour, bold))
    return found


def svg_of(lines, title):
    height, width = int(2 * EDGE + LINE * len(lines)), int(2 * EDGE + CHAR * (WRAP + 1))
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
             f'font-family="ui-monospace, DejaVu Sans Mono, monospace" font-size="12" fill="{INK}"><title>{html.escape(title)}</title>'
             f'<rect width="{width}" height="{height}" rx="6" fill="{PAPER}"/>\n']
    for i, line in enumerate(lines):
        x, y = EDGE, EDGE + LINE * i + 12
        for text, colour, bold in runs_of(line):
            style = (f' fill="{COLOURS[colour]}"' if colour in COLOURS else "") + (' font-weight="bold"' if bold else "")
            if text.strip():
                parts.append(f'<text x="{x:.1f}" y="{y}" textLength="{CHAR * len(text):.1f}" xml:space="preserve"{style}>{html.escape(text)}</text>\n')
            x += CHAR * len(text)
    return "".join(parts) + "</svg>\n"


def main(work, base, out):
    names = ((f"{work}/bin/scankit", "scankit"), (f"{work}/", ""), (work, "."), (base, "base"))
    variables = {"PATH": f"{work}/bin:{os.environ['PATH']}", "HOME": os.environ["HOME"], "TERM": "xterm-256color", "LANG": "C.UTF-8"}
    for name, (words, status, title) in SESSIONS.items():
        run = Run([f"{work}/bin/scankit", *words.split()], COLUMNS, variables, folder=work)
        assert run.status == status, f"scankit {words} ended with {run.status}:\n{run.text()}"
        prompt = [(c, "default", True) for c in f"$ scankit {words}"]
        lines = [part for line in [prompt, *cells_of(run, names)] for part in wrapped(line)]
        (out / f"{name}.svg").write_text(svg_of(lines, title))
        (out / f"{name}.txt").write_text("\n".join("".join(cell[0] for cell in line).rstrip() for line in lines) + "\n")
        print(f"{name}: {len(lines)} lines")


if __name__ == "__main__":
    main(os.path.realpath(sys.argv[1]), os.path.realpath(sys.argv[2]), pathlib.Path(sys.argv[3]))
