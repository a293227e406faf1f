"""Servers for the page of the package and for Neuroglancer."""

from __future__ import annotations

import gc
import json
import socket
import time
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import numpy as np
import pytest

import zvf


def layers(server: zvf.Server) -> list[Any]:
    """Return the description that the viewer asks for of each layer."""
    found = []
    for layer in server.state["layers"]:
        source = layer["source"]
        url = source["url"] if isinstance(source, dict) else source
        address = url.removeprefix("precomputed://").split("|")[0].rstrip("/")
        with urlopen(f"{address}/info", timeout=30) as answer:
            found.append(json.load(answer))
    return found


def test_stores_are_served_until_the_end() -> None:
    np.save("volume.npy", np.zeros((8, 8, 8), np.uint8))
    tracts = zvf.open("tracts.zv")
    seen: list[tuple[int, int]] = []
    with zvf.serve(tracts, "volume.npy", port=0, progress=lambda *at: seen.append(at)) as server:
        infos = layers(server)
        assert len(infos) >= 2 and server.link.startswith("http")
        types = {info.get("@type") for info in infos}
        assert "neuroglancer_annotations_v1" in types
        assert server.address in repr(server) and server.address in server._repr_html_()
        # Queries run beside the server.
        assert len(tracts.query()) == 5
    assert seen
    with pytest.raises(URLError):
        urlopen(f"{server.address}/", timeout=30)
    server.stop()


def test_a_server_ends_with_its_handle() -> None:
    server = zvf.serve("tracts.zv", port=0, token="secret-of-test")
    assert "secret-of-test" in server.link
    port = int(server.address.split(":")[2].split("/")[0])
    with pytest.raises(HTTPError):
        urlopen(f"http://127.0.0.1:{port}/", timeout=30)
    # A taken port is refused, and the default is replaced.
    with pytest.raises(zvf.AccessError, match="bound"):
        zvf.serve("tracts.zv", port=port)
    del server
    gc.collect()
    end = time.monotonic() + 30
    while time.monotonic() < end:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return
        time.sleep(0.05)
    raise AssertionError("the server still listens")


@pytest.mark.parametrize(
    ("stores", "options", "error", "says"),
    [
        ([], {}, TypeError, "no store"),
        (["absent.zv"], {}, zvf.NotFoundError, "absent.zv"),
        (["absent.npy"], {}, zvf.NotFoundError, "absent.npy"),
        (["flat.npy"], {}, zvf.InputError, "flat"),
        (["tracts.zv"], {"bind": "0.0.0.0"}, zvf.InputError, "token"),
        (["tracts.zv"], {"bind": "here"}, ValueError, "IP address"),
        (["tracts.zv"], {"token": "a/b"}, zvf.InputError, "token"),
        (["tracts.zv"], {"client": "absent"}, zvf.InputError, "absent"),
        (["tracts.zv"], {"client": "a", "viewer": "b"}, TypeError, "not both"),
        (["tracts.zv"], {"voxel_size": 0.0}, ValueError, "above 0"),
        (["tracts.zv"], {"port": 70_000}, (ValueError, OverflowError), "port"),
    ],
)
def test_servers_that_do_not_start(
    stores: list[str], options: dict[str, Any], error: type[Exception], says: str
) -> None:
    np.save("flat.npy", np.zeros(3))
    with pytest.raises(error, match=says):
        zvf.serve(*stores, **{"port": 0, **options})


def test_the_page_reads_stores() -> None:
    zvf.create("cloud.zv", kind="points", positions=np.zeros((3, 3)))
    with zvf.view(zvf.open("tracts.zv"), "cloud.zv", port=0, height=300) as page:
        assert page.link.endswith("/view?store=tracts/store&store=cloud/store&report")
        base = page.link.split("view?")[0]
        with urlopen(page.link, timeout=30) as answer:
            assert b"Content-Security-Policy" in answer.read()
        with urlopen(f"{base}tracts/store/zarr.json", timeout=30) as answer:
            assert json.load(answer)["node_type"] == "group"
        shown = page._repr_html_()
        assert "&amp;store=cloud/store" in shown and 'height="300"' in shown
        assert page.link in repr(page)
        assert page.selections == [] and not page.selection.query
        origin = page.link.split("/view?")[0]
        sphere = {"where": "x >= 0", "sphere": [[0, 0, 0], 2.5], "groups": [1], "unknown": 1}
        told = [
            {"name": "tracts", "query": sphere, "object": 3},
            {"name": "cloud", "query": {}, "object": None},
        ]
        put = Request(
            f"{origin}/view/selection", json.dumps(told).encode(), {"Origin": origin}, method="PUT"
        )
        with urlopen(put, timeout=30):
            query: dict[str, Any] = {"where": "x >= 0", "sphere": ((0, 0, 0), 2.5), "groups": [1]}
            assert page.selection == (query, 3) and page.selections[1] == ({}, None)
    with pytest.raises(URLError):
        urlopen(page.link, timeout=30)
    page.stop()
    with pytest.raises(TypeError, match="no store to show"):
        zvf.view()
    with pytest.raises(zvf.NotFoundError):
        zvf.view("no.zv")


def test_the_page_opens_in_the_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    with zvf.view("tracts.zv", port=0) as page:
        page.open()
    assert opened == [page.link]
