#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Same input, same bytes: outputs of three runs are compared, in other folders, locales and numbers of jobs, and with
those of another build (release against debug) where REHEARSE_OTHER_BUILD names one.

Usage: determinism_test.py PROGRAM [unittest arguments]
By hand: REHEARSE_OTHER_BUILD=build/release/cli/rehearse tests/cli/determinism_test.py build/dev/cli/rehearse
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM = str(Path(sys.argv.pop(1)).resolve()) if len(sys.argv) > 1 else "rehearse"
OTHER = os.environ.get("REHEARSE_OTHER_BUILD")
DATA = Path(os.environ.get("REHEARSE_DATA", Path(__file__).resolve().parents[2] / "../shared/data"))

RUNS = [
    ["run", "ddp-16"],
    ["run", "gpt-32"],
    ["run", "moe-16"],
    ["run", "ddp-16", "--fidelity", "step"],
    ["run", "gpt-32", "--patch", "skip-collective: {rank: 11, nth: 5}"],
    ["run", "gpt-32", "--patch", "steps: 3", "--patch", "slow-rank: {rank: 6, slowdown: 1.5}"],
    ["run", "ddp-16", "--patch", "grow-data-parallel: 4"],
    ["run", "ddp-16", "--patch",
     '{set: {"platform.nodes[1].nics[*].bandwidth": 20Gbps}, from: 20ms, until: 60ms}'],
    ["run", "ddp-16", "--patch", "stop-rank: {rank: 5, at: 30ms}"],
]


def output(program, words, **options):
    environment = {**os.environ, **options.pop("env", {})}
    done = subprocess.run([program, *words], capture_output=True, env=environment, timeout=600, **options)
    return done.returncode, done.stdout


def programs():
    return [PROGRAM] + ([str(Path(OTHER).resolve())] if OTHER else [])


class Determinism(unittest.TestCase):
    def same(self, words, variants):
        """Every variant of a command gives the bytes of the first."""
        code, first = output(PROGRAM, words)
        self.assertEqual(code, 0, words)
        self.assertTrue(first, words)
        for program, options in variants:
            self.assertEqual(output(program, words, **options), (0, first), (words, program, options))

    def test_runs_give_the_same_bytes_three_times_anywhere(self):
        with tempfile.TemporaryDirectory() as folder:
            for words in RUNS:
                self.same([*words, "--json"],
                          [(PROGRAM, {}), (PROGRAM, {"cwd": folder, "env": {"LC_ALL": "de_DE.UTF-8", "TZ": "Asia/Tokyo"}})]
                          + [(program, {}) for program in programs()[1:]])

    def test_files_are_the_same_three_times(self):
        def written(program, words):
            with tempfile.TemporaryDirectory() as folder:
                names = [word.format(folder=folder) for word in words]
                code, _ = output(program, names)
                self.assertEqual(code, 0, words)
                return {p.name: p.read_bytes() for p in sorted(Path(folder).iterdir())}
        for words in (["run", "ddp-16", "--json", "-o", "{folder}/out.json", "--timeline", "{folder}/timeline.json"],
                      ["synth", "gpt", "--tp", "2", "--dp", "2", "-o", "{folder}/t.rtrace"]):
            first = written(PROGRAM, words)
            self.assertTrue(first)
            for program in programs() * 2:
                self.assertEqual(written(program, words), first, (words, program))

    def test_imports_are_the_same_with_any_number_of_jobs(self):
        folders = sorted(p for p in (DATA / "kineto").glob("*rank*") if p.is_dir())
        if not folders:
            self.skipTest("no recorded traces below " + str(DATA))
        options = json.loads(output(PROGRAM, ["help", "--json"])[1])
        verb = next(v for v in options["verbs"] if v["name"] == "import")
        parallel = "--jobs" in json.dumps(verb) or b"--jobs" in output(PROGRAM, ["import", "--help"])[1]
        for recorded in folders[:3]:
            contents = set()
            with tempfile.TemporaryDirectory() as folder:
                for i, program in enumerate(programs() * 3):
                    jobs = ["--jobs", str(1 + i % 2)] if parallel else []
                    target = f"{folder}/{i}.rtrace"
                    self.assertEqual(output(program, ["import", str(recorded), *jobs, "-o", target])[0], 0, recorded)
                    contents.add(Path(target).read_bytes())
            self.assertEqual(len(contents), 1, recorded)


if __name__ == "__main__":
    unittest.main()
