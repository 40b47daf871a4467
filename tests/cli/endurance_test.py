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


if __name__ == "__main__":
    unittest.main()
