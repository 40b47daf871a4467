#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The command that stands beside a prediction prints it: those of pairs are run as they stand.

Usage: commands_test.py PROGRAM PROJECT [unittest arguments]
"""
import json
import shlex
import subprocess
import sys
import unittest
from pathlib import Path

PROGRAM, PROJECT = (str(Path(sys.argv.pop(1)).resolve()) for _ in range(2))
LISTS = ["tests/golden/pairs/pairs.json", "validation/figures/held_out/fault_fix_pairs.json",
         "validation/figures/held_out_second/fault_fix_pairs.json"]


def rehearse(words):
    return subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=120, cwd=PROJECT)


def time_of(command):
    words = shlex.split(command)
    assert words[0] == "rehearse", command
    done = rehearse(words[1:] + ["--json"])
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return json.loads(done.stdout)["time_ns"]


class Commands(unittest.TestCase):
    def test_commands_of_pairs_print_what_is_predicted(self):
        for path in LISTS:
            done = rehearse(["validate", "pairs", path, "--rows", "--json"])
            rows = json.loads(done.stdout)["checks"][0]["rows"]
            self.assertTrue(rows)
            # Every third: each is two searches of NCCL's graphs.
            for row in rows[::3]:
                with self.subTest(row["what"]):
                    before, after = row["command"].split(" && ")
                    self.assertAlmostEqual(time_of(before) / time_of(after) / row["predicted"], 1, places=4)


if __name__ == "__main__":
    unittest.main()
