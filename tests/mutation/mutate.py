#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Do the tests notice when the code is wrong? Flips one operator or constant of a source at a time, compiles that
source alone, links it before the library it belongs to, and runs the tests of its room: they are expected to fail.

Usage: mutate.py BUILD {classifier|nccl} [--sample N] [--seed N] [--least SHARE]

BUILD is a folder of preset dev with the test programs built. Prints every mutant that lived and the share that was
killed; exit code 1 below --least (0.8).
"""
import argparse
import json
import os
import random
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Sources, and the test programs (with their arguments) that answer for them.
GROUPS = {
    "classifier": (["faults/symptoms/classifier.cpp", "faults/symptoms/crash_texts.cpp"],
                   [["faults_test", "[symptoms]"], ["faults_test", "[faults]~[symptoms]"]]),
    "nccl": (["sim/nccl/availability.cpp", "sim/nccl/bandwidth.cpp", "sim/nccl/choice.cpp", "sim/nccl/chunk.cpp",
              "sim/nccl/latency.cpp", "sim/nccl/selection.cpp", "sim/nccl/threads.cpp", "sim/nccl/tuning.cpp",
              "sim/nccl/p2p.cpp", "sim/nccl/split.cpp"],
             [["nccl_test"], ["collectives_test"]]),
}
# clang-format puts spaces around operators and none into templates.
FLIPS = [(r" < ", " <= "), (r" <= ", " < "), (r" > ", " >= "), (r" >= ", " > "), (r" == ", " != "), (r" != ", " == "),
         (r" && ", " || "), (r" \|\| ", " && "), (r" \+ ", " - "), (r" - ", " + "), (r" \* ", " / "), (r" / ", " * "),
         (r" \+= ", " -= "), (r" -= ", " += "), (r"\btrue\b", "false"), (r"\bfalse\b", "true"),
         (r"\bstd::max\b", "std::min"), (r"\bstd::min\b", "std::max")]
NUMBER = re.compile(r"(?<![\w.])(\d+)(\.\d+)?(?![\w.'])")


def code_of(line):
    """The line with texts and comments blanked, same length."""
    blank = re.sub(r'"(\\.|[^"\\])*"|\'(\\.|[^\'\\])\'', lambda m: " " * len(m[0]), line)
    return blank.split("//")[0].ljust(len(line))


def mutants(source):
    """(line number, column, old text, new text) of every flip."""
    for number, line in enumerate((ROOT / source).read_text().splitlines()):
        code = code_of(line)
        if code.lstrip().startswith(("#", "template", "using", "static_assert")):
            continue
        for pattern, new in FLIPS:
            for hit in re.finditer(pattern, code):
                yield number, hit.start(), hit[0], new
        for hit in NUMBER.finditer(code):
            new = str(int(hit[1]) + 1) if hit[2] is None else repr(float(hit[0]) * 1.5 + 0.5)
            yield number, hit.start(), hit[0], new


class Bench:
    """Compiles and links as the build does."""

    def __init__(self, build, tests):
        self.build = build
        self.commands = json.loads((build / "compile_commands.json").read_text())
        self.links = {}
        for program, *_ in tests:
            shown = subprocess.run(["ninja", "-t", "commands", program], cwd=build, capture_output=True, text=True)
            line = next(c for c in reversed(shown.stdout.splitlines()) if f"/{program} " in c and ".a " in c)
            self.links[program] = line

    def compile(self, source, text, folder):
        room = source.split("/")[0]
        unity = next(c for c in self.commands if f"/rehearse_{room}.dir/Unity/" in c["file"])
        words = [w for w in shlex.split(unity["command"]) if not w.endswith("ccache")]
        made, out = folder / "mutant.cpp", folder / "mutant.o"
        made.write_text(text)
        words[words.index("-c") + 1] = str(made)
        words[words.index("-o") + 1] = str(out)
        words += ["-w", f"-I{(ROOT / source).parent}"]
        return subprocess.run(words, cwd=self.build, capture_output=True).returncode == 0

    def link(self, program, folder):
        command = re.sub(r"-o \S+", f"-o {folder}/{program} {folder}/mutant.o -Wl,-z,muldefs", self.links[program], count=1)
        command = command.split(" && cd ")[0]
        done = subprocess.run(command, shell=True, cwd=self.build, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"cannot link {program}:\n{done.stderr[-2000:]}")


def killed(bench, folder, tests):
    environment = {**os.environ, "REHEARSE_HOME": str(ROOT)}
    for program, *arguments in tests:
        if not (folder / program).exists():
            bench.link(program, folder)
        try:
            done = subprocess.run([folder / program, "--abort", *arguments], env=environment, timeout=600, cwd=folder,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            return True
        if done.returncode != 0:
            return True
    return False


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=Path)
    parser.add_argument("group", choices=GROUPS)
    parser.add_argument("--sample", type=int, default=int(os.environ.get("REHEARSE_MUTANTS", "60")))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--least", type=float, default=0.8)
    options = parser.parse_args()
    sources, tests = GROUPS[options.group]
    bench = Bench(options.build.resolve(), tests)
    every = [(source, *m) for source in sources for m in mutants(source)]
    random.Random(options.seed).shuffle(every)
    with tempfile.TemporaryDirectory() as folder:
        # The tests must pass with the source as it is, linked the same way.
        text = (ROOT / sources[0]).read_text()
        if not bench.compile(sources[0], text, Path(folder)) or killed(bench, Path(folder), tests):
            sys.exit("the tests do not pass without a mutation")
    tried = dead = 0
    for source, number, column, old, new in every:
        if tried == options.sample:
            break
        lines = (ROOT / source).read_text().splitlines(keepends=True)
        line = lines[number]
        lines[number] = line[:column] + new + line[column + len(old):]
        with tempfile.TemporaryDirectory() as folder:
            if not bench.compile(source, "".join(lines), Path(folder)):
                continue
            tried += 1
            if killed(bench, Path(folder), tests):
                dead += 1
            else:
                print(f"lives: {source}:{number + 1}: '{old.strip()}' -> '{new.strip()}': {line.strip()}", flush=True)
    share = dead / tried if tried else 0
    print(f"{options.group}: {dead} of {tried} mutants killed ({share:.0%}), of {len(every)} possible, seed {options.seed}")
    return 0 if share >= options.least else 1


if __name__ == "__main__":
    sys.exit(main())
