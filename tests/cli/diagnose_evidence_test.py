#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""`rehearse diagnose` on what ranks leave behind: flight recorder dumps and NCCL logs, simulated and real."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv.pop(1)
HOME = pathlib.Path(os.environ.get("REHEARSE_HOME", "."))
DATA = pathlib.Path(os.environ.get("REHEARSE_DATA", HOME / "../shared/data"))


def rehearse(*words):
    return subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=300)


def culprits(done):
    cause = json.loads(done.stdout)["causes"][0]
    return cause["fault"], sorted({c["rank"] for c in cause["culprits"] if "rank" in c})


class Evidence(unittest.TestCase):
    def test_dumps_of_a_stopped_rank_name_it(self):
        with tempfile.TemporaryDirectory() as folder:
            rehearse("run", "ddp-16", "--fault", "F24:rank=6,at=100ms", "--flight-recorder", folder)
            done = rehearse("diagnose", folder, "--json")
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertEqual(culprits(done)[1], [6])

    def test_dumps_of_a_call_that_one_rank_makes_alone_name_it(self):
        with tempfile.TemporaryDirectory() as folder:
            rehearse("run", "ddp-16", "--fault", "F22:rank=3,nth=2", "--flight-recorder", folder)
            done = rehearse("diagnose", folder, "--json")
            self.assertEqual(culprits(done)[1], [3])

    def test_dumps_under_other_names_are_those_of_their_ranks(self):
        with tempfile.TemporaryDirectory() as folder:
            rehearse("run", "ddp-16", "--fault", "F24:rank=6,at=100ms", "--flight-recorder", folder)
            for file in pathlib.Path(folder).iterdir():
                file.rename(file.with_name(file.stem.replace("nccl_trace_rank_", "collected.") + ".txt"))
            done = rehearse("diagnose", folder, "--json")
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertEqual(culprits(done)[1], [6])

    def test_dumps_without_a_number_are_those_of_the_rank_that_all_their_groups_have(self):
        with tempfile.TemporaryDirectory() as folder:
            rehearse("run", "gpt-32", "--fault", "F24:rank=9,at=500ms", "--flight-recorder", folder)
            for i, file in enumerate(sorted(pathlib.Path(folder).iterdir())):
                file.rename(file.with_name(f"{chr(97 + i // 26)}{chr(97 + i % 26)}.json"))
            done = rehearse("diagnose", folder, "--json")
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertEqual(culprits(done)[1], [9])

    def test_dumps_of_two_jobs_are_not_mixed(self):
        with tempfile.TemporaryDirectory() as folder:
            monday, tuesday = pathlib.Path(folder) / "monday", pathlib.Path(folder) / "tuesday"
            rehearse("run", "ddp-16", "--fault", "F24:rank=6,at=100ms", "--flight-recorder", str(monday))
            rehearse("run", "ddp-16", "--fault", "F24:rank=3,at=50ms", "--flight-recorder", str(tuesday))
            done = rehearse("diagnose", folder)
            self.assertEqual(done.returncode, 65, done.stdout)
            self.assertIn("another dump of rank", done.stderr)
            self.assertIn("name the folder of one job", done.stderr)
            # The same dump twice is one.
            (tuesday / "nccl_trace_rank_0.json").write_text((monday / "nccl_trace_rank_0.json").read_text())
            done = rehearse("diagnose", str(monday), str(tuesday / "nccl_trace_rank_0.json"), "--json")
            self.assertEqual(culprits(done)[1], [6])

    def test_logs_show_the_setting_and_where(self):
        with tempfile.TemporaryDirectory() as folder:
            rehearse("run", "ddp-16", "--fault", "F16:node=1", "--nccl-log", folder)
            done = rehearse("diagnose", folder, "--json")
            document = json.loads(done.stdout)
            self.assertEqual(document["symptom"]["id"], "B3", done.stdout[:2000])
            self.assertEqual(document["causes"][0]["fault"], "F16")

    def test_logs_and_dumps_are_compared_with_simulated_ones(self):
        with tempfile.TemporaryDirectory() as folder:
            rehearse("run", "ddp-16", "--fault", "F21:rank=11,nth=3", "--nccl-log", folder, "--flight-recorder", folder)
            done = rehearse("diagnose", folder, "--scenario", "ddp-16", "--json")
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertEqual(culprits(done), ("F21", [11]))
            self.assertTrue(json.loads(done.stdout)["causes"][0]["simulated"])

    def test_an_outcome_and_the_logs_and_dumps_of_its_job_are_judged_together(self):
        with tempfile.TemporaryDirectory() as folder:
            outcome, logs = pathlib.Path(folder) / "outcome.json", pathlib.Path(folder) / "job"
            rehearse("run", "ddp-16", "--fault", "F16:node=1", "--json", "-o", str(outcome),
                     "--nccl-log", str(logs), "--flight-recorder", str(logs))
            done = rehearse("diagnose", str(outcome), str(logs), "--json")
            document = json.loads(done.stdout)
            cause = document["causes"][0]
            self.assertEqual(cause["fault"], "F16", done.stderr)
            self.assertTrue(any(text.startswith("logs: ") for text in cause["evidence"]), cause)
            self.assertTrue(any(text.startswith("logs: ") for text in document["symptom"]["reasons"]),
                            document["symptom"])

    def test_errors_that_ranks_printed_are_evidence(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "rank3.log").write_text(
                "step 4\nRuntimeError: CUDA error: uncorrectable ECC error encountered\n")
            done = rehearse("diagnose", folder, "--json")
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("uncorrectable ECC", json.loads(done.stdout)["symptom"]["reasons"][0])

    def test_two_faults_at_once_are_named_and_repaired_together(self):
        done = rehearse("fix", "ddp-16", "--fault", "F16", "--fault", "F60", "--draws", "0", "--json")
        best = json.loads(done.stdout)["fixes"][0]
        self.assertEqual(best["fault"], "F16+F60", done.stdout[:1000])
        self.assertTrue(best["restores"])
        self.assertEqual(len(best["alone"]), 2)

    def test_what_logs_and_dumps_show_is_repaired(self):
        with tempfile.TemporaryDirectory() as folder:
            rehearse("run", "ddp-16", "--fault", "F21:rank=11,nth=3", "--nccl-log", folder, "--flight-recorder", folder)
            done = rehearse("fix", folder, "--scenario", "ddp-16", "--draws", "0", "--json")
            best = json.loads(done.stdout)["fixes"][0]
            self.assertEqual(best["fault"], "F21", done.stderr)
            self.assertTrue(best["restores"])
            done = rehearse("fix", folder)
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertIn("--scenario", done.stderr)

    def test_the_kind_of_real_stragglers_is_named(self):
        for job, kind, fault in (("ST", "fixed-stage", "F40"), ("SE", "random", "F42")):
            folder = DATA / "straggler" / job
            if not folder.is_dir():
                self.skipTest(f"no {folder}")
            done = rehearse("diagnose", str(folder), "--json")
            self.assertEqual(done.returncode, 1, done.stderr)
            document = json.loads(done.stdout)
            self.assertEqual(document["straggler"], kind, document["symptom"])
            self.assertEqual(document["causes"][0]["fault"], fault)

    def test_an_outcome_of_an_own_scenario_is_compared_with_that_scenario(self):
        with tempfile.TemporaryDirectory() as folder:
            mine, outcome = pathlib.Path(folder) / "mine.yaml", pathlib.Path(folder) / "outcome.json"
            shipped = (HOME / "sim/scenarios/ddp-16.yaml").read_text()
            mine.write_text(shipped.replace("ddp-16", "mine"))
            made = rehearse("run", str(mine), "--fault", "F16:node=1", "--json", "-o", str(outcome))
            self.assertEqual(made.returncode, 0, made.stderr)
            done = rehearse("diagnose", str(outcome), "--json")
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertEqual(json.loads(done.stdout)["causes"][0]["fault"], "F16")
            done = rehearse("fix", str(outcome), "--json")
            self.assertTrue(json.loads(done.stdout)["fixes"][0]["restores"], done.stderr)

    def test_logs_of_a_healthy_job_without_nccl_are_healthy(self):
        with tempfile.TemporaryDirectory() as folder:
            job, logs = pathlib.Path(folder) / "job.yaml", pathlib.Path(folder) / "logs"
            shipped = (HOME / "sim/scenarios/ddp-16.yaml").read_text()
            job.write_text(shipped.replace("launch:\n", "launch:\n  backend: gloo\n"))
            rehearse("run", str(job), "--nccl-log", str(logs))
            self.assertEqual(len(list(logs.iterdir())), 16)
            done = rehearse("diagnose", str(logs), "--scenario", str(job))
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            for silent in logs.iterdir():
                if silent.name != "nccl-rank-0.log":
                    silent.unlink()
            done = rehearse("diagnose", str(logs), "--scenario", str(job))
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_recordings_count_beside_steps_that_a_script_told_of(self):
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder) / "train.log"
            log.write_text("iter 100: loss 5.4321, time 412.00ms, mfu 31.20%\n")
            done = rehearse("diagnose", folder)
            self.assertEqual(done.returncode, 65, done.stdout)
            self.assertIn("--scenario", done.stderr)
            recording = DATA / "straggler/ST"
            if not recording.is_dir():
                self.skipTest(f"no {recording}")
            for file in recording.iterdir():
                (pathlib.Path(folder) / file.name).write_bytes(file.read_bytes())
            done = rehearse("diagnose", folder, "--json")
            self.assertEqual(json.loads(done.stdout)["straggler"], "fixed-stage", done.stderr)

    def test_recordings_are_no_output_of_a_program_however_they_begin(self):
        with tempfile.TemporaryDirectory() as folder:
            rehearse("synth", "dlrm", "--dp", "4", "--kineto", folder)
            for file in pathlib.Path(folder).glob("*.json"):
                lines = file.read_text().replace('"name"', '"error": "RuntimeError: CUDA error", "name"', 1)
                file.write_text("\n" + lines)
            done = rehearse("diagnose", folder, "--json")
            self.assertNotIn("RuntimeError", done.stdout)
            self.assertNotEqual(json.loads(done.stdout)["symptom"]["id"], "B1", done.stdout)

    def test_a_folder_without_evidence_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "notes.txt").write_text("nothing\n")
            done = rehearse("diagnose", folder)
            self.assertEqual(done.returncode, 65, done.stderr)
            self.assertIn("neither flight recorder dumps, logs with errors nor recordings", done.stderr)

    def test_the_injected_ranks_of_real_jobs_are_named(self):
        for job in ("gpu_error_1st", "lock_gil_1st"):
            folder = DATA / "flight_recorder" / job
            if not folder.is_dir():
                self.skipTest(f"no {folder}")
            truth = json.loads((folder / "ground_truth.json").read_text())["fault_ranks"]
            done = rehearse("diagnose", str(folder), "--json")
            self.assertEqual(culprits(done)[1], truth, job)

    def test_a_replay_that_predicts_no_step_says_so_in_json(self):
        trace = DATA / "kineto/resnet_v100_world1_ns"
        if not trace.is_dir():
            self.skipTest(f"no {trace}")
        done = rehearse("validate", "replay", str(trace), "--json")
        step = json.loads(done.stdout)["checks"][0]
        self.assertEqual((step["id"], step["met"], step["skipped"]), ("replay-step", None, True), done.stderr)
        self.assertIn("wait for a stream", step["why"])


if __name__ == "__main__":
    unittest.main()
