# SPDX-License-Identifier: Apache-2.0
"""A server of `rehearse serve` for tests: started at a free port in a folder of its own, asked over loopback."""
import http.client
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time


class Served:
    def __init__(self, program, *options, folder=None):
        self.program, self.options = program, options
        self.folder = folder or tempfile.mkdtemp(prefix="rehearse-serve-")
        self.mine = folder is None
        self.start()

    def start(self):
        self.process = subprocess.Popen([self.program, "serve", "--port", "0", "--json", *self.options, self.folder],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        text = ""
        while "\n}\n" not in text:
            line = self.process.stdout.readline()
            if not line:
                raise RuntimeError("the server did not start: " + self.process.stderr.read())
            text += line
        about = json.loads(text)
        self.port, self.token, self.url = about["port"], about["token"], about["url"]

    def stop(self, how=signal.SIGTERM):
        """The exit code."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        self.process.communicate(timeout=20)
        return self.process.returncode

    def close(self):
        self.stop(signal.SIGTERM)
        if self.mine:
            shutil.rmtree(self.folder, ignore_errors=True)

    def raw(self, method, path, body=None, headers=None, timeout=60):
        """Status, headers and bytes of an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request(method, path, body=body, headers=headers or {})
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    def ask(self, method, path, body=None, headers=None, expect=None):
        """The JSON document of an answer of the API; (status, document) when no status is expected."""
        headers = dict(headers or {})
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body)
            headers.setdefault("Content-Type", "application/json")
        status, _, text = self.raw(method, "/api/v1" + path, body, headers)
        document = json.loads(text) if text else None
        if expect is None:
            return status, document
        assert status == expect, (method, path, status, text[:2000])
        return document

    def submit(self, kind, subject=None, **more):
        request = {"kind": kind, **more}
        if subject is not None:
            request["subject"] = subject
        return self.ask("POST", "/jobs", request, expect=202)["id"]

    def wait(self, id, timeout=120):
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            job = self.ask("GET", f"/jobs/{id}", expect=200)
            if job["state"] not in ("queued", "running"):
                return job
            time.sleep(0.05)
        raise AssertionError(f"job {id} is still {job['state']} after {timeout} s")

    def result(self, id):
        return self.ask("GET", f"/jobs/{id}/result", expect=200)

    def memory_kib(self):
        with open(f"/proc/{self.process.pid}/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))
