"""The tests of `crates/zvf/tests/it/servers` with an S3 server, Azurite and a web server on this machine.

Some stores of `testdata` are uploaded to both clouds: all to the private bucket and container `stores`, one also to
those called `public`, which allow anonymous reads.
"""

import base64
import contextlib
import hashlib
import hmac
import http.client
import os
import re
import socket
import subprocess
import sys
import tarfile
import time
import urllib.parse
from concurrent.futures import ThreadPoolExecutor
from email.utils import formatdate
from pathlib import Path

import boto3
import pytest

from corpus import TESTDATA

ROOT, HERE = TESTDATA.parent, Path(__file__).parent
# Tests that print a line.
REPORTS = 17
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
# The account that every Azurite has, with its documented key.
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


@contextlib.contextmanager
def server(folder, name, command, **environment):
    """Starts a server on a free port, and yields its address when it responds."""
    with socket.socket() as free:
        # Another process may take the port before the server binds it. The server then ends.
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with open(folder / f"{name}.log", "w+") as log:
        line = [str(port) if word == "PORT" else str(word) for word in command]
        process = subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=os.environ | environment)
        try:
            end = time.monotonic() + 120
            while not responds(port):
                log.seek(0)
                assert process.poll() is None, f"the {name} server ended: {log.read()[-2000:]}"
                assert time.monotonic() < end, f"the {name} server does not respond: {log.read()[-2000:]}"
                time.sleep(0.05)
            yield f"127.0.0.1:{port}"
        finally:
            process.kill()
            process.wait()


def responds(port):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    with contextlib.suppress(OSError, http.client.HTTPException), contextlib.closing(connection):
        connection.request("GET", "/")
        connection.getresponse()
        return True
    return False


def unpack(folder):
    for name, (archive, store) in STORES.items():
        with tarfile.open(TESTDATA / f"{archive}.tar.gz") as tar:
            below = {member: member.name.split("/", 1)[1] for member in tar.getmembers() if member.isfile()}
            found = {member: path for member, path in below.items() if path.startswith(f"{store}/")}
            assert found, f"{store} is not in {archive}"
            for member, path in found.items():
                at = folder / name / path[len(store) + 1 :]
                at.parent.mkdir(parents=True, exist_ok=True)
                at.write_bytes(tar.extractfile(member).read())


class Azure:
    """Uploads to an Azure server, which verifies signatures."""

    def __init__(self, address):
        self.address = address

    def put(self, path, query, headers, body=b""):
        path = f"/{ACCOUNT}/{path}"
        headers = headers | {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2021-08-06"}
        special = "".join(f"{name}:{value}\n" for name, value in sorted(headers.items()))
        resource = f"/{ACCOUNT}{urllib.parse.quote(path)}" + "".join(f"\n{name}:{query[name]}" for name in sorted(query))
        # Encoding, language, length, MD5, type, date, five conditions, range.
        plain = ["PUT", "", "", str(len(body)) if body else "", "", "", "", "", "", "", "", ""]
        text = "\n".join(plain) + "\n" + special + resource
        digest = hmac.new(base64.b64decode(KEY), text.encode(), hashlib.sha256).digest()
        headers["Authorization"] = f"SharedKey {ACCOUNT}:{base64.b64encode(digest).decode()}"
        target = urllib.parse.quote(path) + ("?" + urllib.parse.urlencode(query) if query else "")
        connection = http.client.HTTPConnection(self.address, timeout=60)
        connection.request("PUT", target, body=body, headers=headers)
        response = connection.getresponse()
        assert response.status == 201, f"PUT {target}: {response.status} {response.read()}"
        connection.close()

    def bucket(self, name, is_public):
        access = {"x-ms-blob-public-access": "container"} if is_public else {}
        self.put(name, {"restype": "container"}, access)

    def object(self, bucket, key, body, is_public):
        self.put(f"{bucket}/{key}", {}, {"x-ms-blob-type": "BlockBlob"}, body)


class S3:
    """Uploads to an S3 server, which requires an owner for private objects."""

    def __init__(self, address):
        keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test", "region_name": "us-east-1"}
        self.client = boto3.client("s3", endpoint_url=f"http://{address}", **keys)

    def bucket(self, name, is_public):
        self.client.create_bucket(Bucket=name, ACL="public-read" if is_public else "private")

    def object(self, bucket, key, body, is_public):
        self.client.put_object(Bucket=bucket, Key=key, Body=body, ACL="public-read" if is_public else "private")


def fill(folder, clouds):
    puts = []
    for cloud in clouds:
        cloud.bucket("stores", False)
        cloud.bucket("public", True)
        for file in filter(Path.is_file, sorted(folder.rglob("*"))):
            key = file.relative_to(folder).as_posix()
            puts.append((cloud, "stores", key, file.read_bytes(), False))
            if key.startswith(f"{PUBLIC}/"):
                puts.append((cloud, "public", key, file.read_bytes(), True))
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda put: put[0].object(*put[1:]), puts))
    return len(puts)


