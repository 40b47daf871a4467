#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every example of every --help, and the commands of README.md and docs/, as printed.

Usage: examples_test.py PROGRAM ROOT [VERB...]

Each verb and each document gets a fresh folder that looks like the project's root, with PROGRAM standing
in for ./rehearse, and its commands run there in order. In documents, commands are the lines that begin
with "$ " in blocks marked ```console; one that is expected to fail ends with "# exit N". Lines below a
command are what it prints; a line "..." stands for any number of lines that are left out.
"""
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LIMIT_S = 300


def stage(folder, program, root):
    for entry in root.iterdir():
        if entry.name not in ("rehearse", "build", ".git"):
            (folder / entry.name).symlink_to(entry)
    (folder / "rehearse").symlink_to(program)


def differs(printed, shown):
    """The first line that is shown and not printed, or None."""
    lines, at = printed.splitlines(), 0
    for i, line in enumerate(shown):
        if line == "...":
            continue
        if i > 0 and shown[i - 1] == "...":
            while at < len(lines) and lines[at].rstrip() != line:
                at += 1
        if at >= len(lines) or lines[at].rstrip() != line:
            return line
        at += 1
    if shown and shown[-1] != "..." and at < len(lines):
        return f"(nothing after line {at}: {lines[at]})"
    return None


def run(command, status, shown, folder, source):
    began = time.monotonic()
    try:
        done = subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        print(f"FAILED {source}: {command}: not done after {LIMIT_S} s")
        return False
    missing = differs(done.stdout.decode(errors="replace"), shown) if shown else None
    good = done.returncode == status and missing is None
    print(f"{'ok    ' if good else 'FAILED'} {source}: {command} ({time.monotonic() - began:.1f} s)")
    if missing is not None:
        print(f"  does not print: {missing}")
    if not good:
        print(f"  exit code {done.returncode}, expected {status}")
        print("  " + done.stderr.decode(errors="replace")[-2000:].replace("\n", "\n  "))
    return good


def examples_of_help(program):
    lines = subprocess.run([program, "help", "--examples"], check=True, capture_output=True, text=True)
    by_verb = {}
    for line in lines.stdout.splitlines():
        verb, status, command = line.split("\t")
        by_verb.setdefault(verb, []).append((command, int(status), []))
    return by_verb


def examples_of_document(path):
    found = []
    for block in re.findall(r"^```console\n(.*?)^```", path.read_text(), re.M | re.S):
        for line in block.splitlines():
            if line.startswith("$ "):
                status = re.search(r"# exit (\d+)$", line)
                found.append((line[2:], int(status.group(1)) if status else 0, []))
            elif found:
                found[-1][2].append(line.rstrip())
    return found


def main():
    program, root = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    only = sys.argv[3:]
    os.environ["REHEARSE_HOME"] = str(root)
    verbs = examples_of_help(program)
    listed = {line.split()[0] for line in subprocess.run(
        [program, "help"], check=True, capture_output=True, text=True).stdout.splitlines()
        if line.startswith("  ")}
    bad = 0
    for verb in sorted(listed - set(verbs)):
        print(f"FAILED {verb}: has no example")
        bad += 1
    sources = dict(verbs)
    for document in [root / "README.md", *sorted(root.glob("docs/**/*.md"))]:
        if document.exists():
            sources[str(document.relative_to(root))] = examples_of_document(document)
    for source, examples in sources.items():
        if only and source not in only:
            continue
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            stage(folder, program, root)
            os.environ["REHEARSE_STATE"] = str(folder / ".state")
            for command, status, shown in examples:
                if not re.search(r"\./rehearse\b|^(cat|diff|grep|head|ls|sed) ", command):
                    print(f"skip   {source}: {command} (not a rehearse command)")
                else:
                    bad += not run(command, status, shown, folder, source)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
