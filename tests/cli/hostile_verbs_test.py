#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Every verb that takes a file, given every kind of file that is none: each ends soon with a documented exit code, and a
refusal is one error with its place and a remedy, and leaves no output.

Usage: hostile_verbs_test.py PROGRAM PROJECT [--most N] [unittest arguments]

--most N gives each verb N of the files, another part of them to each; without it each verb gets all.
"""
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM, PROJECT = (str(Path(sys.argv.pop(1)).resolve()) for _ in range(2))
MOST = int(sys.argv.pop(1)) if sys.argv[1:2] == ["--most"] and sys.argv.pop(1) else None
CORPUS = Path(PROJECT) / "tests/corpus"
TABLE = Path(PROJECT) / "tests/golden/nccl_tests/all_reduce.txt"
DONE, REFUSED = {0, 1}, {65, 66, 74, 75}

# {f}: the file, {good}: a trace, {out}: what is written.
VERBS = [
    "import {f} -o {out}", f"import {CORPUS}/csv/small.csv --columns {{f}} -o {{out}}", "inspect {f}", "run {f}",
    "run {good} --patch-file {f}", "run {good} --fault F16 --catalogue {f}", "check {f}", "check {good} --rules {f}", "diagnose {f}",
    "fix {f}", "report {f} -o {out}", "platforms import {f} -o {out}", "platforms show {f}",
    "calibrate {f} --platform hgx-h100 -o {out}", f"calibrate {TABLE} --platform {{f}} -o {{out}}", "validate nccl-tests {f}",
    "validate nccl-log {f} --platform hgx-h100", "validate replay {f}", "validate pairs {f}", "sweep {f} --plan",
    "sweep {f} -o {out} --shard 0/64", "at 1ms {f}", "compare {f} {good}", "shrink {f}", "export {f} --format chakra -o {out}",
    "export-repro {f}", "learn check {f}", "learn grade {f}", "learn list --labs {f}", "nccl explain --platform {f}"]

# Scenarios and studies whose numbers, names or shapes make no sense.
DOCUMENTS = [
    "trace: good.rtrace\nplatform: {like: dgx-a100, scale: 99999999999}", "trace: good.rtrace\nplatform: {like: dgx-a100, scale: 65537}",
    "trace: good.rtrace\nplatform: {nodes: [{count: 65536, like: dgx-h100}, {count: 65536, like: dgx-h100}]}",
    "trace: good.rtrace\nplatform: {nodes: []}", "trace: good.rtrace\nplatform: {nodes: [{gpus: [{count: 65536}], nics: [{bandwidth: 1e400Gbps}]}]}",
    "trace: good.rtrace\nplatform: {like: self.yaml}", "trace: good.rtrace\nlaunch: {world_size: 4294967295}",
    "trace: good.rtrace\nlaunch: {ranks: [{rank: 4294967295}]}", "trace: good.rtrace\nlaunch: {ranks: [{rank: 0, node: 7, gpu: 99}]}",
    "trace: good.rtrace\nlaunch: {collective_timeout: 1e300s}", "trace: good.rtrace\nlaunch: {collective_timeout: nan}",
    "trace: good.rtrace\nlaunch: {files: [{path: /x, file: /etc/passwd}]}", "trace: good.rtrace\nlaunch: {nodes: [{node: 0, env_file: /etc/shadow}]}",
    "trace: good.rtrace\npatches: [{steps: 4294967295}]", "trace: good.rtrace\npatches: [{grow-data-parallel: 4000000000}]",
    "trace: good.rtrace\npatches: [{set: {a: 1}}]", "trace: good.rtrace\nseed: -1", "trace: good.rtrace\nsealed: AAAA",
    "trace: {synth: {model: gpt, dp: 65536, tp: 65536}}", "trace: {synth: {model: resnet50, dp: 2, steps: 4000000000}}",
    "trace: self.yaml", "trace: .", "trace: /dev/zero", "platform: {like: dgx-a100}", "- 1\n- 2", "&a [*a]",
    "trace: !!python/object/apply:os.system ['touch owned']", "name: \"\\x1b[31m<script>\"\ntrace: good.rtrace\nseed: 18446744073709551615",
    "base: good.rtrace\naxes: []", "base: nowhere", "base: good.rtrace\naxes: [{set: a, values: [1, 2]}]",
    "base: good.rtrace\naxes: [" + ", ".join(f"{{set: launch.env.A{i}, values: [0,1,2,3,4,5,6,7,8,9]}}" for i in range(9)) + "]"]


def damaged(folder, draw):
    """Files of honest kinds with bytes changed or their end missing, and numbers and texts changed."""
    outcome = (folder / "good.json").read_bytes()
    whole = [folder / "good.rtrace", folder / "good.json", *(p for p in sorted(CORPUS.rglob("*")) if p.is_file())]
    for n, path in enumerate(whole):
        content = bytearray(path.read_bytes())
        (folder / f"cut-{n}-{path.name}").write_bytes(content[:draw.randrange(len(content))])
        for _ in range(10):
            content[draw.randrange(len(content))] = draw.randrange(256)
        (folder / f"changed-{n}-{path.name}").write_bytes(content)
    for name, pattern, put in (("huge", rb": (\d+)", b": 99999999999999999999"), ("negative", rb": (\d+)", b": -7"),
                               ("null", rb': "[^"]*"', b": null"), ("nested", rb": (\d+)", b": {}")):
        (folder / f"{name}.json").write_bytes(re.sub(pattern, lambda m: put if draw.random() < 0.3 else m[0], outcome))


def made(folder):
    """Every file that is to be refused, or read as far as it makes sense."""
    draw = random.Random(7)
    keep = {"good.rtrace", "good.json"}
    damaged(folder, draw)
    for n, text in enumerate(DOCUMENTS):
        (folder / f"document{n}.yaml").write_text(text)
    for ending in ("", ".json", ".yaml", ".rtrace", ".xml", ".txt"):
        (folder / f"empty{ending}").touch()
        (folder / f"nul{ending}").write_bytes(bytes(1000))
        (folder / f"random{ending}").write_bytes(draw.randbytes(5000))
        (folder / f"deep{ending}").write_text("[" * 200_000)
        (folder / f"utf16{ending}").write_bytes("trace: ddp-16\n".encode("utf-16"))
        (folder / f"latin{ending}").write_bytes(b"trace: \xe9\xff\nname: \xc0\x80\n\"\" 1\n")
        (folder / f"loop{ending}").symlink_to(f"loop{ending}")
        (folder / f"gone{ending}").symlink_to("nothing")
        (folder / f"zero{ending}").symlink_to("/dev/zero")
        (folder / f"memory{ending}").symlink_to("/proc/self/mem")  # cannot be read at 0: a bad disk
        (folder / f"folder{ending}").mkdir()
        os.mkfifo(folder / f"pipe{ending}")
    (folder / "deep.map").write_text("{a: " * 100_000)
    (folder / "large.yaml").write_text("name: " + "x" * (17 << 20))
    out = sorted(p for p in folder.iterdir() if p.name not in keep)
    return out + [folder / "missing", folder / "missing" / "below", folder / ("x" * 300)]


class EveryVerb(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.at = Path(cls.scratch.name)
        cls.env = {**os.environ, "REHEARSE_STATE": str(cls.at / "state")}
        (cls.at / "files").mkdir()
        good = cls.at / "files/good.rtrace"
        for words in (["synth", "resnet50", "--dp", "2", "--steps", "1", "-o", good], ["run", good, "--json", "-o", good.with_suffix(".json")]):
            subprocess.run([PROGRAM, *map(str, words)], check=True, capture_output=True)
        cls.files = made(cls.at / "files")

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def one(self, verb, file):
        out = self.at / "out"
        words = [w.format(f=file, good=self.at / "files/good.rtrace", out=out) for w in verb.split()]
        process = subprocess.Popen([PROGRAM, *words, "--max-memory", "700MiB"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, cwd=self.at / "files", env=self.env, start_new_session=True)
        try:
            text = process.communicate(timeout=120)[1].decode("utf-8", "replace")
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            self.fail("no end")
        said = text[:500]
        self.assertIn(process.returncode, DONE | REFUSED, said)
        self.assertFalse(re.search(r"[\x00-\x08\x0b-\x1f]", text), f"control characters: {said!r}")
        if process.returncode in REFUSED:
            self.assertEqual(len(re.findall(r"^rehearse: ", text, re.M)), 1, said)
            self.assertRegex(text, r"(?m)^rehearse: .+: .+", said)
            self.assertIn("fix: ", text, said)
            self.assertFalse(out.is_file() or any(p.is_file() for p in out.rglob("*")), f"output beside a refusal: {said}")
        if out.is_dir():
            shutil.rmtree(out)
        out.unlink(missing_ok=True)

    def test_files_that_are_none(self):
        for number, verb in enumerate(VERBS):
            files = self.files if MOST is None else random.Random(number).sample(self.files, MOST)
            for file in files:
                with self.subTest(verb=verb, file=file.name[:40]):
                    self.one(verb, file)
        self.assertFalse((self.at / "files/owned").exists())


if __name__ == "__main__":
    unittest.main()