def test_servers(modules, tmp_path, tell, pytestconfig):
    cargo = ["cargo", "test", "--quiet", *os.environ.get("ZVF_FEATURES", "--workspace --locked").split(), "--test", "it"]
    compiler = {"RUSTC_WORKSPACE_WRAPPER": os.environ.get("ZVF_COMPILER", "")}
    # Compile first, so that a compile error does not look like a failure of a server.
    subprocess.run([*cargo, "--no-run"], cwd=ROOT, env=os.environ | compiler, check=True)
    stores = tmp_path / "stores"
    unpack(stores)
    options = "--silent --inMemoryPersistence --disableTelemetry --skipApiVersionCheck --blobHost 127.0.0.1 --blobPort"
    azurite = ["node", modules / "azurite/dist/src/blob/main.js", *options.split(), "PORT"]
    with (
        server(tmp_path, "s3", [sys.executable, "-B", HERE / "s3_server.py", "PORT"]) as s3,
        server(tmp_path, "azure", azurite) as azure,
        server(tmp_path, "http", ["node", HERE / "node/ranges.js", stores, "PORT"], NODE_PATH=str(modules)) as web,
    ):
        count = fill(stores, [S3(s3), Azure(azure)])
        tell(f"servers: {len(STORES)} stores, {count} objects uploaded")
        foreign = re.compile("(aws|azure|google)_|((https?|all|no)_proxy$)", re.IGNORECASE)
        # The variables that a user would set; object_store reads all but the last three.
        environment = {name: value for name, value in os.environ.items() if not foreign.match(name)} | compiler | {
            "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": f"http://{s3}", "AWS_ALLOW_HTTP": "true",
            "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT, "AZURE_STORAGE_ACCOUNT_KEY": KEY,
            "AZURE_STORAGE_ENDPOINT": f"http://{azure}/{ACCOUNT}", "AZURE_ALLOW_HTTP": "true",
            # Neither npm nor PyPI has a Google Cloud Storage server that lists. Its client uses the protocol of S3.
            "GOOGLE_BASE_URL": f"http://{s3}", "GOOGLE_BEARER_TOKEN": "test",
            "ZVF_TEST_STORES": str(stores), "ZVF_TEST_HTTP": f"http://{web}",
            "ZVF_TEST_SCALE": str(pytestconfig.getoption("--scale")),
        }
        # One thread per server: they wait most of the time.
        tests = [*cargo, "servers::", "--", "--ignored", "--nocapture", "--test-threads", "4"]
        done = subprocess.run(tests, cwd=ROOT, env=environment, capture_output=True, text=True)
    # libtest may put other text in front.
    reports = re.findall("servers: .*", done.stdout)
    for line in reports:
        tell(line)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(reports) == REPORTS, f"{len(reports)} tests reported, not {REPORTS}"
