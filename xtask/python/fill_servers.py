"""Uploads recorded stores for `cargo xtask servers`.

    fill_servers.py FOLDER S3 AZURE

Extracts some stores of `testdata/` to FOLDER and uploads them to the two servers, given as
`http://host:port`: all to the private bucket and container `stores`, one also to those called
`public`, which allow anonymous reads.
"""

import base64
import hashlib
import hmac
import http.client
import os
import pathlib
import sys
import tarfile
import urllib.parse
from concurrent.futures import ThreadPoolExecutor
from email.utils import formatdate

TESTDATA = pathlib.Path(__file__).parents[2] / "testdata"

# Name on the servers: archive, and the store in it. One name needs escaping in URLs.
STORES = {
    "points": ("zvf-09", "points_3d/store.zarrvectors"),
    "polylines": ("zvf-09", "polylines_3d/store.zarrvectors"),
    "deep/er/mesh": ("zvf-09", "mesh_tri/store.zarrvectors"),
    "sharded": ("zvf-09", "points_sharded_zstd/store.zarrvectors"),
    "pyramid": ("zvf-09", "pyramid_points/store.zarrvectors"),
    "8 + shards": ("zvf-08", "0.8.1/native_sharded.zv"),
    "graph": ("zvf-07", "graph.zv"),
    "streamlines": ("zvf-06", "streamlines.zv"),
}
PUBLIC = "sharded"


def unpack(folder):
    for archive in sorted({archive for archive, _ in STORES.values()}):
        with tarfile.open(TESTDATA / f"{archive}.tar.gz") as tar:
            files = [member for member in tar.getmembers() if member.isfile()]
            for name, (wanted, store) in STORES.items():
                if wanted != archive:
                    continue
                found = 0
                for member in files:
                    below = member.name.split("/", 1)[1]
                    if below.startswith(f"{store}/"):
                        at = folder / name / below[len(store) + 1 :]
                        at.parent.mkdir(parents=True, exist_ok=True)
                        at.write_bytes(tar.extractfile(member).read())
                        found += 1
                assert found, f"{store} is not in {archive}"


class Server:
    """Uploads objects to a server over one connection."""

    def __init__(self, address):
        self.address = urllib.parse.urlsplit(address).netloc

    def put(self, path, query, headers, body):
        target = urllib.parse.quote(path)
        if query:
            target += "?" + urllib.parse.urlencode(query)
        connection = http.client.HTTPConnection(self.address, timeout=60)
        headers = self.signed(path, query, headers, body)
        connection.request("PUT", target, body=body, headers=headers)
        response = connection.getresponse()
        text = response.read()
        connection.close()
        assert response.status in (200, 201), f"PUT {target}: {response.status} {text}"


class S3(Server):
    """An S3 server, which verifies no signatures but requires an owner for private objects."""

    def signed(self, path, query, headers, body):
        return headers

    def bucket(self, name, public):
        acl = {"x-amz-acl": "public-read"} if public else {}
        self.put(f"/{name}", {}, acl, b"")

    def object(self, bucket, key, body, public):
        acl = {"x-amz-acl": "public-read"} if public else {}
        self.put(f"/{bucket}/{key}", {}, acl, body)


class Azure(Server):
    """An Azure server, which verifies signatures of the default account of Azurite."""

    def __init__(self, address):
        super().__init__(address)
        self.account = os.environ["AZURE_STORAGE_ACCOUNT_NAME"]
        self.key = base64.b64decode(os.environ["AZURE_STORAGE_ACCOUNT_KEY"])

    def signed(self, path, query, headers, body):
        headers = {
            **headers,
            "x-ms-date": formatdate(usegmt=True),
            "x-ms-version": "2021-08-06",
        }
        special = "".join(
            f"{name}:{value}\n"
            for name, value in sorted(headers.items())
            if name.startswith("x-ms-")
        )
        resource = f"/{self.account}{urllib.parse.quote(path)}"
        resource += "".join(f"\n{name}:{query[name]}" for name in sorted(query))
        length = str(len(body)) if body else ""
        # Encoding, language, length, MD5, type, date, five conditions, range.
        plain = ["PUT", "", "", length, "", "", "", "", "", "", "", ""]
        text = "\n".join(plain) + "\n" + special + resource
        digest = hmac.new(self.key, text.encode(), hashlib.sha256).digest()
        signature = base64.b64encode(digest).decode()
        return {**headers, "Authorization": f"SharedKey {self.account}:{signature}"}

    def bucket(self, name, public):
        access = {"x-ms-blob-public-access": "container"} if public else {}
        query = {"restype": "container"}
        self.put(f"/{self.account}/{name}", query, access, b"")

    def object(self, bucket, key, body, public):
        headers = {"x-ms-blob-type": "BlockBlob"}
        self.put(f"/{self.account}/{bucket}/{key}", {}, headers, body)


def main():
    folder = pathlib.Path(sys.argv[1])
    servers = [S3(sys.argv[2]), Azure(sys.argv[3])]
    unpack(folder)
    puts = []
    for server in servers:
        server.bucket("stores", False)
        server.bucket("public", True)
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                key = file.relative_to(folder).as_posix()
                puts.append((server, "stores", key, file, False))
                if key.startswith(f"{PUBLIC}/"):
                    puts.append((server, "public", key, file, True))
    with ThreadPoolExecutor(8) as pool:
        list(
            pool.map(
                lambda p: p[0].object(p[1], p[2], p[3].read_bytes(), p[4]),
                puts,
            )
        )
    print(f"{len(STORES)} stores, {len(puts)} objects uploaded")


main()
