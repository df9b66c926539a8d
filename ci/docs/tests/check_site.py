# SPDX-License-Identifier: Apache-2.0
"""check_site.py SITE REPOSITORY SCANKIT: whether the built site is whole, as a linter of accessibility would ask."""
import html.parser
import json
import pathlib
import posixpath
import re
import subprocess
import sys
import urllib.parse

LINKS = {"a": "href", "link": "href", "img": "src", "script": "src", "source": "src", "iframe": "src"}


class Page(html.parser.HTMLParser):
    """What of a page is checked."""

    def __init__(self, file):
        super().__init__()
        self.links, self.ids, self.headings, self.images, self.language, self.text = [], set(), [], [], None, []
        self.inside = None
        self.feed(file.read_text())

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if "id" in values:
            self.ids.add(values["id"])
        if tag in LINKS and values.get(LINKS[tag]):
            self.links.append((tag, values[LINKS[tag]], values.get("rel") or ""))
        if re.fullmatch("h[1-6]", tag):
            self.headings.append((int(tag[1]), values.get("id")))
            self.inside = tag
            self.text.append("")
        if tag == "img":
            self.images.append(values.get("alt"))
        if tag == "html":
            self.language = values.get("lang")

    def handle_endtag(self, tag):
        if tag == self.inside:
            self.inside = None

    def handle_data(self, data):
        if self.inside:
            self.text[-1] += data


def linked(name, other, page):
    return any(posixpath.normpath(posixpath.join(posixpath.dirname(name), link)) == other for tag, link, _ in page.links if tag == "a")


def problems_of(name, page, pages, site):
    """Headings in order, one h1, alternative texts, the language; each link of the site leads to a file and an anchor."""
    levels = [level for level, _ in page.headings]
    if levels.count(1) != 1 or levels[0] != 1:
        yield f"{name}: {levels.count(1)} headings of the first level, and the first heading is h{levels[0] if levels else '?'}"
    for before, level in zip(levels, levels[1:]):
        if level > before + 1:
            yield f"{name}: h{level} follows h{before}"
    language, other = ("zh-CN", name.removeprefix("zh/")) if name.startswith("zh/") else ("en", "zh/" + name)
    if page.language != language:
        yield f"{name}: its language is {page.language}, and not {language}"
    if other in pages and not linked(name, other, page):
        yield f"{name}: does not link to the same page in the other language"
    for alt in page.images:
        if not alt or len(alt) < 15:
            yield f"{name}: an image whose alternative text is {alt!r}"
    for tag, link, rel in page.links:
        parts = urllib.parse.urlsplit(link)
        if parts.scheme or parts.netloc:
            # Only what a person follows may lead to another server; a browser asks for everything else by itself.
            if tag != "a" and rel != "canonical":
                yield f"{name}: asks another server for {link}"
            continue
        target = name if not parts.path else str((site / name).parent.joinpath(urllib.parse.unquote(parts.path)).resolve().relative_to(site))
        if not (site / target).is_file():
            yield f"{name}: links to {link}, which does not exist"
        elif parts.fragment and target in pages and urllib.parse.unquote(parts.fragment) not in pages[target].ids:
            yield f"{name}: links to {link}, and that page has no such anchor"


def light(colour):
    values = [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    values = [v / 12.92 if v <= 0.03928 else ((v + 0.055) / 1.055) ** 2.4 for v in values]
    return sum(v * weight for v, weight in zip(values, (0.2126, 0.7152, 0.0722)))


def faint_in(file):
    """Text of a drawing against its paper (WCAG 2.1, 1.4.3); what is drawn needs 3 to 1 (1.4.11)."""
    text = file.read_text()
    paper = re.findall(r'<rect [^>]*height="(?:\d+)"[^>]*fill="(#\w{6})"', text)[0]
    if "<title>" not in text:
        yield f"{file.name}: no title"
    for tag, colour in set(re.findall(r'<(svg|text|rect)[^>]*fill="(#\w{6})"', text)) - {("rect", paper)}:
        a, b = sorted((light(colour), light(paper)))
        if (b + 0.05) / (a + 0.05) < (3 if tag == "rect" else 4.5):
            yield f"{file.name}: {colour} on {paper}"


def missing(pages, root, scankit):
    """Each cause, command and schema has a page, and the page of a cause begins with its error line."""
    run = lambda *words: subprocess.run([scankit, "--lang", "en", *words], check=True, capture_output=True, text=True).stdout  # noqa: E731
    causes = re.findall(r"^  (\w+) +[f-][i-][l-]  ", run("explain"), re.M)
    assert len(causes) > 100, f"scankit explain lists {len(causes)} causes"
    for slug in causes:
        page = pages.get(f"causes/{slug}.html")
        if not page:
            yield f"no page for the cause {slug}"
            continue
        # A cause without an error line is called by its title.
        seen = run("explain", slug).partition("What users see\n")[2].splitlines()
        if seen and seen[0].strip() not in page.text[0]:
            yield f"causes/{slug}.html: its heading is not the error line {seen[0].strip()!r}"
        for heading in ("Why", "How it is proven", "How it is repaired"):
            if not any(heading in text for text in page.text):
                yield f"causes/{slug}.html: no heading {heading!r}"
    commands = json.loads(run("man", "--json"))["commands"]
    wanted = [f"commands/{command['path'].replace(' ', '-') or 'scankit'}.html" for command in commands]
    wanted += [f"schemas/{file.stem}.html" for file in root.glob("**/schema/*-[0-9].json") if "build" not in file.relative_to(root).parts]
    assert len(wanted) > 40, wanted
    yield from (f"no page {name}" for name in wanted if name not in pages)


def main(site, root, scankit):
    pages = {str(file.relative_to(site)): Page(file) for file in sorted(site.glob("**/*.html")) if file.name != "404.html"}
    wrong = [problem for name, page in pages.items() for problem in problems_of(name, page, pages, site)]
    drawings = sorted(site.glob("assets/**/*.svg"))
    assert len(drawings) >= 5, f"only {len(drawings)} drawings"
    wrong += [problem for file in drawings for problem in faint_in(file)] + list(missing(pages, root, scankit))
    print("\n".join(wrong))
    print(f"{'not ok' if wrong else 'ok'}: {len(pages)} pages, {sum(len(p.links) for p in pages.values())} links, {len(drawings)} drawings, {len(wrong)} problems")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve(), sys.argv[3]))
