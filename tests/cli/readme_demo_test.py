#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Every line of the demo shown in README.md is printed by the demo of today.

Usage: readme_demo_test.py PROGRAM ROOT
"""
import subprocess
import sys
import tempfile
from pathlib import Path


def shown(readme):
    block = readme.split("<!-- demo: begin -->")[1].split("<!-- demo: end -->")[0]
    return [line for line in block.split("```")[1].splitlines() if line.strip() and line != "..."]


def main():
    program, root = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
    lines = shown((root / "README.md").read_text())
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([program, "demo"], cwd=folder, capture_output=True, text=True, check=True)
    printed = set(done.stdout.splitlines())
    missing = [line for line in lines if line not in printed]
    for line in missing:
        print("README.md shows a line that the demo does not print:\n  " + line)
    print(f"{len(lines)} lines of README.md, {len(missing)} not printed")
    return 1 if missing or len(lines) < 20 else 0


sys.exit(main())
