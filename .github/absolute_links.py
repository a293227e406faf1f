"""Makes the links and pictures of a page of this repository absolute, for pages of registries.

usage: absolute_links.py PAGE REPOSITORY REVISION
"""

import re
import sys
from pathlib import Path


def absolute(text: str, repository: str, revision: str) -> str:
    """Return the page with links to files and pictures of a revision of the repository."""

    def link(match: re.Match[str]) -> str:
        picture, label, target = match.groups()
        if ":" in target or target.startswith("#"):
            return match[0]
        kind = "raw" if picture else "blob"
        return f"{picture}[{label}]({repository}/{kind}/{revision}/{target})"

    # Labels may span lines, and contain no brackets.
    return re.sub(r"(!?)\[([^\[\]]*)\]\(([^()\s]+)\)", link, text)


if __name__ == "__main__":
    page = Path(sys.argv[1])
    page.write_text(absolute(page.read_text("utf-8"), *sys.argv[2:]), "utf-8", newline="\n")
