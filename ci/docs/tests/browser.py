# SPDX-License-Identifier: Apache-2.0
"""browser.py BROWSER SITE PICTURES: opens every page of the site from its files in a headless browser, as a reader would.

Each is there in a second and asks no other server for anything; some are opened in dark and on a phone too. The search finds the
symbol and the library that an error line names, and for each pasted line the page of its cause first. Three pages are kept as
pictures. Then damages are planted, each of which must be seen."""
import pathlib
import re
import sys
import time

from playwright.sync_api import sync_playwright

import check_site

LIMIT = 1.0  # seconds until a page is there
# Every text against what is behind it (WCAG 2.1, 1.4.3); what is hidden or drawn in pictures is left out.
LOOK = """() => {
  const numbers = color => color.match(/[0-9.]+/g).map(Number);
  const over = (top, below) => { const a = top[3] ?? 1; return [0, 1, 2].map(i => top[i] * a + below[i] * (1 - a)); };
  const light = color => color.map(v => v / 255).map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = element => {
    const layers = [];
    for (; element; element = element.parentElement) {
      const color = numbers(getComputedStyle(element).backgroundColor);
      if (color[3] !== 0) layers.push(color);
      if ((color[3] ?? 1) === 1) break;
    }
    return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255]);
  };
  const faint = [];
  for (const element of document.querySelectorAll('.md-content *, .md-nav--primary *, .md-footer *, .md-header *')) {
    const text = [...element.childNodes].some(n => n.nodeType === 3 && n.data.trim());
    const style = getComputedStyle(element), box = element.getBoundingClientRect();
    if (!text || !box.width || style.visibility === 'hidden' || style.opacity === '0' || element.closest('svg')) continue;
    const paper = behind(element), ink = over(numbers(style.color), paper);
    const [a, b] = [light(ink), light(paper)];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) faint.push(`${element.tagName}.${element.className} "${element.textContent.slice(0, 20)}" ${contrast.toFixed(2)}`);
  }
  return {faint, width: document.documentElement.scrollWidth, heading: document.querySelector('h1')?.textContent};
}"""


def opened(context, url, wrong):
    """Seconds until the page is loaded, and what was seen of it. Whatever it says or asks for is a problem."""
    page = context.new_page()
    page.on("console", lambda message: wrong.append(f"{url}: console {message.type}: {message.text}"))
    page.on("pageerror", lambda error: wrong.append(f"{url}: {error}"))
    page.on("request", lambda request: request.url.startswith(("file:", "data:", "blob:", "about:")) or wrong.append(f"{url} asks for {request.url}"))
    began = time.monotonic()
    page.goto(url, wait_until="load")
    return time.monotonic() - began, page


def look_at(browser, pages, site, scheme, size, wrong):
    context = browser.new_context(color_scheme=scheme, viewport={"width": size[0], "height": size[1]})
    slowest = (0, "")
    for file in pages:
        took, page = opened(context, file.as_uri(), wrong)
        name, seen = str(file.relative_to(site)), page.evaluate(LOOK)
        slowest = max(slowest, (took, name))
        wrong += [f"{name} ({scheme}): too faint: {text}" for text in seen["faint"][:3]]
        if seen["width"] > size[0]:
            wrong.append(f"{name}: {seen['width']} wide on a screen of {size[0]}")
        page.close()
    context.close()
    if slowest[0] > LIMIT:
        wrong.append(f"{slowest[1]} took {slowest[0]:.2f} s")
    return slowest


def search_for(browser, site, text, wanted, wrong):
    """Types `text` into the search of the first page, and follows the first result."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    _, page = opened(context, (site / "index.html").as_uri(), wrong)
    page.click("input.md-search__input")
    page.keyboard.insert_text(text)  # as an input method does; type() knows the keys of no Chinese character
    page.keyboard.press("End")  # the search listens to keys
    try:
        page.wait_for_selector("a.md-search-result__link", timeout=10000)
        found = [link.get_attribute("href") for link in page.query_selector_all("a.md-search-result__link")[:5]]
    except Exception as error:  # a timeout of the browser's driver
        found = [str(error).splitlines()[0]]
    if not any(wanted in link for link in found):
        wrong.append(f"the search for {text!r} finds {found}, and not {wanted}")
    context.close()


# Puts a line into the search as a paste does, and returns the pages that it finds, the first of each page's results.
PASTE = """async line => {
  const box = document.querySelector('input.md-search__input'), list = document.querySelector('.md-search-result__list');
  const pause = ms => new Promise(done => setTimeout(done, ms)), before = list.innerHTML;
  box.value = line;
  box.dispatchEvent(new KeyboardEvent('keyup', {key: 'v', bubbles: true}));
  // The list is emptied, and then the results are drawn a few at a time, the first of them first.
  const drawn = () => list.innerHTML !== before && list.querySelector(':scope > li > a');
  for (let i = 0; i < 500 && !drawn(); i++) await pause(10);
  return [...list.querySelectorAll(':scope > li > a')].slice(0, 3).map(link => link.getAttribute('href'));
}"""
REPORTED = ("ImportError: libcudart.so.12: cannot open shared object file: No such file or directory", ["missing_cudart"])


def headings(site):
    """The error line of each cause's page, and the pages that have it."""
    lines = {}
    for file in sorted((site / "causes").glob("*.html")):
        if file.stem != "index":
            lines.setdefault(check_site.Page(file).text[0].rstrip("\u00b6").strip(), []).append(file.stem)
    return lines


