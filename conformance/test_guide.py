"""The Python blocks of docs/python.md, one after the other, in an empty folder."""

import re

from corpus import TESTDATA

PAGE = TESTDATA.parent / "docs/python.md"


def test_blocks(tmp_path, monkeypatch, tell):
    text = PAGE.read_text(encoding="utf-8")
    blocks = list(re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    assert blocks, f"{PAGE} has no Python"
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in blocks:
        # Empty lines before it, so that errors refer to the line of the page.
        exec(compile("\n" * text.count("\n", 0, block.start(1)) + block[1], str(PAGE), "exec"), names)
    tell(f"{PAGE.name}: {len(blocks)} blocks of Python run")
