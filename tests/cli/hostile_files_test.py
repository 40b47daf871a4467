#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Inputs that are no honest files: empty, pipes, devices, loops of links, unreadable, gone, bombs, sparse terabytes.
Each is refused with its place and a remedy, the documented exit code, bounded memory and no output.

Usage: hostile_files_test.py PROGRAM PROJECT [unittest arguments]
"""
import gzip
import io
import os
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest
import zipfile
from pathlib import Path

PROGRAM, PROJECT = (str(Path(sys.argv.pop(1)).resolve()) for _ in range(2))
CORPUS = Path(PROJECT) / "tests/corpus"
MEGABYTE = 1 << 20


class Hostile(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.at = Path(self.folder.name)
        self.out = self.at / "out.rtrace"

    def run_limited(self, *words, seconds=300, megabytes=700):
        """Exit code and stderr; fails when it takes longer or more memory."""
        with tempfile.TemporaryFile("w+") as err:
            process = subprocess.Popen([PROGRAM, *map(str, words)], stdout=subprocess.DEVNULL, stderr=err,
                                       stdin=subprocess.DEVNULL)
            end = time.monotonic() + seconds
            while True:
                pid, status, usage = os.wait4(process.pid, os.WNOHANG)
                if pid:
                    break
                if time.monotonic() > end:
                    process.kill()
                    os.wait4(process.pid, 0)
                    self.fail(f"{words}: still running after {seconds} s")
                time.sleep(0.01)
            process.returncode = os.waitstatus_to_exitcode(status)
            err.seek(0)
            text = err.read()
        self.assertLess(usage.ru_maxrss * 1024, megabytes * MEGABYTE, f"{words}: memory")
        return process.returncode, text

    def refused(self, codes, *words, says="", **limits):
        code, text = self.run_limited(*words, **limits)
        self.assertIn(code, codes if isinstance(codes, tuple) else (codes,), f"{words}: {text}")
        self.assertTrue(text.startswith("rehearse: "), text)
        self.assertIn("fix: ", text)
        self.assertIn(says, text)
        self.assertFalse(self.out.exists())
        return text

    def import_refused(self, codes, *inputs, **rest):
        return self.refused(codes, "import", *inputs, "-o", self.out, **rest)


class Small(Hostile):
    def test_empty_files(self):
        empty = self.at / "empty"
        empty.touch()
        self.import_refused(65, empty, says=str(empty))
        for verb in ("inspect", "run", "check"):
            self.refused((65, 66), verb, empty)

    def test_pipes_and_devices_do_not_make_it_wait(self):
        pipe = self.at / "pipe"
        os.mkfifo(pipe)
        for name in (pipe, "/dev/zero", "/dev/null", "/dev/tty"):
            if Path(name).exists():
                self.import_refused((66, 74), name)
        for verb in ("inspect", "run", "check"):
            self.refused((65, 66), verb, pipe, seconds=120)
        (self.at / "job.yaml").write_text(f"trace: {pipe}\n")
        self.refused((65, 66), "run", self.at / "job.yaml", seconds=120)

    def test_links_in_a_circle(self):
        loop = self.at / "loop"
        loop.symlink_to(loop)
        self.import_refused((66, 74), loop, says=str(loop))
        for verb in ("inspect", "run", "check"):
            self.refused((65, 66, 74), verb, loop)

    def test_a_name_that_is_too_long(self):
        self.import_refused((66, 74), self.at / ("x" * 300))
        for verb in ("inspect", "run"):
            self.refused((65, 66, 74), verb, self.at / ("x" * 300) / "y.rtrace")

    def test_a_folder_with_links_to_nothing_and_pipes_gives_what_is_there(self):
        folder = self.at / "job"
        folder.mkdir()
        (folder / "gone").symlink_to(self.at / "nothing")
        (folder / "loop").symlink_to(folder / "loop")
        (folder / "up").symlink_to("..")
        os.mkfifo(folder / "pipe")
        (folder / "rank0.json").write_bytes((CORPUS / "kineto/small.json").read_bytes())
        code, text = self.run_limited("import", folder, "-o", self.out)
        self.assertEqual(code, 0, text)

    def test_an_unreadable_file(self):
        secret = self.at / "secret.json"
        secret.write_text("{}")
        secret.chmod(0)
        self.at.chmod(0o755)
        # root reads everything: as somebody else then.
        done = subprocess.run([PROGRAM, "import", secret, "-o", "/dev/null"], capture_output=True, text=True,
                              user=65534 if os.getuid() == 0 else None)
        self.assertIn(done.returncode, (66, 74), done.stderr)
        self.assertIn(str(secret), done.stderr)
        self.assertIn("fix: ", done.stderr)

    def test_archives_are_not_unpacked(self):
        """Their entries lead out of the folder that they would be unpacked in."""
        inner = self.at / "inner"
        inner.mkdir()
        names = ("../escaped.json", "/tmp/rehearse-escaped.json", "a/../../escaped.json")
        with zipfile.ZipFile(inner / "job.zip", "w") as archive:
            for name in names:
                archive.writestr(name, '{"traceEvents": []}')
        for name, mode in (("job.tar", "w"), ("job.tar.gz", "w:gz"), ("job.tar.xz", "w:xz")):
            with tarfile.open(inner / name, mode) as archive:
                for member in names:
                    entry = tarfile.TarInfo(member)
                    entry.size = 2
                    archive.addfile(entry, io.BytesIO(b"{}"))
        for archive in sorted(inner.iterdir()):
            self.import_refused(65, archive, says=archive.name)
            for verb in ("inspect", "check", "diagnose"):
                self.refused(65, verb, archive)
        self.assertEqual(len(list(inner.iterdir())), 4)
        self.assertFalse((self.at / "escaped.json").exists() or Path(names[1]).exists())

    def test_a_yaml_bomb(self):
        lines = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
        for before, name in zip("abcdefgh", "bcdefghi"):
            lines.append(f"{name}: &{name} [" + ", ".join([f"*{before}"] * 10) + "]")
        bomb = self.at / "bomb.yaml"
        bomb.write_text("\n".join(lines))
        self.refused((65, 75), "run", bomb, seconds=120)
        self.refused((65, 75), "sweep", bomb, "--plan", seconds=120)

    def test_nesting_without_end(self):
        deep = self.at / "deep.yaml"
        for text in ("[" * 100_000, "{a: " * 100_000, "- " * 100_000, "name: " + "[" * 70 + "]" * 70):
            deep.write_text(text)
            self.refused((65, 75), "run", deep)
        for text in ("[" * 1_000_000, '{"traceEvents": [' + '{"a":' * 500_000):
            deep.write_text(text)
            self.import_refused((65, 75), deep)

    def test_a_document_beyond_its_limit(self):
        large = self.at / "large.yaml"
        large.write_text("name: " + "x" * (17 << 20))
        self.refused(75, "run", large)

    def test_limits_are_reached_by_a_flag(self):
        small = CORPUS / "kineto/small.json"
        self.import_refused(75, small, "--limit", "operations=1", says="more than 1 operations")
        self.import_refused(75, small, "--limit", "bytes=100", says="more than 100 bytes")
        both = self.at / "both"
        both.mkdir()
        for rank in (0, 1):
            (both / f"rank{rank}.json").write_bytes(small.read_bytes())
        self.import_refused(75, both, "--limit", "files=1", says="more than 1 files")
        self.import_refused(75, both, "--limit", "ranks=1", says="more than 1 ranks")
        self.import_refused(75, CORPUS / "chakra/small.0.et", "--limit", "held=1")
        self.import_refused(2, small, "--limit", "operatoins=1", says="did you mean operations?")
        self.import_refused(2, small, "--limit", "operations=-1")
        self.import_refused(2, small, "--limit", "ratio=1GiB")


class Large(Hostile):
    def bomb(self, start, member, times):
        """A .json.gz of few megabytes that unpacks to `times` x `member` behind `start`."""
        file = self.at / "bomb.json.gz"
        packed = gzip.compress(member, compresslevel=9)
        with file.open("wb") as out:
            out.write(gzip.compress(start))
            for _ in range(times):
                out.write(packed)
        return file

    def test_ten_gigabytes_of_nothing_in_a_gz(self):
        bomb = self.bomb(b'{"traceEvents": [', b" " * (100 << 20), 100)
        self.assertLess(bomb.stat().st_size, 20 * MEGABYTE)
        self.import_refused(75, bomb, says="decompression bomb")
        self.import_refused(75, bomb, "--limit", "ratio=100000", "--limit", "bytes=1GiB",
                            says="more than 1073741824 bytes")

    def test_ten_gigabytes_of_one_text_in_a_gz(self):
        bomb = self.bomb(b'{"traceEvents": [{"name": "', b"a" * (100 << 20), 100)
        self.import_refused(75, bomb, says="")
        self.import_refused(75, bomb, "--limit", "ratio=100000")

    def test_gigabytes_of_events_in_a_gz(self):
        event = b'{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1,"dur":1,"args":{"stream":7}},\n'
        bomb = self.bomb(b'{"traceEvents": [', event * (1 << 18), 400)
        self.import_refused(75, bomb, "--limit", "ratio=100000", "--limit", "bytes=8GiB", "--max-memory", "500MiB")

    def test_sparse_terabytes_behind_a_good_start(self):
        for seed in sorted(p for p in CORPUS.rglob("*") if p.is_file()):
            if seed.parent.name in ("document", "path", "patch", "expression", "cluster_files", "nccl_graph",
                                    "nccl_topology", "nvidia_smi", "capture_encoder"):
                continue
            file = self.at / "sparse"
            file.write_bytes(seed.read_bytes())
            os.truncate(file, 1 << 40)
            words = ["import", file, "-o", self.out, "--limit", "bytes=512MiB"]
            code, text = self.run_limited(*words)
            self.assertIn(code, (0, 65, 75), f"{seed}: {text}")
            self.out.unlink(missing_ok=True)
            file.unlink()

    def test_a_sparse_terabyte_of_zeros(self):
        file = self.at / "sparse.rtrace"
        file.touch()
        os.truncate(file, 1 << 40)
        self.import_refused((65, 75), file)
        for verb in ("inspect", "run", "check"):
            self.refused((65, 66, 75), verb, file)

    def test_a_folder_of_a_hundred_thousand_files(self):
        folder = self.at / "many"
        folder.mkdir()
        for i in range(100_000):
            (folder / f"{i}.txt").touch()
        (folder / "rank0.json").write_bytes((CORPUS / "kineto/small.json").read_bytes())
        code, text = self.run_limited("import", folder, "-o", self.out)
        self.assertEqual(code, 0, text)
        self.out.unlink()
        self.refused(75, "check", folder, says="more than")


if __name__ == "__main__":
    unittest.main()
