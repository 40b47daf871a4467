# SPDX-License-Identifier: Apache-2.0
"""The sweep as a whole: shards, interrupted runs and failed points give the bytes of an undisturbed run."""
import contextlib, json, os, pathlib, pty, re, signal, subprocess, sys, tempfile, time, unittest

PROGRAM = sys.argv.pop(1)

STUDY = """
base: ddp-16
axes:
  - {set: "platform.nodes[*].nics[*].bandwidth", values: [50Gbps, 200Gbps]}
  - {set: "launch.ranks[*].env.NCCL_ALGO", values: [Ring, Tree]}
  - seed: [1, 2]
"""


class Sweep(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.at = pathlib.Path(self.folder.name)
        self.study = self.at / "s.yaml"
        self.study.write_text(STUDY)
        self.addCleanup(self.folder.cleanup)

    def sweep(self, *words, code=0):
        done = subprocess.run([PROGRAM, "sweep", str(self.study), *words], capture_output=True, text=True,
                              timeout=300)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def results(self, name):
        return [(self.at / name / f).read_bytes() for f in ("results.csv", "results.jsonl")]

    def test_any_sharding_gives_the_same_bytes(self):
        self.sweep("-o", str(self.at / "whole"), "--jobs", "2")
        whole = self.results("whole")
        self.assertEqual(whole[0].count(b"\n"), 9)
        for n in (2, 7):
            out = self.at / f"shards{n}"
            for i in reversed(range(n)):
                self.sweep("--shard", f"{i}/{n}", "-o", str(out), "--jobs", "1")
            self.assertFalse((out / "results.csv").exists())
            self.sweep("--merge", "-o", str(out))
            self.assertEqual(self.results(out.name), whole)

    def test_a_missing_shard_is_named(self):
        self.sweep("--shard", "0/2", "-o", str(self.at / "half"))
        done = self.sweep("--merge", "-o", str(self.at / "half"), code=66)
        self.assertIn("4 of 8 points have no result", done.stderr)

    def test_killed_in_the_middle_it_goes_on(self):
        self.sweep("-o", str(self.at / "whole"))
        out = self.at / "killed"
        for delay in (0.05, 0.1, 0.2):
            run = subprocess.Popen([PROGRAM, "sweep", str(self.study), "-o", str(out), "--jobs", "1"],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(delay)
            run.send_signal(signal.SIGKILL)
            run.wait()
        self.sweep("-o", str(out))
        self.assertEqual(self.results("killed"), self.results("whole"))

    def test_children_killed_in_the_middle_lose_nothing(self):
        self.sweep("-o", str(self.at / "whole"))
        run = subprocess.Popen([PROGRAM, "sweep", str(self.study), "-o", str(self.at / "orphaned"), "--jobs", "2"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        children, killed = pathlib.Path(f"/proc/{run.pid}/task/{run.pid}/children"), set()
        while run.poll() is None and len(killed) < 3:
            try:
                new = set(children.read_text().split()) - killed
            except OSError:  # it has ended
                break
            for child in new:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(child), signal.SIGKILL)
                    killed.add(child)
            time.sleep(0.02)
        self.assertEqual(run.wait(timeout=300), 0)
        self.assertTrue(killed)
        # A point that was hit twice is lost, and computed when asked again.
        self.sweep("-o", str(self.at / "orphaned"))
        self.assertEqual(self.results("orphaned"), self.results("whole"))

    def test_launchers_tell_the_shard(self):
        self.sweep("-o", str(self.at / "whole"))
        recipe = (pathlib.Path(__file__).parents[2] / "docs/studies.md").read_text().split("kind: Job\n")[1].split("```")[0]
        completions = int(re.search(r"completions: (\d+)", recipe)[1])
        self.assertIn(f'{{name: JOB_COMPLETIONS, value: "{completions}"}}', recipe)
        command = re.search(r"command: \[(.*)\]", recipe)[1].split(", ")
        self.assertEqual(command[:2], ["rehearse", "sweep"])
        for index, count, n in (("SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", 2), ("PMI_RANK", "PMI_SIZE", 2),
                                ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", 2),
                                ("JOB_COMPLETION_INDEX", "JOB_COMPLETIONS", completions)):
            out = self.at / index
            words = [{"/shared/study.yaml": str(self.study), "/shared/out": str(out)}.get(word, word) for word in command[1:]]
            for i in range(n):
                subprocess.run([PROGRAM, *words], env={**os.environ, index: str(i), count: str(n)}, check=True,
                               capture_output=True, timeout=300)
            self.assertFalse((out / "results.csv").exists())
            self.sweep("--merge", "-o", str(out))
            self.assertEqual(self.results(index), self.results("whole"))

    def test_a_point_that_is_there_is_not_computed_again(self):
        out = self.at / "twice"
        self.sweep("-o", str(out))
        before = {p.name: p.stat().st_mtime_ns for p in (out / "points").iterdir()}
        self.sweep("-o", str(out))
        self.assertEqual(before, {p.name: p.stat().st_mtime_ns for p in (out / "points").iterdir()})
        self.study.write_text(STUDY.replace("[1, 2]", "[1, 2, 3]"))
        self.sweep("-o", str(out))
        self.assertEqual(len(list((out / "points").iterdir())), len(before) + 4)

    def test_a_damaged_row_is_computed_again(self):
        out = self.at / "damaged"
        self.sweep("-o", str(out))
        good = self.results("damaged")
        next((out / "points").iterdir()).write_text("{")
        self.sweep("-o", str(out))
        self.assertEqual(self.results("damaged"), good)

    def test_points_that_fail_are_rows(self):
        self.study.write_text("base: ddp-16\naxes:\n  - {set: 'platform.nodes[*].nics[*].bandwidth', "
                              "values: [200Gbps, -5Gbps]}\n")
        out = self.at / "failing"
        done = self.sweep("-o", str(out), "--json")
        answer = json.loads(done.stdout)
        self.assertEqual(answer["schema"], "rehearse.sweep/1")
        self.assertEqual((answer["points"], answer["feasible"]), (2, 1))
        self.assertEqual(answer["failed"][0]["count"], 1)
        self.assertIn("bandwidth", answer["failed"][0]["reason"])

    def test_a_point_out_of_time_or_memory_is_lost_and_tried_again(self):
        self.study.write_text("base: gpt-32\naxes:\n  - patches: [{label: long, patches: [{steps: 100}]}]\n")
        out = self.at / "limited"
        done = self.sweep("-o", str(out), "--point-time", "1ms", "--json")
        self.assertEqual(json.loads(done.stdout)["feasible"], 0)
        self.assertIn("took longer than 1.00 ms", json.loads(done.stdout)["failed"][0]["reason"])
        done = self.sweep("-o", str(out), "--json")
        self.assertEqual(json.loads(done.stdout)["feasible"], 1)
        done = self.sweep("-o", str(self.at / "small"), "--point-memory", "1MiB", "--json")
        self.assertEqual(json.loads(done.stdout)["feasible"], 0)

    def test_a_point_says_what_a_run_of_it_says(self):
        wire = "platform.nodes[*].nics[*].bandwidth=50Gbps"
        path, value = wire.split("=")
        self.study.write_text(f'base: ddp-16\naxes:\n  - {{set: "{path}", values: [{value}]}}\n'
                              "  - {faults: [none, F16, F21, F37]}\n")
        self.sweep("-o", str(self.at / "out"))
        rows = [json.loads(line) for line in (self.at / "out" / "results.jsonl").read_text().splitlines()]
        self.assertEqual(len(rows), 4)
        for row in rows:
            fault = dict(row["edits"]).get("fault")
            done = subprocess.run([PROGRAM, "run", "ddp-16", "--set", wire, *(["--fault", fault] if fault else []), "--json"],
                                  capture_output=True, text=True, timeout=300)
            self.assertEqual(done.returncode, 0, done.stderr)
            whole = json.loads(done.stdout)
            mean = lambda part: round(sum(rank.get(part, 0) for rank in whole.get("breakdown", [])) / max(1, len(whole.get("breakdown", []))))
            self.assertEqual([row["verdict"], row["symptom"]], [whole["verdict"].lower(), whole["symptom"]["id"]], fault)
            self.assertEqual(row["step_time_ns"], whole["step_time_ns"].get("mean", 0), fault)
            self.assertEqual(row["memory_peak_bytes"], max(rank["peak"] for rank in whole["memory"]["ranks"]), fault)
            self.assertAlmostEqual(row["compute_ns"], mean("compute"), delta=1, msg=fault)

    def test_tasks_of_a_job_array_get_all_options_and_compute_what_was_lost(self):
        # Two programs stand in for Slurm's: the tasks run here, one after the other, while the queue names one.
        tools = self.at / "tools"
        tools.mkdir()
        for name, text in (("sbatch", """#!/bin/bash
                last=$(sed -n 's/^#SBATCH --array=0-\\([0-9]*\\)$/\\1/p' "${@: -1}")
                (for SLURM_ARRAY_TASK_ID in $(seq 0 "$last"); do
                   export SLURM_ARRAY_TASK_ID; bash "${@: -1}" >> "$QUEUE.log" 2>&1
                 done; rm "$QUEUE") >/dev/null 2>&1 &
                echo 7 | tee "$QUEUE" """),
                           ("squeue", """#!/bin/bash
                [ ! -e "$QUEUE" ] || cat "$QUEUE" """)):
            (tools / name).write_text(text.replace("\n                ", "\n"))
            (tools / name).chmod(0o755)
        own = self.at / "my faults"
        own.mkdir()
        shipped = pathlib.Path(__file__).parents[2] / "faults/catalogue/F16.yaml"
        (own / "X01.yaml").write_text(shipped.read_text().replace("id: F16", "id: X01"))
        self.study.write_text("base: ddp-16\naxes:\n  - faults: [none, X01]\n  - patches: [{label: long, patches: [{steps: 30}]}]\n")
        out = self.at / "50 % of it"
        words = ["--catalogue", str(own), "-o", str(out)]
        self.sweep(*words, "--point-time", "1ms")  # every point is lost
        environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "QUEUE": str(self.at / "queue")}

        def submitted(*more):
            done = subprocess.run([PROGRAM, "sweep", str(self.study), "--submit", "slurm", "--points-per-task", "1", "--json",
                                   *words, *more], env=environment, capture_output=True, text=True, timeout=300)
            self.assertEqual(done.returncode, 0, done.stderr)
            return json.loads(done.stdout)
        self.assertEqual(submitted("--point-time", "1ms")["feasible"], 0)
        self.assertEqual(submitted()["feasible"], 2, (self.at / "queue.log").read_text())

    def test_progress_says_how_many_points_a_second(self):
        self.study.write_text("base: gpt-32\naxes:\n  - seed: [" + ", ".join(map(str, range(1, 21))) + "]\n")
        master, slave = pty.openpty()
        run = subprocess.Popen([PROGRAM, "sweep", str(self.study), "-o", str(self.at / "seen")], stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=slave, env={**os.environ, "TERM": "xterm"})
        os.close(slave)
        text = b""
        with contextlib.suppress(OSError):  # the program has gone
            while part := os.read(master, 65536):
                text += part
        os.close(master)
        self.assertEqual(run.wait(timeout=300), 0)
        self.assertRegex(text.decode(), r"points \d+ of 20, \d+ points/s")
        self.assertRegex(text.decode(), r"20 points computed in [\d.]+ s, \d+ points/s")

    def test_search_stays_within_its_budget(self):
        done = self.sweep("-o", str(self.at / "searched"), "--search", "--budget", "5", "--json")
        self.assertEqual(json.loads(done.stdout)["computed"], 5)
        self.assertEqual(len((self.at / "searched" / "results.csv").read_text().splitlines()), 1 + 5)
        self.assertEqual(len((self.at / "searched" / "results.jsonl").read_text().splitlines()), 5)

    def test_a_folder_of_the_same_name_does_not_hide_what_is_shipped(self):
        for name in ("bucket-size", "ddp-16"):
            (self.at / name).mkdir()
        for _ in range(2):
            subprocess.run([PROGRAM, "sweep", "bucket-size", "-o", "bucket-size", "--search", "--budget", "1"],
                           cwd=self.at, check=True, capture_output=True, timeout=300)

    def test_wrong_shards_are_refused(self):
        for shard in ("3/3", "x", "1/0", "-1/2"):
            self.sweep("--shard", shard, "-o", str(self.at / "no"), code=2)

    def test_a_search_has_no_shards(self):
        for also in (["--shard", "0/2"], ["--merge"], ["--submit", "slurm"]):
            done = self.sweep("--search", *also, "-o", str(self.at / "no"), code=2)
            self.assertIn("exclude each other", done.stderr)
            self.assertFalse((self.at / "no").exists())


if __name__ == "__main__":
    unittest.main()