def paste(browser, start, lines, wrong):
    """Each of `lines` into the search of the page `start`: the first hit is a page of its cause."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    _, page = opened(context, start.as_uri(), wrong)
    page.click("input.md-search__input")
    page.keyboard.type("torch")  # once it answers, it is ready
    page.wait_for_selector("a.md-search-result__link", timeout=10000)
    for line, slugs in lines:
        found = page.evaluate(PASTE, line)
        if not any(f"causes/{slug}.html" in (found or [""])[0] for slug in slugs):
            wrong.append(f"the pasted line {line!r} finds {found}, and not {slugs} first")
    context.close()


def see_damages(browser, site, wrong):
    """A copy of a page for each fault that the checks above are for; and the search without what sorts its results."""
    page, text = site / "damaged.html", (site / "faq.html").read_text()
    for said, damage in (("too faint: P. ", "<style>.md-content p { color: #949494 !important; background: #fff }</style>"),
                         ("wide on a screen", "<style>body { width: 3000px }</style>"),
                         ("asks for https://example.org", "<link rel='stylesheet' href='https://example.org/a.css'>")):
        page.write_text(text.replace("</head>", damage + "</head>"))
        seen = []
        look_at(browser, [page], site, "light", (1280, 800), seen)
        if not any(said in line for line in seen):
            wrong.append(f"a page that is {said!r} is not reported: {seen[:3]}")
    start = (site / "index.html").read_text()
    page.write_text(re.sub(r"<script src=\"[^\"]*pasted-line.js\"></script>", "", start))
    assert page.read_text() != start, "the search is not sorted by pasted-line.js"
    seen = []
    paste(browser, page, [REPORTED], seen)
    page.unlink()
    if not any("the pasted line" in line for line in seen):
        wrong.append("without pasted-line.js the pasted line is found, too: nothing is tested")


def keep(browser, site, pictures):
    pictures.mkdir(parents=True, exist_ok=True)
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    for name in ("index", "causes/torch_version_mismatch", "figures"):
        page = context.new_page()
        page.goto((site / f"{name}.html").as_uri())
        page.screenshot(path=pictures / (name.replace("/", "-") + ".png"))
    context.close()


def main(executable, site, pictures):
    pages, wrong = sorted(site.glob("**/*.html")), []
    pages = [page for page in pages if page.name != "404.html"]
    some = [page for page in pages if page.parent == site] + [page for page in pages if page.parent != site][::20]
    line = re.search(r"undefined symbol: (_ZN\w+)", (site / "causes/torch_version_mismatch.html").read_text())[1]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable)
        opened(browser.new_context(), pages[0].as_uri(), wrong)  # the browser itself starts meanwhile
        slowest = max(look_at(browser, pages, site, "light", (1280, 800), wrong),
                      look_at(browser, some, site, "dark", (1280, 800), wrong),
                      look_at(browser, some, site, "light", (390, 844), wrong))
        search_for(browser, site, line, "torch_version_mismatch", wrong)
        search_for(browser, site, "libcudart.so.12: cannot open shared object file", "missing_cudart", wrong)
        # In Chinese: a term, a word in the middle of a sentence, and one with a name.
        for text, page in (("未定义符号", "zh/glossary.html"), ("撤销修复", "zh/faq.html"), ("驱动程序", "zh/how-to/administrator.html"),
                           ("安装 wheel", "zh/install.html")):
            search_for(browser, site, text, page, wrong)
        search_for(browser, site, "pytorch", ".html", wrong)  # a word of many pages, and with it "pytorch#1" of a thread
        lines = headings(site)
        paste(browser, site / "index.html", [*lines.items(), REPORTED], wrong)
        see_damages(browser, site, wrong)
        keep(browser, site, pictures)
        browser.close()
    wrong = list(dict.fromkeys(wrong))
    print("\n".join(wrong[:30]))
    print(f"{'not ok' if wrong else 'ok'}: {len(lines)} pasted lines, {len(pages)} pages, the slowest is {slowest[1]} with {slowest[0]:.2f} s, {len(wrong)} problems")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], pathlib.Path(sys.argv[2]).resolve(), pathlib.Path(sys.argv[3])))
