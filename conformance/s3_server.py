"""Moto's S3 server, which serves one request at a time.

    s3_server.py PORT

Moto checks the condition of a put and then writes, and another thread may write in between; S3 does
both atomically, which writers rely on. Moto also fails to list while another thread deletes.
"""

import sys
import threading

import moto.server

ONE = threading.Lock()
serve = moto.server.run_simple


def one_at_a_time(app):
    def respond(environ, start_response):
        with ONE:
            return list(app(environ, start_response))

    return respond


def run(host, port, app, **options):
    serve(host, port, one_at_a_time(app), **options)


moto.server.run_simple = run
moto.server.main(["-H", "127.0.0.1", "-p", sys.argv[1]])
