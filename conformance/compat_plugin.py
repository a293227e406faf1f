"""A plugin of pytest that puts zvf.compat in the place of zarr-vectors, and records who does the work of each test."""

import collections
import json
import logging
import os
from pathlib import Path

NOW: collections.Counter[str] = collections.Counter()
RESULTS: dict[str, tuple[str, list[str]]] = {}


class _Calls(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        NOW[record.msg.split()[0]] += 1


def pytest_configure() -> None:
    import zvf.compat

    zvf.compat.install()
    log = logging.getLogger("zvf.compat")
    log.setLevel(logging.DEBUG)
    log.addHandler(_Calls())


def pytest_runtest_setup() -> None:
    NOW.clear()


def pytest_runtest_logreport(report) -> None:
    if report.when == "call" or report.outcome != "passed":
        RESULTS[report.nodeid] = (report.outcome, sorted(NOW))


def pytest_sessionfinish() -> None:
    Path(os.environ["COMPAT_RESULTS"]).write_text(json.dumps(RESULTS))
