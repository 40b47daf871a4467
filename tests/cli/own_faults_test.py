#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Faults of the machine that rehearse runs on: every write that can fail fails once, in every verb that writes, and
the process is killed at each of them; memory ends; reads are interrupted and short; the clock jumps. Outputs are whole
or absent, exit codes are the documented ones.

Usage: own_faults_test.py PROGRAM SHIM PROJECT [unittest arguments]
"""
import errno
import os
import resource
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM, SHIM, PROJECT = (str(Path(sys.argv.pop(1)).resolve()) for _ in range(3))
CORPUS = Path(PROJECT) / "tests/corpus"
DOCUMENTED = {0, 1, 2, 65, 66, 74, 75, 130}

STUDY = """
base: two.rtrace
axes: [{set: "launch.ranks[*].env.NCCL_ALGO", values: [Ring, Tree]}]
"""


def rehearse(*words, env=None, **options):
    return subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=120,
                          env={**os.environ, **(env or {})}, **options)


def contents(folder):
    """Every file below a folder: {relative path: bytes}."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(Path(folder).rglob("*")) if p.is_file()}


def is_temporary(name):
    return Path(name).name.startswith(".") and ".tmp-" in name


class Machine(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.at = Path(cls.folder.name)
        cls.trace = cls.at / "two.rtrace"
        made = rehearse("synth", "resnet50", "--dp", 2, "--steps", 1, "-o", cls.trace)
        assert made.returncode == 0, made.stderr
        (cls.at / "study.yaml").write_text(STUDY)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()


class EveryWrite(Machine):
    """Each test is a verb that writes."""

    def everywhere(self, *words, most=10_000, error=errno.ENOSPC):
        """Runs the command in a folder of its own, then again with each of its writes failing, then with the
        process killed there. {out} in `words` is the folder."""
        def run(**env):
            folder = tempfile.TemporaryDirectory(dir=self.at)
            self.addCleanup(folder.cleanup)
            done = rehearse(*[str(w).replace("{out}", folder.name) for w in words],
                            env={"LD_PRELOAD": SHIM, "ASAN_OPTIONS": "verify_asan_link_order=0", **env},
                            cwd=self.at)
            done.stdout = done.stdout.replace(folder.name, "{out}")
            return done, folder.name

        count = self.at / "count"
        count.unlink(missing_ok=True)
        whole, folder = run(FAIL_COUNT=str(count))
        self.assertIn(whole.returncode, (0, 1), whole.stderr)
        wanted = contents(folder)
        writes = int(count.read_text().split()[-1])
        self.assertGreater(writes, 0)
        self.assertLess(writes, most)
        for n in range(1, writes + 1):
            done, folder = run(FAIL_AT=str(n), FAIL_HOW=str(error))
            where = f"write {n} of {writes}: {done.stderr}"
            self.assertIn(done.returncode, (whole.returncode, 74), where)
            left = contents(folder)
            for name, text in left.items():
                self.assertIn(name, wanted, where)
                self.assertEqual(text, wanted[name], f"{name} is not whole; {where}")
            if done.returncode == 74:
                self.assertIn("rehearse: ", done.stderr, where)
                self.assertIn(os.strerror(error), done.stderr, where)
                self.assertIn("fix: ", done.stderr, where)
            else:
                self.assertEqual(left, wanted, where)
                self.assertEqual(done.stdout, whole.stdout, where)
            done, folder = run(FAIL_AT=str(n), FAIL_HOW="kill")
            self.assertEqual(done.returncode, -9, where)
            for name, text in contents(folder).items():
                if not is_temporary(name):
                    self.assertEqual(text, wanted[name], f"killed at {n}: {name} is not whole")

    def test_synth(self):
        self.everywhere("synth", "resnet50", "--dp", 2, "--steps", 1, "-o", "{out}/a.rtrace")

    def test_synth_as_kineto(self):
        self.everywhere("synth", "resnet50", "--dp", 2, "--steps", 1, "--kineto", "{out}/k")

    def test_import(self):
        self.everywhere("import", CORPUS / "kineto/small.json", "-o", "{out}/a.rtrace", "--json")

    def test_import_to_a_disk_that_is_read_only_or_bad(self):
        for error in (errno.EROFS, errno.EIO, errno.EDQUOT):
            self.everywhere("import", CORPUS / "kineto/small.json", "-o", "{out}/a.rtrace", error=error)

    def test_export(self):
        self.everywhere("export", self.trace, "--format", "chakra", "-o", "{out}/c")

    def test_inspect(self):
        self.everywhere("inspect", self.trace, "-o", "{out}/inspect.txt")

    def test_run(self):
        self.everywhere("run", self.trace, "--json", "-o", "{out}/o.json", "--timeline", "{out}/t.json",
                        "--nccl-log", "{out}/logs")

    def test_sweep(self):
        self.everywhere("sweep", "study.yaml", "-o", "{out}/s", "--jobs", 1)

    def test_check(self):
        (self.at / "job.yaml").write_text("trace: two.rtrace\nlaunch: {world_size: 24}\n")
        self.everywhere("check", "job.yaml", "--apply", "{out}/fixed.yaml")

    def test_platforms(self):
        self.everywhere("platforms", "show", "dgx-a100", "--svg", "{out}/dgx.svg")
        self.everywhere("platforms", "import", CORPUS / "nccl_topology/two-sockets.xml", "-o", "{out}/p.yaml")

    def test_calibrate(self):
        self.everywhere("calibrate", Path(PROJECT) / "tests/golden/nccl_tests/all_reduce.txt", "--platform", "hgx-h100",
                        "-o", "{out}/c.yaml")

    def test_stdout(self):
        self.everywhere("man")
        self.everywhere("inspect", self.trace, "--json")


class EveryOpen(Machine):
    """Each file that a verb reads is gone, unreadable or behind a bad disk at the moment it is opened."""

    def everywhere(self, *words, most=60):
        below = os.pathsep.join([str(self.at), str(CORPUS), str(Path(PROJECT) / "tests/golden"),
                                 *(str(Path(PROJECT) / room) for room in ("platforms", "faults", "sim"))])

        def run(**env):
            folder = tempfile.TemporaryDirectory(dir=self.at, prefix="out")
            self.addCleanup(folder.cleanup)
            done = rehearse(*[str(w).replace("{out}", folder.name) for w in words], cwd=self.at,
                            env={"LD_PRELOAD": SHIM, "ASAN_OPTIONS": "verify_asan_link_order=0", "OPEN_BELOW": below,
                                 "REHEARSE_STATE": folder.name + "-state", **env})
            return done, folder.name

        count = self.at / "opens"
        count.unlink(missing_ok=True)
        whole, folder = run(OPEN_COUNT=str(count))
        self.assertIn(whole.returncode, (0, 1), whole.stderr)
        wanted = contents(folder)
        opens = int(count.read_text().split()[-1])
        self.assertGreater(opens, 0, "nothing was opened")
        errors = (errno.ENOENT, errno.EACCES, errno.EIO)
        refused = 0
        for turn, n in enumerate(range(1, opens + 1, max(1, opens // most))):
            error = errors[turn % len(errors)]
            done, folder = run(OPEN_AT=str(n), OPEN_HOW=str(error))
            where = f"open {n} of {opens}, {os.strerror(error)}: {done.stdout[-300:]} {done.stderr}"
            self.assertIn(done.returncode, DOCUMENTED, where)
            left = contents(folder)
            for name, text in left.items():
                self.assertEqual(text, wanted.get(name), f"{name} is not whole; {where}")
            if done.returncode == whole.returncode:
                self.assertEqual(left, wanted, where)
                continue
            refused += 1
            self.assertIn(done.returncode, (65, 66, 74), where)
            self.assertTrue(done.stderr.startswith("rehearse: "), where)
            self.assertIn("fix: ", done.stderr, where)
        self.assertGreater(refused, 0, "no file was missed")

    def test_import(self):
        folder = self.at / "job"
        folder.mkdir(exist_ok=True)
        for rank in range(3):
            (folder / f"rank{rank}.json").write_bytes((CORPUS / "kineto/small.json").read_bytes())
        self.everywhere("import", folder, "-o", "{out}/a.rtrace")

    def test_inspect(self):
        self.everywhere("inspect", self.trace, "-o", "{out}/inspect.txt")

    def test_run(self):
        (self.at / "job.yaml").write_text("trace: two.rtrace\nplatform: {like: dgx-a100}\n")
        self.everywhere("run", "job.yaml", "--fault", "F16", "-o", "{out}/o.json", "--json")

    def test_check(self):
        folder = self.at / "cluster"
        folder.mkdir(exist_ok=True)
        (folder / "hosts").write_text("127.0.0.1 localhost\n10.0.0.1 node0\n")
        (folder / "launch.sh").write_text("#!/bin/sh\nexport NCCL_SOCKET_IFNAME=eth9\ntorchrun --nnodes 2 --nproc-per-node 8 t.py\n")
        self.everywhere("check", folder)

    def test_diagnose(self):
        self.everywhere("diagnose", self.trace, "--fault", "F16", most=15)

    def test_sweep(self):
        self.everywhere("sweep", "study.yaml", "-o", "{out}/s", "--jobs", 1, most=30)

    def test_platforms(self):
        self.everywhere("platforms", "import", CORPUS / "nccl_topology/two-sockets.xml", "-o", "{out}/p.yaml")

    def test_calibrate(self):
        self.everywhere("calibrate", Path(PROJECT) / "tests/golden/nccl_tests/all_reduce.txt", "--platform", "hgx-h100",
                        "-o", "{out}/c.yaml")

    def test_learn(self):
        self.everywhere("learn", "start", "L01", "{out}/lab", most=30)


class Memory(Machine):
    """The machine has less and less memory: the work is done, or ends with exit code 75."""

    def with_less_and_less(self, *words):
        def limited(megabytes):
            def limit():
                resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))
            return limit

        # What the program needs to be loaded at all.
        least = next(m for m in range(64, 4096, 32) if rehearse("--version", preexec_fn=limited(m)).returncode == 0)
        codes = []
        for more in (0, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 512, 1024, 2048):
            out = self.at / "limited"
            out.unlink(missing_ok=True)
            done = rehearse(*words, "-o", out, preexec_fn=limited(least + more))
            self.assertIn(done.returncode, (0, 75), f"{least + more} MiB: {done.stderr}")
            self.assertEqual(out.exists(), done.returncode == 0)
            if done.returncode == 75:
                self.assertIn("fix: ", done.stderr)
            codes.append(done.returncode)
        self.assertEqual(codes[-1], 0, "it never had enough")

    def test_synth(self):
        self.with_less_and_less("synth", "resnet50", "--dp", 64)

    def test_import(self):
        made = rehearse("export", self.trace, "--format", "kineto", "--gzip", "-o", self.at / "traces")
        self.assertEqual(made.returncode, 0, made.stderr)
        self.with_less_and_less("import", self.at / "traces")

    def test_inspect(self):
        self.with_less_and_less("inspect", self.trace)

    def test_run(self):
        self.with_less_and_less("run", self.trace)

    def test_a_limit_of_ones_own(self):
        done = rehearse("synth", "gpt", "--dp", 16, "--tp", 8, "-o", self.at / "large.rtrace", "--max-memory", "20MiB")
        self.assertEqual(done.returncode, 75, done.stderr)
        self.assertFalse((self.at / "large.rtrace").exists())
        self.assertEqual(rehearse("man", "--max-memory", "-3").returncode, 2)


class Disturbances(Machine):
    def same_as_undisturbed(self, **env):
        for words in (["inspect", self.trace, "--json"], ["run", self.trace, "--json"],
                      ["import", CORPUS / "kineto/small.json", "--json", "--force", "-o", self.at / "i.rtrace"],
                      ["import", CORPUS / "nsys/small.sqlite", "--json", "--force", "-o", self.at / "i.rtrace"]):
            plain = rehearse(*words)
            kept = (self.at / "i.rtrace").read_bytes() if "-o" in words else b""
            disturbed = rehearse(*words, env={"LD_PRELOAD": SHIM, "ASAN_OPTIONS": "verify_asan_link_order=0", **env})
            self.assertEqual(plain.returncode, 0, plain.stderr)
            self.assertEqual(disturbed.returncode, 0, disturbed.stderr)
            self.assertEqual(disturbed.stdout, plain.stdout)
            if kept:
                self.assertEqual((self.at / "i.rtrace").read_bytes(), kept)

    def test_interrupted_reads(self):
        self.same_as_undisturbed(READS="interrupted")

    def test_short_reads(self):
        self.same_as_undisturbed(READS="short")

    def test_a_clock_that_jumps(self):
        self.same_as_undisturbed(CLOCK="jumps")


if __name__ == "__main__":
    unittest.main()
