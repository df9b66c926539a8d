# SPDX-License-Identifier: Apache-2.0
"""A hook of mkdocs: each page has the navigation of its own language, and the switch of languages leads to the same page."""
import copy
import logging
import re

import jieba  # the search divides Chinese into words only if it is installed, and says nothing if it is not
from mkdocs.structure.nav import Section

CHINESE = "中文"  # the section of mkdocs.yml
NOT_TRANSLATED = "英文页面"
LANGUAGES = {"en": "English", "zh-CN": "中文"}
jieba.setLogLevel(logging.WARNING)


def _is_chinese(page):
    return page.file.src_uri.startswith("zh/")


def _in_chinese(page, pages):
    """The translation of an English page, if it has one."""
    return pages.get("zh/" + page.file.src_uri)


def _link(page, language, pages):
    """The page in `language`, else the first page of that language."""
    if (language == "zh-CN") == _is_chinese(page):
        return page.url
    if _is_chinese(page):
        return pages[page.file.src_uri.removeprefix("zh/")].url
    return (_in_chinese(page, pages) or pages["zh/index.md"]).url


def on_page_context(context, page, config, nav):
    pages = {p.file.src_uri: p for p in nav.pages}
    own, chinese = copy.copy(nav), next(item for item in nav.items if item.title == CHINESE)
    if _is_chinese(page):
        english = [p for p in nav.pages if not _is_chinese(p) and not _in_chinese(p, pages)]
        own.items, own.homepage = [*chinese.children, Section(NOT_TRANSLATED, english)], pages["zh/index.md"]
    else:
        own.items = [item for item in nav.items if item is not chinese]
    config = copy.copy(config)
    config["extra"] = {**config["extra"], "alternate": [{"name": name, "lang": language, "link": _link(page, language, pages)}
                                                        for language, name in LANGUAGES.items()]}
    return {**context, "nav": own, "config": config}


def on_post_page(output, page, config):
    """mkdocs-material's script loads the site map of each such link of the head, and a browser loads none from a file."""
    return re.sub(r'\s*<link rel="alternate" [^>]*hreflang=[^>]*>', "", output)
