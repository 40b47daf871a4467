#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Optimised and debug builds give the same bytes. Compares PROGRAM with the binaries of other presets below ROOT/build that
are there and not older than the sources; says which it left out, and builds nothing.

Usage: builds_test.py PROGRAM ROOT [unittest arguments]
"""
import sys
import unittest
from pathlib import Path

PROGRAM = str(Path(sys.argv.pop(1)).resolve())
ROOT = Path(sys.argv.pop(1)).resolve()
sys.path.insert(0, str(Path(__file__).resolve().parent))
from determinism_test import RUNS, output  # noqa: E402

ROOMS = ("base", "platforms", "traces", "sim", "faults", "validation", "cli")
FURTHER = [
    ["run", "fsdp-32"],
    ["run", "dlrm-8"],
    ["run", "horovod-16"],
    ["run", "ddp-16", "--patch", "background-traffic: {from-node: 0, to-node: 1, nic: 2, rate: 190Gbps}"],
    ["run", "ddp-16", "--set", "platform.nodes[*].nics[*].bandwidth=10Gbps"],
    ["run", "gpt-32", "--patch", "grow-data-parallel: 8"],
    ["faults"],
    ["platforms"],
]


def newest_source():
    return max(path.stat().st_mtime for room in ROOMS for ending in ("cpp", "hpp", "proto")
               for path in (ROOT / room).rglob("*." + ending))


def other_builds():
    """(binaries to compare with, why others are left out)"""
    found, left_out = [], []
    newest = newest_source()
    for preset in ("release", "dev"):
        binary = ROOT / "build" / preset / "cli" / "rehearse"
        if str(binary) == PROGRAM:
            continue
        if not binary.exists():
            left_out.append(f"build/{preset} is not there")
        elif binary.stat().st_mtime < newest:
            left_out.append(f"build/{preset} is older than the sources")
        else:
            found.append(str(binary))
    return found, left_out


class Builds(unittest.TestCase):
    def test_every_build_gives_the_same_bytes(self):
        others, _ = other_builds()
        for words in RUNS + FURTHER:
            code, first = output(PROGRAM, [*words, "--json"])
            self.assertEqual(code, 0, words)
            for other in others:
                with self.subTest(words=words, other=other):
                    self.assertTrue(output(other, [*words, "--json"]) == (0, first),
                                    "the outputs differ: cmp them")


if __name__ == "__main__":
    there, missing = other_builds()
    for why in missing:
        print("skipped:", why)
    if not there:
        print("no other build to compare with; ./dev build release makes one")
        sys.exit(77)  # what ctest takes for skipped
    unittest.main()
