# SPDX-License-Identifier: Apache-2.0
"""Time travel, shrinking, scripts and comparisons as a user meets them."""
import json, os, pathlib, py_compile, re, shutil, socket, subprocess, sys, tempfile, unittest

PROGRAM = os.path.abspath(sys.argv.pop(1))
PYTHON = "/usr/bin/python3"
SKIP = ["--patch", "skip-collective: {rank: 3, nth: 5}"]


class Reproduce(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.at = pathlib.Path(self.folder.name)
        self.addCleanup(self.folder.cleanup)

    def run_program(self, *words, code=0):
        done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=300, cwd=self.at)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def json_of(self, *words, code=0):
        return json.loads(self.run_program(*words, "--json", code=code).stdout)

    def test_an_outcome_can_be_travelled_in(self):
        outcome = self.json_of("run", "ddp-16", *SKIP)
        (self.at / "hang.json").write_text(json.dumps(outcome))
        state = self.json_of("at", "last-progress", "hang.json")
        self.assertEqual(state["schema"], "rehearse.at/1")
        self.assertEqual(next(iter(state)), "schema")
        self.assertEqual(state["time_ns"], outcome["last_progress_ns"])
        self.assertEqual(state, self.json_of("at", "last-progress", "ddp-16", *SKIP))
        self.assertTrue(state["calls"])
        refused = self.run_program("at", "1ms", "hang.json", *SKIP, code=2)
        self.assertIn("cannot be changed", refused.stderr)
        outcome.pop("origin")
        (self.at / "old.json").write_text(json.dumps(outcome))
        self.assertIn("does not say", self.run_program("at", "1ms", "old.json", code=65).stderr)

    def test_times_that_make_no_sense_are_refused(self):
        for words, code in ((["at", "soon", "ddp-16"], 2), (["at", "step 9", "ddp-16"], 65),
                            (["at", "1ms", "nothing.json"], 66), (["at", "1ms"], 2),
                            (["at", "90ms", "ddp-16", "--branch", "launch.env.NCCL_ALGO=Ring"], 65),
                            (["at", "90ms", "ddp-16", "--branch", "skip-collective: {rank: 1, nth: 0}"], 65)):
            self.assertTrue(self.run_program(*words, code=code).stderr, words)

    def test_a_branch_differs_from_there_on(self):
        state = self.json_of("at", "60ms", "ddp-16", "--branch", "slow-rank: {rank: 6, slowdown: 2}")
        branch = state["branch"]
        self.assertGreater(branch["outcome"]["end_ns"], branch["without"]["end_ns"])
        fresh = self.json_of("run", "ddp-16", "--patch", "{slow-rank: {rank: 6, slowdown: 2}, from: 60ms}")
        self.assertEqual(branch["outcome"]["end_ns"], fresh["end_ns"])

    def test_a_small_scenario_runs_and_becomes_a_script(self):
        shrunk = self.json_of("shrink", "ddp-16", *SKIP, "--symptom", "D2.1", "-o", "small.yaml")
        self.assertEqual(shrunk["schema"], "rehearse.shrink/1")
        self.assertTrue(shrunk["minimal"])
        self.assertLessEqual(shrunk["after"]["ranks"], 3)
        self.assertLessEqual(shrunk["after"]["most_operations_of_a_rank"], 5)
        again = self.json_of("run", "small.yaml", "--expect", "hang")
        self.assertEqual(again["symptom"]["id"], "D2.1")
        self.assertEqual(len(again["culprits"]), len(shrunk["culprits"]))
        self.run_program("shrink", "ddp-16", "-o", "healthy.yaml", code=65)
        self.run_program("shrink", "ddp-16", *SKIP, "--symptom", "A1", code=65)
        self.run_program("export-repro", "small.yaml", "-o", "repro.py")
        self.run_program("export-repro", "small.yaml", "--mpi", "-o", "mpi.py")
        for name in ("repro.py", "mpi.py"):
            py_compile.compile(str(self.at / name), doraise=True)
        self.hangs_with_mpi("mpi.py", shrunk["after"]["ranks"])
        self.hangs_with_torch("repro.py", shrunk["after"]["ranks"])

    def mpirun(self, script, ranks):
        return subprocess.run(["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(ranks), PYTHON, script,
                               "--timeout", "3"], capture_output=True, text=True, cwd=self.at, timeout=120)

    def has(self, module):
        return subprocess.run([PYTHON, "-c", f"import {module}"], capture_output=True).returncode == 0

    def hangs_with_mpi(self, script, ranks):
        if not shutil.which("mpirun") or not self.has("mpi4py"):
            return print("skipped: no mpirun with mpi4py here")
        done = self.mpirun(script, ranks)
        self.assertNotEqual(done.returncode, 0, done.stdout)
        self.assertNotIn("Traceback", done.stderr)

    def with_torch(self, script, ranks, timeout):
        """One process per rank, as torchrun starts them; their exit codes. None: no torch here."""
        if not self.has("torch.distributed"):
            return print("skipped: no torch.distributed here")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        processes = []
        for rank in range(ranks):
            env = {**os.environ, "RANK": str(rank), "WORLD_SIZE": str(ranks), "LOCAL_RANK": str(rank),
                   "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
            processes.append(subprocess.Popen([PYTHON, script, "--timeout", timeout], cwd=self.at, env=env,
                                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
        codes = []
        for process in processes:
            try:
                process.communicate(timeout=120)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
            codes.append(process.returncode)
        return codes

    def hangs_with_torch(self, script, ranks):
        codes = self.with_torch(script, ranks, "5")
        if codes is not None:
            self.assertTrue(any(codes), codes)
            # It gives up by itself; nobody had to kill it.
            self.assertNotIn(-9, codes)

    def test_the_script_of_a_healthy_job_ends(self):
        self.run_program("synth", "gpt", "--layers", "2", "--hidden", "64", "--dp", "2", "--pp", "2", "-o", "job.rtrace")
        self.run_program("export-repro", "job.rtrace", "--mpi", "-o", "mpi.py")
        self.run_program("export-repro", "job.rtrace", "-o", "gloo.py")
        for name in ("gloo.py", "mpi.py"):
            py_compile.compile(str(self.at / name), doraise=True)
        if not shutil.which("mpirun") or not self.has("mpi4py"):
            return print("skipped: no mpirun with mpi4py here")
        done = self.mpirun("mpi.py", 4)
        self.assertEqual(done.returncode, 0, done.stdout[-2000:] + done.stderr[-2000:])
        self.assertEqual(len(re.findall(r"^rank \d+: done$", done.stdout, re.M)), 4)
        # The same pattern with small buffers: gloo reduces half precision slowly.
        small = re.sub(r", \d{4,}, \"", ', 1000, "', (self.at / "gloo.py").read_text())
        (self.at / "gloo.py").write_text(small)
        self.assertIn(self.with_torch("gloo.py", 4, "100"), (None, [0, 0, 0, 0]))

    def test_the_parts_of_a_comparison_add_up(self):
        self.run_program("run", "ddp-16", "--json", "-o", "a.json")
        self.run_program("run", "ddp-16", "--fault", "F16", "--json", "-o", "b.json")
        for words in (["a.json", "b.json"], ["b.json", "a.json"], ["ddp-16", "b.json"], ["ddp-16"]):
            compared = self.json_of("compare", *words)
            self.assertEqual(compared["schema"], "rehearse.compare/1")
            for kind in ("operations", "ranks", "links"):
                self.assertEqual(sum(row["difference_ns"] for row in compared[kind]), compared["difference_ns"], words)
        self.run_program("compare", "a.json", "b.json", "--fail-above", "5%", code=1)
        self.run_program("compare", "a.json", "b.json", "--fail-above", "50%")
        self.run_program("compare", "b.json", "a.json", "--fail-above", "0%")
        self.run_program("compare", "a.json", "a.json", "--fail-above", "many", code=2)
        self.run_program("run", "ddp-16", *SKIP, "--json", "-o", "hang.json")
        self.run_program("compare", "a.json", "hang.json", "--fail-above", "5%", code=1)


if __name__ == "__main__":
    unittest.main()
