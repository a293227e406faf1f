"""Moto's S3 server, with one change to an object at a time.

    s3_server.py PORT

Moto looks whether the condition of a put holds and then puts, and another thread may
put in between. S3 does both at once, which whoever writes relies on.
"""

import sys
import threading

import moto.server

CHANGES = threading.Lock()
serve = moto.server.run_simple


def one_at_a_time(app):
    def changed(environ, start_response):
        if environ["REQUEST_METHOD"] in ("GET", "HEAD"):
            return app(environ, start_response)
        with CHANGES:
            return list(app(environ, start_response))

    return changed


def run(host, port, app, **options):
    serve(host, port, one_at_a_time(app), **options)


moto.server.run_simple = run
moto.server.main(["-H", "127.0.0.1", "-p", sys.argv[1]])
