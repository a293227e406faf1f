"""Changes, levels, and operations on whole stores."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import zvf

PATH = {"positions": [[4.0, 4, 4], [5, 5, 5]], "part_offsets": [0, 2], "vertex": {"fa": [0, 1]}}


def test_changes_are_visible_in_the_dataset() -> None:
    tracts, other = zvf.open("tracts.zv"), zvf.open("tracts.zv")
    added = tracts.append(**PATH, object={"length": [1.5]})  # type: ignore[arg-type]
    assert (added.transaction, added.added, added.objects.tolist()) == (1, 2, [9])
    assert tracts.query(objects=9).object["length"].dtype == np.float32
    removed = tracts.delete(objects=[3])
    assert removed is not None and removed.removed == 3
    assert tracts.query().objects.tolist() == [8, 9]
    other.reload()
    assert other.query().objects.tolist() == [8, 9]
    assert tracts.compact().transaction == 3
    assert zvf.validate("tracts.zv")


def test_objects_are_replaced_by_others() -> None:
    tracts = zvf.open("tracts.zv")
    changed = tracts.replace(
        [3, 8], **PATH, part_objects=[5], object={"length": [1]}  # type: ignore[arg-type]
    )
    assert (changed.removed, changed.added) == (5, 2)
    assert tracts.query().objects.tolist() == [5]


def test_types_of_arrays_are_kept_and_those_of_lists_fitted() -> None:
    tracts = zvf.open("tracts.zv")
    with pytest.raises(zvf.InputError, match="length"):
        tracts.append(**PATH, object={"length": np.array([1.5])})  # type: ignore[arg-type]
    assert len(tracts.query()) == 5


@pytest.mark.parametrize("length", [[1e39], [-1e39]])
def test_numbers_outside_the_type_of_an_attribute_are_refused(length: list[float]) -> None:
    """They were stored as infinity."""
    tracts = zvf.open("tracts.zv")
    with pytest.raises(zvf.InputError, match="length"):
        tracts.append(**PATH, object={"length": length})  # type: ignore[arg-type]
    with pytest.raises(zvf.InputError, match="length"):
        tracts.write_attributes(object={"length": length}, objects=[3])
    assert tracts.query().object["length"].tolist() == [2.5, 1]
    tracts.write_attributes(object={"length": [np.inf, np.nan]}, objects=[3, 8])
    np.testing.assert_array_equal(tracts.query().object["length"], [np.inf, np.nan])


def test_attributes_of_objects_are_written_at_a_transaction() -> None:
    tracts, other = zvf.open("tracts.zv"), zvf.open("tracts.zv")
    assert other.write_attributes(object={"length": [4]}, objects=[3]).transaction == 1
    with pytest.raises(zvf.ConflictError, match="transaction 1"):
        tracts.write_attributes(object={"length": [5]}, objects=[3], transaction=0)
    assert other.query(objects=3).object["length"].tolist() == [4]
    written = tracts.write_attributes(object={"length": [5]}, objects=[3], transaction=1)
    assert written.transaction == tracts.transaction == 2


@pytest.mark.parametrize(
    ("options", "left"),
    [
        ({"where": "object.length > 2"}, [8]),
        ({"bbox": ((0, 0, 0), (1, 1, 1))}, [8]),
        ({"bbox": ((0, 0, 0), (1, 1, 1)), "mode": "within"}, [3, 8]),
        ({"bbox": ((0, 0, 0), (2, 2, 2)), "mode": "within"}, [8]),
        ({"where": "fa > 5"}, [3, 8]),
        ({"groups": 1}, []),
    ],
)
def test_deletion_by_query(options: dict[str, Any], left: list[int]) -> None:
    tracts = zvf.open("tracts.zv")
    tracts.delete(**options)
    assert tracts.query().objects.tolist() == left


class Contended(zvf.Dataset):
    """A dataset whose store another writer changes after each of the first queries."""

    changes: list[float]

    def query(self, **options: Any) -> zvf.Result:
        found = super().query(**options)
        if self.changes:
            length = {"length": [self.changes.pop(0)]}
            zvf.open(self.address).write_attributes(object=length, objects=[3])
        return found


@pytest.mark.parametrize(
    ("options", "changes", "left"),
    [
        ({"where": "object.length > 2"}, [9, 1], [3, 8]),
        ({"where": "object.length > 2"}, [9], [8]),
        ({"bbox": ((0, 0, 0), (2, 2, 2)), "mode": "within", "where": "object.length > 2"}, [1],
         [3, 8]),
        ({"objects": [3]}, [1], [8]),
    ],
)
def test_deletions_repeat_the_query_after_changes_by_others(
    options: dict[str, Any], changes: list[float], left: list[int]
) -> None:
    """Regression test: ids that the query had found in an older transaction were deleted."""
    tracts = Contended("tracts.zv", {})
    tracts.changes = changes
    tracts.delete(**options)
    assert zvf.open("tracts.zv").query().objects.tolist() == left


def test_deletions_end_if_others_keep_changing_the_store() -> None:
    tracts = Contended("tracts.zv", {})
    tracts.changes = [float(length) for length in range(3, 100)]
    with pytest.raises(zvf.ConflictError, match="transaction"):
        tracts.delete(where="object.length > 2")
    assert 50 < len(tracts.changes) < 97
    assert len(zvf.open("tracts.zv").query()) == 5


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({}, "no selection"),
        ({"limit": 1}, "no selection"),
        ({"where": None}, "no selection"),
        ({"bbox": None, "objects": None}, "no selection"),
        ({"where": "fa > 0", "mode": "clip"}, "whole"),
        ({"where": "fa > 0", "keep_going": True}, "keep_going"),
    ],
)
def test_deletions_that_are_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        zvf.open("tracts.zv").delete(**options)
    zvf.create("cloud.zv", kind="points", positions=np.zeros((2, 3)))
    with pytest.raises(ValueError, match="no objects"):
        zvf.open("cloud.zv").delete(bbox=((0, 0, 0), (1, 1, 1)))
    with pytest.raises(ValueError, match="no selection"):
        zvf.open("cloud.zv").delete_vertices(bbox=None)  # type: ignore[arg-type]
    assert len(zvf.open("tracts.zv").query()) == 5 and len(zvf.open("cloud.zv").query()) == 2


@pytest.mark.parametrize(
    ("arrays", "error", "says"),
    [
        ({"positions": [[1, 2, 3]], "parts": [0]}, TypeError, "parts"),
        ({"part_offsets": [0]}, TypeError, "positions"),
        ({**PATH, "out_of_bounds": "keep"}, ValueError, "raise, ignore or expand"),
        ({**PATH, "positions": [[4.0, 4, 4], [50, 5, 5]]}, zvf.InputError, "bounds"),
        ({**PATH, "part_objects": [3]}, zvf.InputError, "3"),
    ],
)
def test_additions_that_are_refused(
    arrays: dict[str, Any], error: type[Exception], says: str
) -> None:
    tracts = zvf.open("tracts.zv")
    with pytest.raises(error, match=says):
        tracts.append(**arrays)
    assert tracts.query().objects.tolist() == [3, 8]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"method": "half"}, "stride"),
        ({"factors": [0.5]}, "above 1"),
        ({"sparsity": [0.5]}, "1 or more"),
        ({"sparsity": [2], "sparsity_by": "colour"}, "attribute:NAME"),
        ({"tolerance": 0.0}, "above 0"),
        ({"depth": -2}, "-1 for all"),
        ({"rules": {"fa": "double"}}, "double"),
        ({"cross_level": "both"}, "implicit"),
    ],
)
def test_pyramids_that_are_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        zvf.open("tracts.zv").pyramid(**options)


def test_levels_are_refreshed_after_a_change() -> None:
    positions = np.random.default_rng(1).random((5000, 3))
    zvf.create("cloud.zv", kind="points", positions=positions, chunk_shape=(0.25, 0.25, 0.25))
    cloud = zvf.open("cloud.zv")
    seen: list[tuple[int, int]] = []
    built = cloud.pyramid(
        levels=2, method="bins", factors=[2, 4], progress=lambda *counts: seen.append(counts)
    )
    assert [level.level for level in built] == cloud.levels[1:] == [1, 2]
    assert seen and seen[-1][0] == seen[-1][1] > 0
    assert 0 < len(cloud.query(level=2)) < len(cloud.query(level=1)) < 5000
    cloud.append(positions=positions[:10])
    assert cloud.info().levels[1].is_behind
    cloud.pyramid(refresh=True)
    assert not cloud.info().levels[1].is_behind


def test_findings_name_rule_and_place() -> None:
    cells = [path for path in Path("tracts.zv/0/vertices").rglob("*") if path.is_file()]
    cell = next(path for path in cells if path.name != "zarr.json")
    cell.write_bytes(b"")
    report = zvf.validate("tracts.zv", level=3)
    assert not report and not report.ok
    finding = report.findings[0]
    assert finding.severity == "error" and "0/vertices" in finding.path
    assert finding.code in str(report)
    few = zvf.validate("tracts.zv", level=3, limit=0)
    # The file also differs from the inventory of the store.
    assert (few.findings, few.unlisted, few.ok) == ([], {finding.code: 1, "ZV-L3-123": 1}, False)
    with pytest.raises(ValueError, match="1, 2, 3 or 4"):
        zvf.validate("tracts.zv", level=5)  # type: ignore[arg-type]
    with pytest.raises(zvf.NotFoundError):
        zvf.validate("absent.zv")


def test_repairs() -> None:
    root = Path("tracts.zv/0/vertices/zarr.json")
    before = root.read_text()
    assert zvf.validate("tracts.zv").ok
    report = zvf.repair("tracts.zv")
    assert (report.ok, report.repaired, report.transaction) == (True, [], None)
    assert root.read_text() == before


def test_repairs_that_trust_files() -> None:
    """Another program wrote a level of a sealed store anew and left the count of its vertices."""
    node = Path("tracts.zv/0/zarr.json")
    text = node.read_text()
    node.write_text(text.replace('"vertex_count": 5', '"vertex_count": 7'))
    assert node.read_text() != text
    kept = zvf.repair("tracts.zv")
    assert not kept.ok and (kept.repaired, kept.trusted) == ([], 0)
    report = zvf.repair("tracts.zv", trust_files=True)
    assert report.trusted == 1 and report.transaction is not None
    assert "ZV-L3-017" in {finding.code for finding in report.repaired}
    assert zvf.seal("tracts.zv").ok and zvf.validate("tracts.zv").findings == []
    with pytest.raises(TypeError, match="trust_files"):
        zvf.validate("tracts.zv", trust_files=True)  # type: ignore[call-arg]


def test_migration_reports_progress() -> None:
    seen: list[tuple[int, int]] = []
    report = zvf.migrate(
        "tracts.zv", "new.zv", profile="0.8", progress=lambda *counts: seen.append(counts)
    )
    assert (report.from_generation, report.to_generation, report.vertices) == ("0.9", "0.8", 5)
    assert seen[-1][0] > 0
    with pytest.raises(zvf.ExistsError):
        zvf.migrate("tracts.zv", "new.zv")
    with pytest.raises(zvf.UnsupportedError):
        zvf.open("new.zv").compact()


Counts = list[tuple[int, int]]
MOVED: zvf.GeometryArrays = {
    "positions": [[1.0, 1, 1], [2, 2, 2]], "part_offsets": [0, 2], "part_objects": [3],
    "vertex": {"fa": [0.1, 0.9]},
}  # fmt: skip
ADDED: zvf.GeometryArrays = {**MOVED, "part_objects": [40], "object": {"length": [1.0]}}
OPERATIONS: dict[str, Callable[[zvf.Dataset, Callable[[int, int], object]], object]] = {
    "append": lambda tracts, progress: tracts.append(**ADDED, progress=progress),
    "replace": lambda tracts, progress: tracts.replace(**MOVED, progress=progress),
    "delete": lambda tracts, progress: tracts.delete(objects=3, progress=progress),
    "compact": lambda tracts, progress: tracts.compact(progress=progress),
    "sample": lambda tracts, progress: tracts.sample(
        np.zeros((10, 10, 10)), into="t1", progress=progress
    ),
    "sample of objects": lambda tracts, progress: tracts.sample(
        np.zeros((10, 10, 10)), into="t1", reduce="mean", progress=progress
    ),
    "render": lambda tracts, progress: tracts.render(size=(120, 90), progress=progress),
    "validate": lambda tracts, progress: zvf.validate(tracts.address, progress=progress),
    "seal": lambda tracts, progress: zvf.seal(tracts.address, progress=progress),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_report_progress(name: str) -> None:
    seen: Counts = []
    OPERATIONS[name](zvf.open("tracts.zv"), lambda *counts: seen.append(counts))
    # The last call comes when all work is done.
    assert seen and seen[-1][0] == seen[-1][1] > 0
    assert all(done <= total for done, total in seen)
    assert seen == sorted(seen)


def test_vertices_are_deleted_with_progress() -> None:
    zvf.create("cloud.zv", kind="points", positions=np.eye(3), vertex={"q": [1, 2, 3]})
    cloud = zvf.open("cloud.zv")
    seen: Counts = []
    cloud.delete_vertices(where="q > 2", progress=lambda *counts: seen.append(counts))
    assert seen[-1][0] == seen[-1][1] > 0
    found = cloud.query(row_ids=True)
    cloud.delete_vertices(
        found.row_ids, found.transaction, progress=lambda *counts: seen.append(counts)
    )
    assert len(seen) >= 2 and len(cloud.query()) == 0


def test_progress_is_reported_while_a_change_runs() -> None:
    positions = np.random.default_rng(1).random((20_000, 3))
    zvf.create("cloud.zv", kind="points", positions=positions, chunk_shape=(0.05,) * 3)
    seen: Counts = []
    cloud = zvf.open("cloud.zv")
    cloud.append(positions=positions, progress=lambda *counts: seen.append(counts))
    assert len(seen) > 1 and seen[-1][0] == seen[-1][1] > 8000


def test_errors_of_callbacks_end_the_operation() -> None:
    def stop(done: int, total: int) -> None:
        raise LookupError(f"{done} of {total}")

    positions = np.random.default_rng(1).random((20_000, 3))
    zvf.create("cloud.zv", kind="points", positions=positions, chunk_shape=(0.05,) * 3)
    with pytest.raises(LookupError):
        zvf.open("cloud.zv").append(positions=positions, progress=stop)


def test_an_error_of_the_last_call_does_not_hide_a_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression test: an exception came after the commit, and a repetition changed it again."""
    raised: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda found: raised.append(found.exc_value))

    def fail(error: BaseException) -> Callable[[int, int], None]:
        def last(done: int, total: int) -> None:
            if done == total:
                raise error

        return last

    for at in range(10):
        store = f"cloud{at}.zv"
        try:
            zvf.create(store, kind="points", positions=np.eye(3), progress=fail(LookupError("no")))
        except LookupError:
            continue  # A busy machine also calls before the commit is done.
        break
    assert [str(error) for error in raised] == ["no"]
    assert len(zvf.open(store).query()) == 3
    with pytest.raises(KeyboardInterrupt):
        zvf.open(store).append(positions=np.eye(3), progress=fail(KeyboardInterrupt()))


