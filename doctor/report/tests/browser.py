# SPDX-License-Identifier: Apache-2.0
"""browser.py BROWSER PAGE...: opens each page in a headless browser, in light and dark, wide and on a phone."""
import pathlib
import re
import sys

from playwright.sync_api import sync_playwright

POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')
# Every text against what lies behind it (WCAG 2.1, 1.4.3), every bar, and whether anything leaves the screen.
LOOK = """() => {
  document.querySelectorAll('details').forEach(element => element.open = true);
  const numbers = color => color.match(/[0-9.]+/g).map(Number);
  const light = color => numbers(color).slice(0, 3).map(v => v / 255)
    .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = element => {
    for (; element; element = element.parentElement) {
      const color = getComputedStyle(element).backgroundColor;
      if (numbers(color)[3] !== 0) return color;
    }
    return 'rgb(255, 255, 255)';
  };
  let faint = [];
  for (const element of document.body.querySelectorAll('*')) {
    const text = [...element.childNodes].filter(n => n.nodeType === 3 && n.data.trim()).length;
    if (!text || element.closest('svg')) continue;
    const [a, b] = [light(getComputedStyle(element).color), light(behind(element))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) faint.push(element.tagName + '.' + element.className + ' ' + contrast.toFixed(2));
  }
  const outside = [...document.body.querySelectorAll('*')]
    .filter(e => e.getBoundingClientRect().right > innerWidth + 1).map(e => e.tagName);
  const squeezed = [...document.querySelectorAll('td')]
    .filter(e => e.clientWidth < 90 && e.textContent.length > 30).map(e => e.textContent);
  const plots = [...document.querySelectorAll('svg.plot')].map(svg => {
    const box = svg.getBoundingClientRect(), shapes = [...svg.querySelectorAll('circle, rect, polyline')];
    const [ink, paper] = [light(getComputedStyle(svg.querySelector('text')).fill), light(behind(svg))];
    return {named: svg.querySelector('title').textContent, width: box.width, shapes: shapes.length,
            contrast: (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05),
            outside: [...shapes, ...svg.querySelectorAll('text')].map(shape => shape.getBoundingClientRect())
              .filter(r => r.left < box.left - 1 || r.right > box.right + 1 || r.top < box.top - 1 || r.bottom > box.bottom + 1)
              .length};
  });
  const bars = [...document.querySelectorAll('svg:not(.plot)')].map(svg => ({
    width: svg.getBoundingClientRect().width, named: svg.querySelector('title').textContent,
    sum: [...svg.querySelectorAll('rect')].reduce((sum, r) => sum + r.width.baseVal.value, 0)}));
  return {faint, outside, squeezed, bars, plots, width: document.documentElement.scrollWidth, hit: window.hit === undefined ? 0 : 1,
          scripts: document.scripts.length, images: document.images.length, back: behind(document.body),
          heading: document.querySelector('h1').textContent};
}"""


def opened(browser, url, scheme, size):
    context = browser.new_context(color_scheme=scheme, viewport={"width": size[0], "height": size[1]})
    page, said = context.new_page(), []
    page.on("console", lambda message: said.append(f"console {message.type}: {message.text}"))
    page.on("pageerror", lambda error: said.append(f"error: {error}"))
    page.on("dialog", lambda dialog: (said.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    page.on("request", lambda request: request.url == url or request.url.startswith("data:") or said.append(request.url))
    page.goto(url)
    seen = page.evaluate(LOOK)
    context.close()
    assert not said, said
    assert seen["hit"] == 0 and seen["scripts"] == 0 and seen["images"] == 0, seen
    assert seen["width"] <= size[0] and not seen["outside"], (size, seen["width"], seen["outside"][:5])
    assert not seen["squeezed"], (size, seen["squeezed"][:2])
    assert not seen["faint"], (scheme, seen["faint"][:5])
    assert seen["bars"] or seen["plots"], "nothing is drawn"
    assert all(bar["named"] and bar["width"] > 100 and bar["sum"] > 990 for bar in seen["bars"]), seen["bars"]
    for plot in seen["plots"]:
        assert plot["named"] and plot["width"] > 250 and plot["shapes"] and not plot["outside"] and plot["contrast"] > 4.5, plot
    return seen


with sync_playwright() as playwright:
    browser = playwright.chromium.launch(executable_path=sys.argv[1])
    for name in sys.argv[2:]:
        page = pathlib.Path(name).resolve()
        backs = set()
        # Once without the page's own policy: what a file says must be text by escaping alone.
        bare = page.with_suffix(".bare.html")
        bare.write_text(POLICY.sub("", page.read_text(), count=1))
        assert bare.stat().st_size < page.stat().st_size, "the page has no policy"
        for scheme, size in (("light", (1280, 800)), ("dark", (1280, 800)), ("light", (390, 844)), ("dark", (390, 844))):
            backs.add((scheme, opened(browser, page.as_uri(), scheme, size)["back"]))
        opened(browser, bare.as_uri(), "light", (390, 844))
        assert len(backs) == 2 and len({back for _, back in backs}) == 2, f"light and dark look alike: {backs}"
        print("ok:", page.name)
    browser.close()
