"""Zarr Vectors stores: points, lines, streamlines, skeletons, graphs and meshes.

>>> import numpy as np, zvf
>>> positions = np.array([[0, 0, 0], [1, 1, 1], [5, 5, 5], [9, 1, 1]], dtype=np.float32)
>>> report = zvf.create("paths.zv", kind="streamlines", positions=positions,
...                     part_offsets=[0, 2, 4], vertex={"fa": [0.1, 0.2, 0.7, 0.9]},
...                     chunk_shape=(10, 10, 10))
>>> paths = zvf.open("paths.zv")
>>> paths
zvf.open('paths.zv'): streamline, axes x y z, bounds 0 0 0 to 9 5 5, level 0, format 0.9
>>> found = paths.query(where="fa > 0.5")
>>> found.objects
array([1])
>>> found.vertex["fa"]
array([0.7, 0.9])
"""

import warnings as _warnings

from . import _zvf, dense
from ._arrow import Table
from ._create import CreateReport, create
from ._dataset import Dataset, open
from ._errors import (
    AccessError,
    ConflictError,
    DamagedError,
    Error,
    ExistsError,
    InputError,
    MemoryLimitError,
    NoSuchObjectError,
    NotFoundError,
    UnsupportedError,
    ZvfWarning,
)
from ._info import (
    AttributeInfo,
    Counts,
    GroupInfo,
    LevelInfo,
    LinkInfo,
    Operator,
    Plan,
    StoredLinks,
    StoreInfo,
)
from ._options import (
    BatchOptions,
    CreateOptions,
    GeometryArrays,
    MigrateOptions,
    OpenOptions,
    PrecomputedOptions,
    PyramidOptions,
    QueryOptions,
    RenderOptions,
    SampleOptions,
    ValidateOptions,
)
from ._partition import Partition
from ._picture import Picture
from ._plan_files import ExportPlan, ValidationPlan, plan_export, plan_validation
from ._reports import (
    AttributeReport,
    BuiltLevel,
    ChangeReport,
    Finding,
    Migration,
    PrecomputedReport,
    Repair,
    SampleReport,
    SavedFiles,
    Seal,
    Validation,
)
from ._result import Batches, Columns, Result
from ._serve import PageSelection, Server, View, serve, view
from ._store import convert, migrate, repair, seal, validate
from ._tasks import (
    TaskPlan,
    plan_create,
    plan_migrate,
    plan_pyramid,
    plan_sample,
    plan_shares,
    read_plan,
)

__version__: str = _zvf.__version__

__all__ = [
    "AccessError",
    "AttributeInfo",
    "AttributeReport",
    "BatchOptions",
    "Batches",
    "BuiltLevel",
    "ChangeReport",
    "Columns",
    "ConflictError",
    "Counts",
    "CreateOptions",
    "CreateReport",
    "DamagedError",
    "Dataset",
    "Error",
    "ExistsError",
    "ExportPlan",
    "Finding",
    "GeometryArrays",
    "GroupInfo",
    "InputError",
    "LevelInfo",
    "LinkInfo",
    "MemoryLimitError",
    "MigrateOptions",
    "Migration",
    "NoSuchObjectError",
    "NotFoundError",
    "OpenOptions",
    "Operator",
    "PageSelection",
    "Partition",
    "Picture",
    "Plan",
    "PrecomputedOptions",
    "PrecomputedReport",
    "PyramidOptions",
    "QueryOptions",
    "RenderOptions",
    "Repair",
    "Result",
    "SampleOptions",
    "SampleReport",
    "SavedFiles",
    "Seal",
    "Server",
    "StoreInfo",
    "StoredLinks",
    "Table",
    "TaskPlan",
    "UnsupportedError",
    "ValidateOptions",
    "Validation",
    "ValidationPlan",
    "View",
    "ZvfWarning",
    "convert",
    "create",
    "dense",
    "migrate",
    "open",
    "plan_create",
    "plan_export",
    "plan_migrate",
    "plan_pyramid",
    "plan_sample",
    "plan_shares",
    "plan_validation",
    "read_plan",
    "repair",
    "seal",
    "serve",
    "validate",
    "view",
]

if _zvf.DEBUG:
    _warnings.warn(
        "zvf is a debug build, which is many times slower; "
        "`pip install .` makes an optimized one",
        RuntimeWarning,
        stacklevel=2,
    )
