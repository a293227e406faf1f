"""The command `zvf`, as `zvf` or `python -m zvf`."""

from __future__ import annotations

import signal
import sys

from . import _zvf


def main() -> int:
    """Run the command with the arguments of the process, and return the exit code."""
    # Python's handler would wait for the end of the command.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # Workers are started as this process was: __main__.py is not a program.
    starts = [sys.executable, "-m", "zvf"] if __name__ == "__main__" else sys.argv[:1]
    return _zvf.main(sys.argv, starts)


if __name__ == "__main__":
    sys.exit(main())
