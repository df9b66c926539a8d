# SPDX-License-Identifier: Apache-2.0
"""The figures of a recorded run on a GPU (ci/figures/baselines) as plots and tables: one SVG for each pass."""
import html
import json

import markdown as md

INK, PAPER, OURS, THEIRS = "#1f2328", "#ffffff", "#1a7f5a", "#8250df"
PASSES = {"fwd": "Forward", "bwd": "Backward"}
LEFT, BAR, ROW, WIDTH = 250, 13, 38, 720  # pixels; a row has two bars


def _bar(y, ms, most, colour):
    length = max(1.0, (WIDTH - LEFT - 90) * ms / most)
    return (f'<rect x="{LEFT}" y="{y}" width="{length:.1f}" height="{BAR}" fill="{colour}"/>'
            f'<text x="{LEFT + length + 6:.1f}" y="{y + BAR - 2}">{ms:.3f} ms</text>')


def plot(rows, title, description):
    """`rows`: (shape, ours, theirs) in ms. The text is in the file, so that the page asks for no font."""
    most, height = max(max(ours, theirs) for _, ours, theirs in rows), 54 + ROW * len(rows)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img" '
             f'font-family="sans-serif" font-size="12" fill="{INK}"><title>{html.escape(title)}</title>'
             f'<desc>{html.escape(description)}</desc><rect width="{WIDTH}" height="{height}" fill="{PAPER}"/>'
             f'<text x="12" y="22" font-size="15" font-weight="bold">{html.escape(title)}</text>']
    for x, colour, name in ((LEFT, OURS, "scankit"), (LEFT + 110, THEIRS, "mamba-ssm's own build")):
        parts.append(f'<rect x="{x}" y="32" width="12" height="12" fill="{colour}"/><text x="{x + 18}" y="42">{name}</text>')
    for i, (shape, ours, theirs) in enumerate(rows):
        y = 54 + ROW * i
        parts += [f'<text x="12" y="{y + BAR + 4}">{html.escape(shape)}</text>', _bar(y, ours, most, OURS), _bar(y + BAR + 1, theirs, most, THEIRS)]
    return "".join(parts) + "</svg>\n"


def _rows(figures, which, group=None):
    return [(f["key"].removeprefix("scan "), f["sides"]["module"]["ms"], f["sides"]["against"]["ms"]) for f in figures
            if f["pass"] == which and "ms" in f["sides"].get("against", {}) and group in (None, f["group"])]


def section_of(recorded, pages):
    """Writes the plots, and returns what the page says of them."""
    gpu, body = recorded["gpu"], ""
    for which, name in PASSES.items():
        rows = _rows(recorded["figures"], which, "goals")
        file = f"assets/{gpu.replace(' ', '-').lower()}-{which}.svg"
        title = f"{name}, one call on {gpu}"
        worst = min(theirs / ours for _, ours, theirs in rows)
        says = f"{title}: scankit takes less time than mamba-ssm's own build in all {len(rows)} shapes, {worst:.1f} times as fast at least"
        assert worst > 1, f"{file}: the sentence is not true"
        (pages / file).write_text(plot(rows, title, says))
        body += f"![{says}]({file})\n\n"
    body += f"### Every measured call on {gpu}\n\nMedians in ms, with torch {recorded['torch']}.\n\n"
    rows = [(md.code_cell(shape), PASSES[which].lower(), f"{ours:.3f}", f"{theirs:.3f}", f"{theirs / ours:.2f}")
            for which in PASSES for shape, ours, theirs in _rows(recorded["figures"], which)]
    return body + md.table(("shape", "pass", "scankit", "mamba-ssm's own", "times as fast"), rows)


def write(root, pages):
    body = ""
    for file in sorted((root / "ci/figures/baselines").glob("*.json")):
        recorded = json.loads(file.read_text())
        body += f"\n## Plots: {recorded['gpu']}\n\nFrom the recorded run `{file.relative_to(root)}`.\n\n" + section_of(recorded, pages)
    with (pages / "figures.md").open("a") as page:
        page.write(body)
