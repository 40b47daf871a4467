#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Verbs that look at a job take its recordings as they are: the same comes out as of the .rtrace made of them.

Usage: recordings_test.py PROGRAM PROJECT [unittest arguments]
"""
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM, PROJECT = (str(Path(sys.argv.pop(1)).resolve()) for _ in range(2))


def rehearse(*words, cwd=PROJECT):
    return subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=300, cwd=cwd)


class Recordings(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = tempfile.TemporaryDirectory()
        cls.folder = Path(cls.place.name) / "profiles"
        cls.trace = Path(cls.place.name) / "job.rtrace"
        assert rehearse("synth", "resnet50", "--dp", "4", "--kineto", str(cls.folder)).returncode == 0
        assert rehearse("import", str(cls.folder), "-o", str(cls.trace)).returncode == 0

    @classmethod
    def tearDownClass(cls):
        cls.place.cleanup()

    def document(self, *words):
        done = rehearse(*words, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_a_folder_of_profiles_is_inspected_as_its_import_is(self):
        kept, plain = self.document("inspect", str(self.trace)), self.document("inspect", str(self.folder))
        self.assertEqual(plain["ranks"], 4)
        self.assertEqual(plain, kept)

    def test_several_files_are_one_job(self):
        files = sorted(str(file) for file in self.folder.iterdir())
        self.assertEqual(self.document("inspect", *files)["collectives"],
                         self.document("inspect", str(self.trace))["collectives"])
        self.assertEqual(self.document("inspect", files[2])["ranks"], 1)

    def test_a_folder_of_profiles_runs_as_its_import_does(self):
        kept, plain = (self.document("run", str(what), "--patch", "slow-rank: {rank: 2, slowdown: 2.0}")
                       for what in (self.trace, self.folder))
        self.assertEqual(plain["verdict"], "completed")
        for part in ("step_time_ns", "baseline_step_time_ns", "culprits", "breakdown"):
            self.assertEqual(plain[part], kept[part], part)

    def test_a_folder_without_a_slash_in_its_name_is_one(self):
        done = rehearse("run", "profiles", "--json", cwd=self.place.name)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_points_of_a_study_of_recordings_are_kept_by_what_they_are_made_from(self):
        study = Path(self.place.name) / "study.yaml"
        study.write_text(f"base: {self.folder}/\naxes:\n"
                         '  - {name: algorithm, set: "launch.ranks[*].env.NCCL_ALGO", values: [Ring, Tree]}\n')
        out = Path(self.place.name) / "out"

        def points():
            done = rehearse("sweep", str(study), "-o", str(out), "--force")
            self.assertEqual(done.returncode, 0, done.stderr)
            return {file.name: file.stat().st_mtime_ns for file in (out / "points").iterdir()}

        first = points()
        self.assertEqual(len(first), 2)
        self.assertEqual(points(), first)
        # Another recording gives other points.
        victim = sorted(self.folder.iterdir())[0]
        text = victim.read_text()
        victim.write_text(text.replace('"conv_fprop', '"conv_fprop_again', 1))
        self.assertEqual(len(points()), 4)
        victim.write_text(text)

    def test_two_recordings_are_compared_as_their_imports_are(self):
        names = json.dumps(self.document("compare", str(self.trace), str(self.trace)))
        self.assertEqual(json.dumps(self.document("compare", str(self.folder), str(self.folder)))
                         .replace("profiles", "job"), names)

    def test_a_profile_that_ends_as_outcomes_do_is_a_recording(self):
        one = Path(self.place.name) / "one"
        self.assertEqual(rehearse("synth", "resnet50", "--dp", "1", "--kineto", str(one)).returncode, 0)
        profile = next(one.iterdir())
        self.assertEqual(profile.suffix, ".json")
        for words in (("compare", str(profile)), ("at", "last-progress", str(profile)),
                      ("report", str(profile), "-o", str(one / "report.html"))):
            done = rehearse(*words)
            self.assertEqual(done.returncode, 0, f"{words}: {done.stderr}")
        text = profile.read_text()
        profile.write_text(text.replace("conv_fprop", "conv_fprop" + "_of_a_template" * 100))
        self.assertLess(max(map(len, rehearse("compare", str(profile)).stdout.splitlines())), 200)

    def test_an_outcome_is_no_recording(self):
        outcome = Path(self.place.name) / "outcome.json"
        self.assertEqual(rehearse("run", str(self.trace), "--json", "-o", str(outcome)).returncode, 0)
        done = rehearse("inspect", str(outcome))
        self.assertEqual(done.returncode, 65)
        self.assertIn("a document of rehearse (rehearse.outcome/1)", done.stderr)
        self.assertEqual(rehearse("at", "last-progress", str(outcome)).returncode, 0)

    def test_logs_alone_are_no_job_to_run_and_the_refusal_says_who_reads_them(self):
        done = rehearse("run", "tests/corpus/nccl_log/h100-2gpu.log")
        self.assertEqual(done.returncode, 65, done.stderr)
        self.assertIn("rehearse diagnose", done.stderr)


if __name__ == "__main__":
    unittest.main()
