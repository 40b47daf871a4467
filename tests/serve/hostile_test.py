#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Requests that no friend would send: `rehearse serve` refuses them, says why, and goes on.

Usage: hostile_test.py PROGRAM ROOT [unittest arguments]
"""
import json
import socket
import sys
import threading
import time
import unittest
from pathlib import Path

PROGRAM = str(Path(sys.argv.pop(1)).resolve())
ROOT = Path(sys.argv.pop(1)).resolve()
sys.path.insert(0, str(Path(__file__).parent))
from served import Served  # noqa: E402

JSON = {"Content-Type": "application/json"}


class Hostile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Served(PROGRAM, "--jobs", "1", "--max-upload", "1MiB")
        cls.ask, cls.raw = cls.server.ask, cls.server.raw

    @classmethod
    def tearDownClass(cls):
        cls.server.close()

    def tearDown(self):
        self.assertEqual(self.raw("GET", "/api/v1")[0], 200, "the server is gone")

    def socket(self):
        connection = socket.create_connection(("127.0.0.1", self.server.port), timeout=30)
        self.addCleanup(connection.close)
        return connection

    def exchange(self, data):
        connection = self.socket()
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        answer = b""
        while part := connection.recv(65536):
            answer += part
        return answer

    def refused(self, status, method, path, body=None, headers=None):
        got, _, text = self.raw(method, path, body, headers)
        self.assertIn(got, status if isinstance(status, tuple) else (status,), (method, path, text[:300]))
        error = json.loads(text)["error"]
        self.assertTrue(error["what"])
        self.assertEqual(list(error), ["code", "what", "where", "fix"])
        return error

    def test_paths_lead_nowhere_else(self):
        for path in ("/../../etc/passwd", "/assets/../../etc/passwd", "/assets/..%2f..%2fetc%2fpasswd", "/%2e%2e/%2e%2e/etc/passwd",
                     "/assets/%2e%2e", "/api/v1/jobs/..%2f..%2fetc/files/passwd", "/api/v1/traces/..%2f..%2flock",
                     "/api/v1/traces/..%2fjobs%2f1%2fjob.json/file", "//etc/passwd", "/api/v1/jobs/1/files/..%2fjob.json",
                     "/api/v1/traces/%00.rtrace/file", "/api/v1/platforms/..%2f..%2fdgx", "/api/v1/scenarios/..%2fx"):
            self.refused(404, "GET", path)
        job = self.server.wait(self.server.submit("run", {"scenario": "ddp-16"}))
        for name in ("job.json", "..%2f" + job["id"] + "%2fresult.json", "%2fetc%2fpasswd", "./result.json"):
            self.refused(404, "GET", f"/api/v1/jobs/{job['id']}/files/{name}")

    def test_words_of_a_request_are_no_options_and_no_files(self):
        for subject in ({"scenario": "--help"}, {"scenario": "../../../etc/passwd"}, {"scenario": "a/b"}, {"scenario": "x.yaml"},
                        {"trace": "../x.rtrace"}, {"trace": "-x.rtrace"}, {"trace": "/tmp/x.rtrace"}, {"trace": ".rtrace"},
                        {"yaml": "trace: /etc/passwd"}, {"yaml": "trace: ../../traces/x.rtrace"}, {"yaml": "trace: {file: /dev/zero}"},
                        {"yaml": "trace: ~/x.rtrace"}, {"yaml": "trace: ddp-16\nplatform: /etc/passwd"},
                        {"yaml": "trace: ddp-16\nplatform: {like: ../../x.yaml}"}):
            self.refused(400, "POST", "/api/v1/jobs", json.dumps({"kind": "run", "subject": subject}), JSON)
        self.refused(404, "GET", "/api/v1/faults/--catalogue=%2Ftmp")
        self.refused(404, "GET", "/api/v1/platforms/--help")
        # A value that looks like an option is a value; what it names does not exist.
        job = self.server.wait(self.server.submit("run", {"scenario": "ddp-16", "edits": [{"set": "--output=/tmp/owned"}]}))
        self.assertEqual(job["state"], "failed")
        self.assertFalse(Path("/tmp/owned").exists())

    def test_bodies_that_make_no_sense(self):
        for body in ("", "{", "[]", "null", "[[[[[[", '{"kind": 1}', '{"kind": "run"}', '{"kind": "destroy", "subject": {"scenario": "ddp-16"}}',
                     '{"kind": "run", "subject": {}}', '{"kind": "run", "subject": {"scenario": "ddp-16", "yaml": "x"}}',
                     '{"kind": "run", "subject": {"scenario": "ddp-16"}, "extra": 1}', '{"kind": "import", "subject": {"scenario": "ddp-16"}}',
                     '{"kind": "run", "subject": {"scenario": "ddp-16", "edits": [{"set": "a=1", "fault": "F16"}]}}',
                     '{"kind": "run", "subject": {"scenario": "ddp-16", "edits": [{"set": "a=\\u0000"}]}}',
                     '{"kind": "report", "outcomes": ["../1"]}', '{"kind": "report", "outcomes": []}',
                     '{"kind": "run", "subject": {"yaml": "a: &a [*a, *a]"}}', '{"kind": "run", "also": ["everything"], "subject": {"scenario": "ddp-16"}}',
                     '{"kind": "run", "subject": {"yaml": "' + "[" * 5000 + '"}}', "\x00\xff\xfe", '{"kind": "run", "title": "' + "x" * 300 + '", "subject": {"scenario": "ddp-16"}}'):
            self.refused((400, 413), "POST", "/api/v1/jobs", body.encode("latin-1"), JSON)
        deep = '{"subject":' * 100000
        self.refused((400, 413), "POST", "/api/v1/jobs", deep[:900000], JSON)
        for path in ("/api/v1/preview", "/api/v1/traces"):
            self.refused(400, "POST", path, "{]", JSON)
        edits = [{"set": "a=1"}] * 65
        self.refused(413, "POST", "/api/v1/preview", json.dumps({"scenario": "ddp-16", "edits": edits}), JSON)

    def test_bodies_that_are_too_long_are_not_read(self):
        self.refused(413, "POST", "/api/v1/jobs", b"x" * (2 << 20), JSON)
        self.refused(413, "POST", "/api/v1/traces?name=x", b"x" * (2 << 20), {"Content-Type": "application/octet-stream"})
        # Only announced: answered at once, without waiting for a terabyte.
        head = b"POST /api/v1/jobs HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\nContent-Length: 1000000000000\r\n\r\n" % self.server.port
        connection = self.socket()
        connection.sendall(head)
        self.assertIn(b" 413 ", connection.recv(4096))
        self.assertEqual(list((Path(self.server.folder) / "uploads").iterdir()), [])

    def test_heads_that_are_too_long(self):
        host = b"Host: 127.0.0.1:%d\r\n" % self.server.port
        self.assertIn(b" 414 ", self.exchange(b"GET /" + b"a" * 2000 + b" HTTP/1.1\r\n" + host + b"\r\n").split(b"\r\n")[0])
        for data in (b"GET /" + b"a" * 100000, b"GET / HTTP/1.1\r\n" + host + b"X: y\r\n" * 20000 + b"\r\n",
                     b"GET / HTTP/1.1\r\n" + host + b"X: " + b"y" * 200000 + b"\r\n\r\n", b"\x00" * 100000, b"\r\n" * 100000):
            self.assertNotIn(b" 200 ", self.exchange(data).split(b"\r\n")[0])

    def test_what_is_not_http(self):
        for data in (b"\x16\x03\x01\x02\x00\x01\x00", b"SSH-2.0-x\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b""):
            self.assertNotIn(b" 200 ", self.exchange(data))

    def test_lengths_that_lie(self):
        port = self.server.port
        start = b"POST /api/v1/jobs HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\n" % port
        twice = self.exchange(start + b"Content-Length: 2\r\nContent-Length: 50\r\n\r\n{}GET /api/v1 HTTP/1.1\r\nHost: x\r\n\r\n")
        self.assertEqual(twice.count(b"HTTP/1.1 "), 1)
        self.assertNotIn(b" 200 ", twice)
        chunked = self.exchange(start + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n")
        self.assertIn(b" 411 ", chunked.split(b"\r\n")[0])
        self.assertIn(b" 4", self.exchange(start + b"Content-Length: -5\r\n\r\n{}").split(b"\r\n")[0])
        self.assertIn(b" 500 ", self.exchange(start + b"Content-Length: 500\r\n\r\n{}").split(b"\r\n")[0])

    def test_other_names_of_this_server_are_refused(self):
        for host in ("evil.example", f"evil.example:{self.server.port}", "127.0.0.1", f"127.0.0.1.evil.example:{self.server.port}",
                     f"10.0.0.1:{self.server.port}", "", f"localhost:{self.server.port + 1}", "[::1", "localhost:99999999"):
            self.refused(421, "GET", "/api/v1", headers={"Host": host})
        for host in (f"localhost:{self.server.port}", f"LOCALHOST:{self.server.port}", f"[::1]:{self.server.port}", f"127.1.2.3:{self.server.port}"):
            self.assertEqual(self.raw("GET", "/api/v1", headers={"Host": host})[0], 200, host)

    def test_pages_of_others_are_refused(self):
        body = json.dumps({"kind": "run", "subject": {"scenario": "ddp-16"}})
        for headers in ({"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": f"http://localhost:{self.server.port}"},
                        {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}):
            self.refused(403, "POST", "/api/v1/jobs", body, {**JSON, **headers})
            self.refused(403, "GET", "/api/v1/jobs", headers=headers)
        own = {**JSON, "Origin": f"http://127.0.0.1:{self.server.port}", "Sec-Fetch-Site": "same-origin"}
        self.assertEqual(self.raw("POST", "/api/v1/preview", json.dumps({"scenario": "ddp-16"}), own)[0], 200)
        # What a form of another site can send without asking first.
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""):
            self.refused(415, "POST", "/api/v1/jobs", body, {"Content-Type": kind})
        self.refused(405, "OPTIONS", "/api/v1/jobs", headers={"Access-Control-Request-Method": "POST"})
        headers = self.raw("GET", "/api/v1")[1]
        self.assertFalse([name for name in headers if name.lower().startswith("access-control")])
        self.refused(415, "POST", "/api/v1/jobs", body, {**JSON, "Content-Encoding": "gzip"})

    def test_slow_clients_lose_their_connection_and_nobody_waits_for_them(self):
        slow = []
        for _ in range(100):
            connection = self.socket()
            connection.sendall(b"GET /api/v1 HTTP/1.1\r\nHost: x")
            slow.append(connection)
        began = time.monotonic()
        self.assertEqual(self.raw("GET", "/api/v1", timeout=5)[0], 200)
        self.assertLess(time.monotonic() - began, 5)
        # One byte now and then does not buy more time.
        ended = []

        def trickle(connection):
            try:
                for _ in range(24):
                    connection.sendall(b"a")
                    time.sleep(0.5)
            except OSError:
                ended.append(connection)
        threads = [threading.Thread(target=trickle, args=(c,)) for c in slow[:10]]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(ended), 10)

    def test_many_event_streams_are_bounded(self):
        streams, refused = [], 0
        for _ in range(80):
            connection = self.socket()
            connection.sendall(b"GET /api/v1/events HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % self.server.port)
            streams.append(connection)
        for connection in streams:
            refused += b" 503 " in connection.recv(200).split(b"\r\n")[0]
        self.assertEqual(refused, 80 - 64)
        for connection in streams:
            connection.close()
        end = time.monotonic() + 20
        while time.monotonic() < end:
            if b" 200 " in self.head_of("/api/v1/events"):
                return
            time.sleep(0.2)
        self.fail("places of streams that were closed are not given back")

    def head_of(self, path):
        connection = self.socket()
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.server.port}\r\n\r\n".encode())
        head = connection.recv(200)
        connection.close()
        return head


class Token(unittest.TestCase):
    def test_a_token_is_asked_for(self):
        server = Served(PROGRAM, "--token", "0123456789abcdef0123")
        self.addCleanup(server.close)
        self.assertIn("?token=0123456789abcdef0123", server.url)
        for headers in ({}, {"Authorization": "Bearer 0123456789abcdef0124"}, {"Authorization": "Basic 0123456789abcdef0123"},
                        {"Cookie": "rehearse_token="}, {"Cookie": "x=0123456789abcdef0123"}):
            self.assertEqual(server.raw("GET", "/api/v1", headers=headers)[0], 401, headers)
            self.assertEqual(server.raw("GET", "/", headers=headers)[0], 401, headers)
        self.assertEqual(server.raw("GET", "/api/v1", headers={"Authorization": "Bearer 0123456789abcdef0123"})[0], 200)
        self.assertEqual(server.raw("GET", "/?token=wrong")[0], 401)
        status, headers, _ = server.raw("GET", "/?token=0123456789abcdef0123")
        self.assertEqual((status, headers["Location"]), (303, "/"))
        self.assertIn("HttpOnly; SameSite=Strict", headers["Set-Cookie"])
        cookie = headers["Set-Cookie"].split(";")[0]
        self.assertEqual(server.raw("GET", "/", headers={"Cookie": "a=b; " + cookie})[0], 200)
        self.assertEqual(server.raw("GET", "/?token=0123456789abcdef0123", headers={"Host": "evil.example"})[0], 421)

    def test_other_addresses_than_loopback_need_one(self):
        server = Served(PROGRAM, "--bind", "0.0.0.0")
        self.addCleanup(server.close)
        self.assertRegex(server.token, r"^[0-9a-f]{32}$")
        self.assertEqual(server.raw("GET", "/api/v1")[0], 401)
        self.assertEqual(server.raw("GET", "/api/v1", headers={"Authorization": "Bearer " + server.token})[0], 200)
        self.assertEqual(server.raw("GET", "/api/v1", headers={"Authorization": "Bearer " + server.token, "Host": "evil.example"})[0], 421)


if __name__ == "__main__":
    unittest.main()
