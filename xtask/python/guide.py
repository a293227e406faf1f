"""Runs the Python blocks of docs/python.md, one after the other, in an empty folder.

    python guide.py PAGE
"""

import os
import re
import sys
import tempfile
from pathlib import Path


def main():
    page = Path(sys.argv[1]).resolve()
    text = page.read_text(encoding="utf-8")
    blocks = list(re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    if not blocks:
        sys.exit(f"{page} has no Python")
    names = {}
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for block in blocks:
            line = text.count("\n", 0, block.start(1))
            # Prepend empty lines, so that errors refer to the line of the page.
            exec(compile("\n" * line + block[1], str(page), "exec"), names)
        os.chdir(page.parent)
    print(f"{page.name}: {len(blocks)} blocks of Python run")


if __name__ == "__main__":
    main()
