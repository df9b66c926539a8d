#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""columns.py: prints doctor/base/columns.def. Run it by the Python whose Unicode the table shall have (3.13: 15.1).

WIDE: East Asian Width W or F (UAX 11). NONE: marks that are drawn onto the letter before them (categories Mn and Me), what only
formats (Cf, but for the soft hyphen, which terminals show), and the vowels and finals of Hangul that join a syllable. Letters that
are not assigned yet join the ranges on both sides, which keeps the table short; the rest of the planes 2 and 3 is wide by UAX 11.
"""
import unicodedata


def kind(point):
    letter = chr(point)
    if unicodedata.category(letter) in ("Mn", "Me", "Cf") and point != 0xAD or 0x1160 <= point <= 0x11FF:
        return "NONE"
    if unicodedata.east_asian_width(letter) in "WF" or 0x20000 <= point <= 0x3FFFD and point & 0xFFFE != 0xFFFE:
        return "WIDE"
    return None if unicodedata.category(letter) == "Cn" else "ONE"


def ranges():
    found = []  # [kind, first, last]; unassigned letters are skipped, so that a range goes on behind them
    for point in range(0x80, 0x110000):
        its = kind(point)
        if its is None:
            continue
        if found and found[-1][0] == its:
            found[-1][2] = point
        else:
            found.append([its, point, point])
    return [one for one in found if one[0] != "ONE"]


print("// SPDX-License-Identifier: Apache-2.0")
print(f"// Made by doctor/base/tool/columns.py from Unicode {unicodedata.unidata_version}: EastAsianWidth.txt and UnicodeData.txt.")
for name, first, last in ranges():
    print(f"{name}(0x{first:04x}, 0x{last:04x})")
