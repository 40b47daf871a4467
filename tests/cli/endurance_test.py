#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Endurance: a sweep of many points, and the service under mixed load, for REHEARSE_SOAK_MINUTES each (default 30).
Memory of the process is flat once it is warm and no descriptor stays open.

Usage: endurance_test.py PROGRAM [unittest arguments]
"""
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request
from pathlib import Path

PROGRAM = str(Path(sys.argv.pop(1)).resolve())
MINUTES = float(os.environ.get("REHEARSE_SOAK_MINUTES", "30"))

STUDY = """
base: job.yaml
axes:
  - {name: seed, seed: [%s]}
  - {set: "launch.ranks[*].env.NCCL_ALGO", values: [Ring, Tree]}
  - {set: "platform.nodes[*].nics[*].bandwidth", values: [25Gbps, 50Gbps, 100Gbps, 200Gbps]}
"""


def sample(pid):
    """Resident kilobytes and open descriptors."""
    status = Path(f"/proc/{pid}/status").read_text()
    resident = int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS:")))
    return resident, len(os.listdir(f"/proc/{pid}/fd"))


class Endurance(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.at = Path(self.folder.name)
        subprocess.run([PROGRAM, "synth", "resnet50", "--dp", "4", "--steps", "1", "-o", self.at / "four.rtrace"],
                       check=True, capture_output=True)
        (self.at / "job.yaml").write_text("trace: four.rtrace\nplatform: {like: dgx-a100}\n")

    def judge(self, samples, what):
        """Flat: the last third is not above the middle third by more than a tenth and 8 MB."""
        self.assertGreater(len(samples), 8, "too short to judge")
        third = len(samples) // 3
        middle, last = samples[third:2 * third], samples[2 * third:]
        before, after = (max(r for r, _ in part) for part in (middle, last))
        print(f"{what}: {len(samples)} samples, resident {before / 1024:.1f} MB in the middle, {after / 1024:.1f} MB at the "
              f"end, descriptors {max(f for _, f in middle)} and {max(f for _, f in last)}", flush=True)
        self.assertLess(after, before * 1.1 + 8192, "memory grows")
        self.assertLessEqual(max(f for _, f in last), max(f for _, f in middle) + 2, "descriptors stay open")

    def watch(self, process, act=lambda: time.sleep(0.5)):
        samples = []
        end = time.monotonic() + 60 * MINUTES
        last = 0.0
        while time.monotonic() < end and process.poll() is None:
            act()
            if time.monotonic() - last >= min(5, 2 * MINUTES):
                last = time.monotonic()
                samples.append(sample(process.pid))
        return samples

    def test_sweep(self):
        (self.at / "study.yaml").write_text(STUDY % ", ".join(map(str, range(1, 20_000))))
        process = subprocess.Popen([PROGRAM, "sweep", self.at / "study.yaml", "-o", self.at / "out", "--jobs", "2"],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.at)
        samples = self.watch(process)
        self.assertIsNone(process.poll(), "the sweep ended by itself")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=60), 130)
        points = list((self.at / "out/points").glob("*.json"))
        self.assertGreater(len(points), 0)
        for point in points[:1000]:
            json.loads(point.read_text())
        self.judge(samples, f"sweep, {len(points)} points")

    def test_serve(self):
        verbs = json.loads(subprocess.run([PROGRAM, "help", "--json"], capture_output=True, check=True).stdout)["verbs"]
        if "serve" not in [verb["name"] for verb in verbs]:
            self.skipTest("this build has no serve")
        server = subprocess.Popen([PROGRAM, "serve", "--port", "0", "--json", "--jobs", "2", self.at / "work"],
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(server.kill)
        text = ""
        while not text.endswith("}\n"):
            line = server.stdout.readline()
            self.assertTrue(line, "the server ended before it told its address")
            text += line
        url = json.loads(text)["url"].rstrip("/")
        load = random.Random(1)
        answers = {}
        jobs = []

        def ask(method, path, body=None, headers=None):
            request = urllib.request.Request(url + path, method=method, data=body,
                                             headers={"Content-Type": "application/json", **(headers or {})})
            try:
                with urllib.request.urlopen(request, timeout=60) as answer:
                    status, content = answer.status, answer.read()
            except urllib.error.HTTPError as error:
                status, content = error.code, error.read()
            answers[status] = answers.get(status, 0) + 1
            self.assertLess(status, 500, f"{method} {path}: {content[:300]}")
            return status, content

        def submit():
            faults = ([], [{"fault": "F16"}], [{"patch": "skip-collective: {rank: 3, nth: 5}"}], [{"set": "no.such=1"}])
            status, content = ask("POST", "/api/v1/jobs", json.dumps({
                "kind": load.choice(["run", "check", "diagnose"]),
                "subject": {"scenario": "ddp-16", "edits": load.choice(faults)}}).encode())
            if status in (200, 201, 202):
                jobs.append(json.loads(content)["id"])

        def drop():
            """Keeps few jobs: those that are done go, first come first."""
            if len(jobs) > 20:
                ask("POST", f"/api/v1/jobs/{jobs[0]}/cancel")
                ask("DELETE", f"/api/v1/jobs/{jobs.pop(0)}")

        def half_a_request():
            port = int(url.rsplit(":", 1)[1])
            with socket.create_connection(("127.0.0.1", port)) as connection:
                connection.sendall(b"POST /api/v1/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100000\r\n\r\n{")

        acts = [submit, drop, half_a_request,
                lambda: ask("GET", "/"), lambda: ask("GET", "/metrics"), lambda: ask("GET", "/api/v1/jobs"),
                lambda: ask("GET", "/api/v1/platforms"), lambda: ask("GET", "/api/v1/faults/F16"),
                lambda: ask("GET", "/api/v1/traces/..%2f..%2fetc%2fpasswd"),
                lambda: ask("POST", "/api/v1/jobs", load.randbytes(200)),
                lambda: ask("GET", "/" + "x" * 2000),
                lambda: jobs and ask("GET", f"/api/v1/jobs/{load.choice(jobs)}/result")]
        samples = self.watch(server, lambda: load.choice(acts)())
        self.assertIsNone(server.poll(), "the server ended by itself")
        server.send_signal(signal.SIGINT)
        server.wait(timeout=120)
        self.judge(samples, f"serve, answers by status {dict(sorted(answers.items()))}")


if __name__ == "__main__":
    unittest.main()