def test_bars_of_tqdm(monkeypatch: pytest.MonkeyPatch) -> None:
    class Bar:
        made: list[Bar] = []

        def __init__(self, desc: str) -> None:
            self.desc, self.n, self.total = desc, 0, 0
            self.made.append(self)

        def update(self, rows: int) -> None:
            self.n += rows

        def __enter__(self) -> Bar:
            return self

        def __exit__(self, *_: object) -> None:
            pass

    modules = {"tqdm.auto": SimpleNamespace(tqdm=Bar)}
    monkeypatch.setattr("zvf._progress._module", modules.get)
    zvf.migrate("tracts.zv", "new.zv", progress=True)
    (bar,) = Bar.made
    assert "tracts.zv" in bar.desc and bar.n == bar.total > 0
    monkeypatch.setattr("zvf._progress._module", lambda _: None)
    with pytest.raises(ImportError, match="pip install tqdm"):
        zvf.migrate("tracts.zv", "newer.zv", progress=True)


@pytest.mark.parametrize("package", ["tqdm", "rich"])
def test_bars_of_the_packages(
    package: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip(package)
    if package == "rich":
        monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    zvf.migrate("tracts.zv", "new.zv", progress=True)
    shown = "".join(capfd.readouterr())
    assert "migrating tracts.zv" in shown and "100%" in shown
