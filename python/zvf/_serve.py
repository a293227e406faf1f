"""Stores in browsers: the page of this package, and Neuroglancer."""

from __future__ import annotations

import json
import os
import webbrowser
from collections.abc import Sequence
from html import escape
from typing import Any, NamedTuple

from . import _zvf
from ._dataset import Dataset
from ._progress import Progress, shown


class Server:
    """A server of stores for Neuroglancer, which `serve` starts. Notebooks show its link.

    It ends with `stop`, with a `with` statement, or when nothing refers to it.

    Attributes:
        link: The link that opens the viewer with all layers.
        address: The address of the server.
        state: The state of the viewer, as JSON.
        notes: Differences between the store and what the viewer shows, such as rounded values.
    """

    __slots__ = ("_raw", "address", "link", "notes", "state")

    def __init__(self, raw: _zvf.Server) -> None:
        self._raw = raw
        self.link: str = raw.link
        self.address: str = raw.address
        self.state: Any = raw.state()
        self.notes: list[str] = raw.notes

    def stop(self) -> None:
        """Stop the server after it has finished the responses that it has begun."""
        self._raw.stop()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"Server({self.address!r})"

    def _repr_html_(self) -> str:
        return f'<a href="{escape(self.link)}" target="_blank">{escape(self.address)}</a>'


def serve(
    *stores: Dataset | str | os.PathLike[str],
    port: int | None = None,
    bind: str = "127.0.0.1",
    token: str | None = None,
    hosts: Sequence[str] = (),
    origins: Sequence[str] = (),
    viewer: str | None = None,
    client: str | os.PathLike[str] | None = None,
    voxel_size: float | None = None,
    progress: Progress = None,
) -> Server:
    """Serve stores and dense arrays to Neuroglancer from threads of this program.

    Layers are computed when the viewer requests them. Unless `bind` and `origins` allow more, only
    requests from this machine and from pages of the viewer are served.

    Args:
        *stores: Open stores, and addresses of stores and of dense arrays with three axes.
        port: Port to listen on; 9393 unless given, or a free one if it is taken. 0 is a free one.
        bind: Address to listen on. "0.0.0.0" makes the stores readable for every machine that
            reaches this one, and needs a token.
        token: Secret that the path of each request must begin with; the link contains it.
        hosts: Names of this machine that clients may use. The link contains the first one.
        origins: Origins whose pages may read responses, besides the viewer; "*" allows all.
        viewer: Address of the Neuroglancer instance that the link opens.
        client: Folder of a Neuroglancer client to serve, so that no internet is needed.
        voxel_size: Edge length of a voxel of dense arrays in metres; that in the header of a NIfTI
            file, or 0.001, unless given.
        progress: A function of the vertices read and of all vertices, or `True` for a bar.

    >>> with zvf.serve("tracts.zv", port=0) as server:
    ...     server.address.startswith("http://127.0.0.1:")
    True

    Raises:
        InputError: A store cannot be shown, or there is no token where one is needed.
        AccessError: The port is taken.
    """
    if not stores:
        raise TypeError("there is no store to serve")
    if viewer is not None and client is not None:
        raise TypeError("give a viewer or a client, not both")
    sources = [one._raw if isinstance(one, Dataset) else os.fspath(one) for one in stores]
    with shown(progress, "reading stores") as callback:
        options = {
            "port": port, "bind": bind, "token": token, "hosts": list(hosts),
            "origins": list(origins), "viewer": viewer,
            "client": None if client is None else os.fspath(client),
            "voxel_size": voxel_size, "progress": callback,
        }  # fmt: skip
        return Server(_zvf.serve(sources, options))


class PageSelection(NamedTuple):
    """What a page shows of a store."""

    query: dict[str, Any]
    """Arguments of `Dataset.query` that select it; empty for the whole store."""
    object: int | None
    """Id of the object that was clicked."""


def _arguments(query: dict[str, Any]) -> dict[str, Any]:
    """The arguments of `Dataset.query` for a query of the page."""
    known = ("where", "bbox", "sphere", "objects", "groups")
    found = {name: query[name] for name in known if name in query}
    if "sphere" in found:
        center, radius = found["sphere"]
        found["sphere"] = (tuple(center), radius)
    if "bbox" in found:
        low, high = found["bbox"]
        found["bbox"] = (tuple(low), tuple(high))
    return found


class View:
    """Stores in a page of the browser, which `view` opens. Notebooks show the page.

    The page is served until `stop`, to the end of a `with` statement, or until nothing refers to it.
    `selection` is what the page shows at that moment.

    Attributes:
        link: The link of the page.
        height: Height of the page in notebooks, in pixels.
    """

    __slots__ = ("_raw", "height", "link")

    def __init__(self, raw: _zvf.Server, height: int) -> None:
        self._raw = raw
        self.link: str = raw.page_link + "&report"
        self.height = height

    @property
    def selections(self) -> list[PageSelection]:
        """What the page shows of each store, in the order in which they were given.

        Empty until the page is open and has read its first picture.
        """
        layers = json.loads(self._raw.page_report() or "[]")
        return [PageSelection(_arguments(layer["query"]), layer["object"]) for layer in layers]

    @property
    def selection(self) -> PageSelection:
        """What the page shows of the first store.

        It is what the filter line, ranges, groups, regions and an isolated object select.

        >>> with zvf.view("tracts.zv", port=0) as page:
        ...     page.selection  # before a browser has opened the page
        PageSelection(query={}, object=None)

        After a filter was typed, `ds.query(**page.selection.query)` returns what the page shows,
        and `.objects` of that the ids.
        """
        shown = self.selections
        return shown[0] if shown else PageSelection({}, None)

    def open(self) -> None:
        """Open the page in the browser of this machine."""
        webbrowser.open(self.link)

    def stop(self) -> None:
        """Stop the server of the page."""
        self._raw.stop()

    def __enter__(self) -> View:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"View({self.link!r})"

    def _repr_html_(self) -> str:
        return (
            f'<iframe src="{escape(self.link)}" title="zvf" width="100%" height="{self.height}" '
            'style="border:0" allow="fullscreen"></iframe>'
        )


def view(
    *stores: Dataset | str | os.PathLike[str], port: int | None = None, height: int = 600
) -> View:
    """Show stores in a page: in a notebook, or in the browser with `view(...).open()`.

    The page reads the parts of the stores that are in view. Threads of this program serve them, to
    this machine only.

    Args:
        *stores: Open stores, and addresses of stores.
        port: Port to listen on; 9393 unless given, or a free one if it is taken. 0 is a free one.
        height: Height of the page in notebooks, in pixels.

    >>> with zvf.view("tracts.zv", port=0) as page:
    ...     "/view?store=tracts/store" in page.link
    True

    Raises:
        InputError: A store cannot be opened.
        AccessError: The port is taken.
    """
    if not stores:
        raise TypeError("there is no store to show")
    sources = [one._raw if isinstance(one, Dataset) else os.fspath(one) for one in stores]
    return View(_zvf.serve(sources, {"port": port, "page": True}), height)
