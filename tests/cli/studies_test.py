# SPDX-License-Identifier: Apache-2.0
"""What docs/studies.md concludes from the shipped studies, checked on their results."""
import csv, pathlib, subprocess, sys, tempfile, unittest

PROGRAM = sys.argv.pop(1)


class Studies(unittest.TestCase):
    def rows(self, study, *keys):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([PROGRAM, "sweep", study, "-o", folder], capture_output=True, text=True, timeout=600)
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(pathlib.Path(folder) / "results.csv", newline="") as file:
                rows = list(csv.DictReader(file))
        self.assertTrue(all(row["verdict"] == "completed" for row in rows))
        return {tuple(row[key] for key in keys): row for row in rows}

    def steps(self, study, *keys):
        return {key: int(row["step_time_ns"]) for key, row in self.rows(study, *keys).items()}

    def test_bucket_size(self):
        step = self.steps("bucket-size", "bucket", "network")
        few = [step[bucket, "200Gbps"] for bucket in ("1MiB", "4MiB", "25MiB")]
        self.assertLess(max(few), 1.01 * min(few))
        for network in ("25Gbps", "100Gbps", "200Gbps"):
            worst = max(("1MiB", "4MiB", "25MiB", "100MiB"), key=lambda bucket: step[bucket, network])
            self.assertEqual(worst, "100MiB")

    def test_nics_per_node(self):
        step = self.steps("nics-per-node", "nics", "speed")
        self.assertAlmostEqual(step["4", "400Gbps"] / step["8", "200Gbps"], 1, delta=0.02)
        self.assertGreater(step["4", "400Gbps"], 1.15 * step["8", "400Gbps"])
        self.assertGreater(step["1", "400Gbps"], 3 * step["8", "400Gbps"])

    def test_lost_nic(self):
        step = self.steps("lost-nic", "lost", "cross_nic")
        none = step["none", "2"]
        self.assertTrue(1.03 < step["one", "2"] / none < 1.08)
        self.assertTrue(1.07 < step["two", "2"] / none < 1.15)

    def test_straggler(self):
        step = self.steps("straggler", "slowdown")
        none = step["1.0, nowhere",]
        first, last = step["1.5, first stage",] / none, step["1.5, last stage",] / none
        self.assertTrue(1.15 < first < last < 1.35, (first, last))

    def test_oversubscription(self):
        step = self.steps("oversubscription", "fabric", "oversubscription")
        for fabric in ("rail-optimised", "fat-tree"):
            self.assertLess(step[fabric, "2"], 1.01 * step[fabric, "1"])
            self.assertGreater(step[fabric, "8"], 1.4 * step[fabric, "1"])

    def test_checkpoint(self):
        step = self.steps("checkpoint", "checkpoint")
        never = step["never",]
        for interval in ("every step", "every 3rd", "every 6th"):
            self.assertLess(step[f"{interval}, shared",], step[f"{interval}, local",])
        third, sixth = step["every 3rd, shared",] - never, step["every 6th, shared",] - never
        self.assertAlmostEqual(third / sixth, 2, delta=0.1)

    def test_nccl_algorithm(self):
        rows = self.rows("nccl-algorithm", "bucket", "algorithm", "protocol")
        exposed = {key: int(row["exposed_communication_ns"]) for key, row in rows.items()}
        for (bucket, algorithm, protocol), time in exposed.items():
            if algorithm == "Ring":
                self.assertLess(exposed[bucket, "Tree", protocol], time)
        for bucket in ("64KiB", "256KiB", "1MiB"):
            for algorithm in ("Ring", "Tree"):
                self.assertLess(exposed[bucket, algorithm, "LL"], exposed[bucket, algorithm, "Simple"])


if __name__ == "__main__":
    unittest.main()
