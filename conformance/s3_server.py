"""Moto's S3 server, which serves one request at a time.

    s3_server.py PORT

Moto checks the condition of a put and then writes, and another thread may write in between; S3 does
both atomically, which writers rely on. Moto also fails to list while another thread deletes. Its
command would look for the service of each request among all of its services, which takes as long as
the response.
"""

import sys
import threading

from moto.server import MotoRequestHandler, create_backend_app, run_simple

ONE = threading.Lock()
S3 = create_backend_app("s3")


def respond(environ, start_response):
    with ONE:
        return list(S3(environ, start_response))


run_simple("127.0.0.1", int(sys.argv[1]), respond, threaded=True, request_handler=MotoRequestHandler)
