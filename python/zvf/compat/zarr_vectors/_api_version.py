"""The version of the interface, and clauses such as `>=0.9,<0.11`."""

from __future__ import annotations

import operator
from collections.abc import Iterable

__api_version__ = (1, 0)
FEATURES = frozenset({
    "surfaces", "presence-rebuild", "sharded-presence-guard", "selection-level-optional",
    "vertex-attributes-on-read", "query-cells", "coarsen-strategy-options",
})  # fmt: skip
_TESTS = {
    ">=": operator.ge, "<=": operator.le, "==": operator.eq, ">": operator.gt, "<": operator.lt,
}  # fmt: skip


def parse_version(text: str) -> tuple[int, ...]:
    """Return a dotted version as numbers; other characters are ignored."""
    parts = ("".join(filter(str.isdigit, part)) for part in str(text).strip().split("."))
    return tuple(int(part or 0) for part in parts)


def satisfies(found: tuple[int, ...], spec: str) -> str | None:
    """Return the first clause that a version does not satisfy."""
    for clause in filter(None, map(str.strip, spec.split(","))):
        name = next((name for name in _TESTS if clause.startswith(name)), None)
        if name is None:
            raise ValueError(
                f"cannot parse version clause {clause!r} in {spec!r}; expected one of >=, >, <=, "
                "<, == followed by a version"
            )
        wanted = parse_version(clause.removeprefix(name))
        width = max(len(found), len(wanted))
        one, two = (version + (0,) * (width - len(version)) for version in (found, wanted))
        if not _TESTS[name](one, two):
            return clause
    return None


def require_api(spec: str = "", *, features: Iterable[str] = ()) -> None:
    """Check the version and the features of the interface.

    Raises:
        ImportError: They do not suffice.
    """
    wanted = {features} if isinstance(features, str) else set(features)
    if missing := sorted(wanted - FEATURES):
        raise ImportError(f"zarr-vectors does not provide: {', '.join(missing)}")
    if spec and satisfies(__api_version__, spec) is not None:
        version = ".".join(map(str, __api_version__))
        raise ImportError(f"the interface has version {version}, which does not satisfy {spec!r}")
