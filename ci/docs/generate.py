# SPDX-License-Identifier: Apache-2.0
"""generate.py SCANKIT PAGES: puts the pages of the site together in PAGES. What can be generated is; the rest is ci/docs/pages."""
import pathlib
import shutil
import sys

import causes
import commands
import documents
import plots
import schemas
import sessions
import translations

if __name__ == "__main__":
    scankit, pages = sys.argv[1], pathlib.Path(sys.argv[2])
    here = pathlib.Path(__file__).resolve().parent
    root = here.parent.parent
    shutil.copytree(here / "pages", pages)
    causes.write(root, pages)
    commands.write(scankit, pages)
    schemas.write(root, pages)
    documents.write(root, pages)
    plots.write(root, pages)
    sessions.write(pages)
    translations.write(pages)
