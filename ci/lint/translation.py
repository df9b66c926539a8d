# SPDX-License-Identifier: Apache-2.0
"""translation.py POT PO: the translation PO is complete: every text of POT is in it, with no fuzzy, obsolete or superfluous one, in
the form in which msgcat writes it, and uses the terms of its glossary, PO's name with .terms.tsv, if there is one.

A glossary has a term a line, four columns with a tab between: English, the translations that are allowed, with " / " between,
"checked" or nothing, source. Where a checked term occurs in an English text, as a whole word or with an s behind it, its
translation must have one of the allowed ones. Quoted things (`command`, --option, {place}) are no words."""
import ast
import re
import sys


def entries(path):
    """Dicts with the keys of each entry: msgid, msgid_plural, msgstr (a list), flags, obsolete, line."""
    found, one, key = [], None, None
    with open(path, encoding="utf-8") as file:
        lines = file.read().split("\n")
    for number, line in enumerate(lines + [""], 1):
        if not line.strip():
            one = key = None
            continue
        if one is None:
            one = {"msgid": None, "msgid_plural": None, "msgstr": [], "flags": set(), "obsolete": False, "line": number}
            found.append(one)
        if line.startswith("#~"):
            one["obsolete"] = True
        elif line.startswith("#,"):
            one["flags"] |= {flag.strip() for flag in line[2:].split(",")}
        elif not line.startswith("#"):
            word = re.match(r"(msgid|msgid_plural|msgstr(?:\[\d+\])?) (?=\")", line)
            text = ast.literal_eval(line[word.end():] if word else line)
            key = word[1].split("[")[0] if word else key
            if word and key == "msgstr":
                one[key].append(text)
            elif word:
                one[key] = text
            elif key == "msgstr":
                one[key][-1] += text
            else:
                one[key] += text
    return found


def glossary(path):
    try:
        with open(path, encoding="utf-8") as file:
            rows = [line.rstrip("\n").split("\t") for line in file if line.strip() and not line.startswith("#")]
    except FileNotFoundError:
        return []
    bad = [row for row in rows if len(row) != 4 or not all(row[:2]) or row[2] not in ("", "checked") or not row[3]]
    if bad:
        sys.exit(f"{path}: not four columns (English, translations, checked or nothing, source): {bad[0]}")
    return [(row[0], row[1].split(" / ")) for row in rows if row[2] == "checked"]


def term_problems(po, texts, terms):
    for english, allowed in terms:
        word = re.compile(r"(?<![\w-])" + re.escape(english) + r"s?(?![\w-])")
        for one in texts:
            source = " ".join(filter(None, [one["msgid"], one["msgid_plural"]]))
            if not word.search(re.sub(r"`[^`]*`|--[a-z-]+|\{[^{}]*\}", " ", source)):
                continue
            for text in one["msgstr"]:
                if text and not any(form in text for form in allowed):
                    yield f"{po}:{one['line']}: '{english}' is {' or '.join(allowed)} in the glossary, not so in: {text}"


def problems(pot, po):
    wanted = {one["msgid"]: one for one in entries(pot) if one["msgid"]}
    given = [one for one in entries(po) if one["msgid"] != ""]
    for one in given:
        place = f"{po}:{one['line']}"
        if one["obsolete"]:
            yield f"{place}: an obsolete entry; remove it"
        elif one["msgid"] not in wanted:
            yield f"{place}: no such text in the sources any more: {one['msgid']}"
        elif "fuzzy" in one["flags"]:
            yield f"{place}: fuzzy; look at the translation, then remove the flag: {one['msgid']}"
        elif not all(one["msgstr"]) or not one["msgstr"]:
            yield f"{place}: not translated: {one['msgid']}"
        elif one["msgid_plural"] != wanted[one["msgid"]]["msgid_plural"]:
            yield f"{place}: its plural is another one in the sources: {one['msgid']}"
    current = {one["msgid"] for one in given if not one["obsolete"]}
    for text in wanted:
        if text not in current:
            yield f"{po}: not translated: {text}"
    texts = [one for one in given if not one["obsolete"]]
    yield from term_problems(po, texts, glossary(re.sub(r"\.po$", ".terms.tsv", po)))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    wrong = list(problems(*sys.argv[1:]))
    print("".join(line.replace("\n", "\\n") + "\n" for line in wrong), end="")
    sys.exit(1 if wrong else 0)
