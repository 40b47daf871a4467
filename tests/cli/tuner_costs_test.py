#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Costs that a tuner plugin was shown, from `capture --with tuner` to what `calibrate` makes of them.

Usage: tuner_costs_test.py PROGRAM WATCHED [unittest arguments]
WATCHED plays NCCL and asks the capture library, as its tuner, with costs of a file: those that NCCL computes on a machine
whose network is not that of the data sheet.
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM, WATCHED = (str(Path(sys.argv.pop(1)).resolve()) for _ in range(2))
ALGORITHMS = ["TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT"]
PROTOCOLS = ["LL", "LL128", "SIMPLE"]
SIZES = [1024, 65536, 1 << 20, 16 << 20, 1 << 30]
MACHINE = ["--platform", "dgx-h100"]


def rehearse(*words, cwd):
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("NCCL_", "CUDA_INJ", "NVTX_"))}
    done = subprocess.run([PROGRAM, *words], cwd=cwd, env=clean, capture_output=True, text=True,
                          timeout=600)
    if done.returncode != 0:
        raise AssertionError(f"rehearse {' '.join(words)}: {done.returncode}\n{done.stderr}")
    return done.stdout


def costs_of(bandwidth, cwd):
    """What NCCL computes for all-reduces of two nodes whose ports have that rate, as a tuner sees it."""
    lines = ["16 2"]
    for size in SIZES:
        told = json.loads(rehearse("nccl", "explain", *MACHINE, "--nodes", "2", "--collective", "all_reduce",
                                   "--bytes", str(size), "--nccl-version", "2.28.9",
                                   "--set", f"nodes[*].nics[*].bandwidth={bandwidth}", "--json", cwd=cwd))
        cells = {(v["algorithm"], v["protocol"]): v.get("nccl_time_us", -1) for v in told["variants"]
                 if v["available"]}
        lines.append(" ".join([str(size)] + [repr(cells.get((a, p), -1)) for a in ALGORITHMS for p in PROTOCOLS]))
    return "\n".join(lines) + "\n"


class TunerCosts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.here = Path(folder.name)

    def record(self, bandwidth, tuner_version):
        costs = self.here / "costs.txt"
        costs.write_text(costs_of(bandwidth, self.here))
        self.cells = sum(cost != "-1" for cost in costs.read_text().splitlines()[1].split()[1:])
        rehearse("capture", "--force", "--with", "tuner", "-o", "run", "--", WATCHED, "tuner", str(tuner_version), "0",
                 str(costs), cwd=self.here)
        return "run"

    def calibrated(self, *evidence):
        told = json.loads(rehearse("calibrate", *evidence, *MACHINE, "--nccl-version", "2.28.9", "--force",
                                   "-o", "overlay.yaml", "--json", cwd=self.here))
        return told, (self.here / "overlay.yaml").read_text()

    def time_with(self, overlay):
        words = ["nccl", "explain", *MACHINE, "--nodes", "2", "--collective", "all_reduce", "--bytes", "1GiB",
                 "--env", "NCCL_ALGO=Ring", "--json"]
        return json.loads(rehearse(*words, *overlay, cwd=self.here))["time_ns"]

    def port(self, told):
        return next(f for f in told["machine"]["figures"] if f["path"] == "platform.nodes[*].nics[*].bandwidth")

    def test_a_slower_port_is_found_and_stated_with_its_evidence(self):
        for version in (3, 6):
            told, overlay = self.calibrated(self.record("40Gbps", version))
            port = self.port(told)
            self.assertEqual((port["standing"], port["described"], port["value"]), ("recorded", "50GB/s", "40Gbps"))
            self.assertEqual(told["machine"]["costs"], len(SIZES) * self.cells)
            self.assertIn('"platform.nodes[*].nics[*].bandwidth": 40Gbps', overlay)
            self.assertIn("evidence: [run]", overlay)

    def test_what_several_figures_explain_stays_as_described(self):
        told, overlay = self.calibrated(self.record("200Gbps", 6))
        self.assertEqual(self.port(told)["standing"], "undetermined")  # PCIe with half the lanes looks the same
        self.assertEqual(self.port(told)["others"], ["200Gbps"])
        self.assertNotIn("\nset:", overlay)

    def test_the_port_of_the_data_sheet_stays(self):
        told, overlay = self.calibrated(self.record("400Gbps", 6))
        self.assertEqual(told["machine"]["agreed"], told["machine"]["costs"])
        self.assertNotIn("\nset:", overlay)

    def test_the_overlay_slows_what_runs_on_the_platform(self):
        self.calibrated(self.record("40Gbps", 6))
        step = [json.loads(rehearse("run", *words, "--json", cwd=self.here))["step_time_ns"]["p50"]
                for words in (["ddp-16"], ["ddp-16", "--patch-file", "overlay.yaml"])]
        self.assertGreater(step[1], step[0])

    def test_times_are_fitted_on_the_machine_that_the_costs_tell(self):
        # What nccl-tests measures on that machine: with its port as on the data sheet no share within its bounds explains it.
        rows = ["collective,bytes,time_us_oop,nodes,gpus,nccl_version"]
        for size in (1 << 24, 1 << 26, 1 << 28, 1 << 30):
            told = json.loads(rehearse("nccl", "explain", *MACHINE, "--nodes", "2", "--collective", "all_gather",
                                       "--bytes", str(size), "--nccl-version", "2.28.9",
                                       "--set", "nodes[*].nics[*].bandwidth=40Gbps", "--json", cwd=self.here))
            rows.append(f"all_gather,{size},{told['time_ns'] / 1000},2,16,2.28.9")
        (self.here / "table.csv").write_text("\n".join(rows) + "\n")
        error = {}
        for evidence in (["table.csv"], ["table.csv", self.record("40Gbps", 6)]):
            told, overlay = self.calibrated(*evidence)
            error[len(evidence)] = told["median_error_fitted"]
        # With the port of the data sheet nothing explains them; with the one that NCCL found the priors do.
        self.assertGreater(error[1], .5)
        self.assertLess(error[2], .02)


if __name__ == "__main__":
    unittest.main()
