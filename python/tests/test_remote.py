"""Stores on a web server and in a bucket of S3."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

import zvf


class Bucket(ThreadingHTTPServer):
    """Serves a folder at `/bucket/` as S3 serves objects, and records headers."""

    daemon_threads = True
    key: str | None = None
    """The access key that requests must be signed with; `None` for a public bucket."""

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.folder = folder
        self.signed: list[str | None] = []
        self.url = f"http://127.0.0.1:{self.server_address[1]}"


def tag_of(data: bytes) -> str:
    return f'"{sha256(data).hexdigest()}"'


class Handler(BaseHTTPRequestHandler):
    server: Bucket
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        authorization = self.headers.get("Authorization")
        self.server.signed.append(authorization)
        if self.server.key is not None and f"={self.server.key}/" not in (authorization or ""):
            self._answer(403, b"<Error><Code>AccessDenied</Code></Error>")
            return
        name = unquote(urlsplit(self.path).path).removeprefix("/bucket").lstrip("/")
        asked = parse_qs(urlsplit(self.path).query, keep_blank_values=True)
        if "list-type" in asked:
            self._list(asked["prefix"][0], asked.get("delimiter", [""])[0])
            return
        file = self.server.folder / name
        if self.command == "PUT":
            data = self.rfile.read(int(self.headers["Content-Length"]))
            before = file.read_bytes() if file.exists() else None
            wanted = self.headers.get("If-Match")
            if wanted is not None and (before is None or wanted != tag_of(before)):
                self._answer(412, b"<Error><Code>PreconditionFailed</Code></Error>")
                return
            if self.headers.get("If-None-Match") == "*" and before is not None:
                self._answer(412, b"<Error><Code>PreconditionFailed</Code></Error>")
                return
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
            self._answer(200, b"", tag=tag_of(data))
            return
        if self.command == "POST" and "delete" in asked:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            keys = re.findall("<Key>(.*?)</Key>", body)
            for key in keys:
                (self.server.folder / key).unlink(missing_ok=True)
            deleted = "".join(f"<Deleted><Key>{key}</Key></Deleted>" for key in keys)
            self._answer(200, f"<DeleteResult>{deleted}</DeleteResult>".encode())
            return
        if self.command == "DELETE":
            file.unlink(missing_ok=True)
            self._answer(204, b"")
            return
        if not file.is_file():
            self._answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
            return
        data = file.read_bytes()
        extent = self.headers.get("Range", "").removeprefix("bytes=")
        if not extent:
            self._answer(200, data)
            return
        tag = tag_of(data)
        first, last = extent.split("-")
        start = int(first) if first else len(data) - int(last)
        end = min(int(last), len(data) - 1) if first and last else len(data) - 1
        self._answer(206, data[start : end + 1], f"bytes {start}-{end}/{len(data)}", tag)

    do_HEAD = do_PUT = do_POST = do_DELETE = do_GET

    def _list(self, prefix: str, delimiter: str) -> None:
        files = (file for file in self.server.folder.rglob("*") if file.is_file())
        keys = sorted(file.relative_to(self.server.folder).as_posix() for file in files)
        found, folders = [], set()
        for key in keys:
            if not key.startswith(prefix):
                continue
            rest = key.removeprefix(prefix)
            if delimiter and delimiter in rest:
                folders.add(prefix + rest.split(delimiter)[0] + delimiter)
                continue
            data = (self.server.folder / key).read_bytes()
            found.append(
                f"<Contents><Key>{key}</Key><Size>{len(data)}</Size><ETag>{tag_of(data)}</ETag>"
                "<LastModified>2026-11-23T00:00:00.000Z</LastModified></Contents>"
            )
        common = (f"<CommonPrefixes><Prefix>{at}</Prefix></CommonPrefixes>" for at in folders)
        text = f"<ListBucketResult>{''.join(found)}{''.join(common)}</ListBucketResult>"
        self._answer(200, text.encode())

    def _answer(
        self, status: int, data: bytes, extent: str | None = None, tag: str | None = None
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("ETag", tag or tag_of(data))
        self.send_header("Last-Modified", "Mon, 23 Nov 2026 00:00:00 GMT")
        if extent is not None:
            self.send_header("Content-Range", extent)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def bucket(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    with Bucket(folder) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def options(bucket: Bucket, **more: str) -> dict[str, str]:
    return {"endpoint": bucket.url, "allow_http": "true", "region": "us-east-1", **more}


def test_a_web_server(bucket: Bucket) -> None:
    tracts = zvf.open(f"{bucket.url}/bucket/tracts.zv", options={"allow_http": "true"})
    assert tracts.query(objects=[8]).positions.tolist() == [[9, 9, 9], [8, 9, 9]]
    assert set(bucket.signed) == {None}
    # A look at a remote store costs no request.
    requests = len(bucket.signed)
    assert "img" not in tracts._repr_html_() and len(bucket.signed) == requests


def test_anonymous_requests_are_not_signed(bucket: Bucket) -> None:
    tracts = zvf.open("s3://bucket/tracts.zv", anonymous=True, options=options(bucket))
    assert len(tracts.query()) == 5
    assert bucket.signed and set(bucket.signed) == {None}
    assert tracts.activity["requests"] == len(bucket.signed)


def test_requests_are_signed_with_the_given_key(bucket: Bucket) -> None:
    bucket.key = "KEY-OF-TEST"
    keys = {"access_key_id": "KEY-OF-TEST", "secret_access_key": "secret"}
    tracts = zvf.open("s3://bucket/tracts.zv", options=options(bucket, **keys))
    assert len(tracts.query(where="fa > 0.6")) == 2
    with ThreadPoolExecutor(4) as threads:
        assert set(threads.map(lambda _: len(tracts.query()), range(20))) == {5}
    with pytest.raises(zvf.AccessError) as caught:
        zvf.open("s3://bucket/tracts.zv", anonymous=True, options=options(bucket))
    assert "s3://bucket/tracts.zv" in str(caught.value) or "bucket" in str(caught.value)
    wrong = {"access_key_id": "OTHER", "secret_access_key": "secret-of-test"}
    with pytest.raises(zvf.AccessError) as caught:
        zvf.open("s3://bucket/tracts.zv", options=options(bucket, **wrong))
    assert "secret-of-test" not in str(caught.value)


def test_a_store_is_created_in_a_bucket_and_changed(bucket: Bucket) -> None:
    bucket.key = "KEY-OF-TEST"
    signed = options(bucket, access_key_id="KEY-OF-TEST", secret_access_key="secret")
    positions = [[0.0, 0, 0], [1, 1, 1], [9, 9, 9]]
    zvf.create(
        "s3://bucket/new.zv", kind="points", positions=positions, object_ids=[1, 1, 2],
        vertex={"fa": [0.1, 0.2, 0.3]}, chunk_shape=(5, 5, 5), options=signed,
    )  # fmt: skip
    points = zvf.open("s3://bucket/new.zv", options=signed)
    assert points.query(objects=2).vertex["fa"].tolist() == [0.3]
    points.delete(objects=[2])
    assert len(points.query()) == 2
    # The same store, read as a folder.
    assert len(zvf.open(bucket.folder / "new.zv").query()) == 2
    with pytest.raises(zvf.ExistsError):
        zvf.create("s3://bucket/new.zv", kind="points", positions=positions, options=signed)
    with pytest.raises(zvf.AccessError):
        zvf.create(
            "s3://bucket/other.zv", kind="points", positions=positions,
            options=options(bucket), anonymous=True,
        )  # fmt: skip
    assert not (bucket.folder / "other.zv").exists()


def test_absent_and_unknown(bucket: Bucket) -> None:
    with pytest.raises(zvf.NotFoundError):
        zvf.open("s3://bucket/none.zv", anonymous=True, options=options(bucket))
    with pytest.raises(zvf.InputError, match="colour"):
        zvf.open("s3://bucket/tracts.zv", options=options(bucket, colour="red"))
