# SPDX-License-Identifier: Apache-2.0
"""columns.py FILE...: FILE:LINE:TEXT of each line that is longer than 100 columns. A Chinese character takes two of them, as on
a terminal, so that a document is as wide in an editor whatever its language."""
import sys
import unicodedata

LIMIT = 100


def columns(text):
    return sum((2 if unicodedata.east_asian_width(c) in "WF" else 1) for c in text if not unicodedata.combining(c))


def main(files):
    assert [columns(text) for text in ("ab", "中文", "，", "é", "─")] == [2, 4, 2, 1, 1]
    for name in files:
        with open(name, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if columns(line.rstrip("\n")) > LIMIT:
                    print(f"{name}:{number}:{line.rstrip()}")


main(sys.argv[1:])
