# SPDX-License-Identifier: Apache-2.0
"""The SPDX document parses, is complete, and names every archive that the linker took:  bill_of_materials.py SPDX MAP BUILD"""
import fnmatch
import json
import os
import re
import sys

REQUIRED = {"SPDXID", "name", "versionInfo", "licenseDeclared", "downloadLocation"}


def archives(path, build):
    """Of others: what our own build made is scankit itself."""
    with open(path, errors="replace") as file:
        loaded = set(re.findall(r"^LOAD (\S+\.a)$", file.read(), re.M))
    inside = os.path.realpath(build) + os.sep
    return {os.path.basename(one) for one in loaded
            if os.path.isabs(one) and not os.path.realpath(one).startswith(inside)}


def main(spdx, linker_map, build):
    with open(spdx) as file:
        document = json.load(file)
    problems = []
    if document["spdxVersion"] != "SPDX-2.3" or not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", document["creationInfo"]["created"]):
        problems.append("no SPDX 2.3 document")
    packages = document["packages"]
    for package in packages:
        if REQUIRED - set(package):
            problems.append("%s lacks %s" % (package.get("name"), sorted(REQUIRED - set(package))))
        if not re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", package["SPDXID"]):
            problems.append("%s is no SPDX identifier" % package["SPDXID"])
        if not re.search("[1-9]", package["versionInfo"]) or package["versionInfo"].endswith("."):
            problems.append("%s has no version" % package["name"])
    known = {one["SPDXID"] for one in packages} | {"SPDXRef-DOCUMENT"}
    for relation in document["relationships"]:
        if not {relation["spdxElementId"], relation["relatedSpdxElement"]} <= known:
            problems.append("a relationship of nothing: %s" % relation)
    patterns = [pattern for one in packages for pattern in one.get("comment", "").split()]
    linked = archives(linker_map, build)
    if len(linked) < 5:
        problems.append("the linker's map names %d archives" % len(linked))
    for archive in sorted(linked):
        if not any(fnmatch.fnmatch(archive, pattern) for pattern in patterns):
            problems.append("%s is linked and not in the document" % archive)
    print("\n".join(problems) or "%d packages, %d archives" % (len(packages), len(linked)))
    return 1 if problems else 0


sys.exit(main(*sys.argv[1:]))
