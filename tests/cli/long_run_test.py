#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A run that takes long: its progress bar, and what Ctrl-C leaves behind.

Usage: long_run_test.py PROGRAM [unittest arguments]
"""
import os
import pty
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

PROGRAM = str(Path(sys.argv.pop(1)).resolve()) if len(sys.argv) > 1 else "rehearse"
LONG = ["run", "gpt-32", "--patch", "steps: 60"]


def start_on_terminal(*words, **options):
    """Runs with stderr on a pseudo-terminal of 120 columns; returns the process and the terminal's other end."""
    master, slave = pty.openpty()
    process = subprocess.Popen(["sh", "-c", 'stty cols 120 <&2; exec "$@"', "sh", PROGRAM, *words],
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=slave,
                               env={**os.environ, "TERM": "xterm"}, **options)
    os.close(slave)
    return process, master


def read_until(master, pattern, seconds):
    """What stands on the terminal until `pattern` is seen, the end comes or the time is over."""
    text, end = "", time.monotonic() + seconds
    while time.monotonic() < end and not re.search(pattern, text):
        try:
            part = os.read(master, 65536)
        except OSError:  # the program has gone
            break
        if not part:
            break
        text += part.decode(errors="replace")
    return text


class LongRun(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        # The scenario's trace is made on first use; that is not what is interrupted here.
        subprocess.run([PROGRAM, "run", "gpt-32", "--json"], stdout=subprocess.DEVNULL, check=True, timeout=300)

    def end(self, process, master):
        process.kill()
        process.wait()
        os.close(master)

    def test_the_bar_shows_simulated_time_and_what_is_left(self):
        process, master = start_on_terminal(*LONG)
        try:
            text = read_until(master, r"s left", 120)
        finally:
            self.end(process, master)
        self.assertRegex(text, r"collectives [\d,]+ of [\d,]+, [\d.]+ \w*s simulated")
        self.assertRegex(text, r"\[#* *\] +\d+ % \d+ s left")

    def test_interruption_in_the_middle_leaves_no_file(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            out, timeline = (os.path.join(self.folder.name, name) for name in ("out.json", "timeline.json"))
            process, master = start_on_terminal(*LONG, "--json", "-o", out, "--timeline", timeline)
            try:
                text = read_until(master, r"simulated", 120)
                self.assertRegex(text, r"simulated", "the run ended before it could be interrupted")
                began = time.monotonic()
                process.send_signal(number)
                read_until(master, r"(?!)", 30)  # to the end
                self.assertEqual(process.wait(timeout=30), 130)
                self.assertLess(time.monotonic() - began, 10)
            finally:
                self.end(process, master)
            self.assertEqual(os.listdir(self.folder.name), [])

    def test_interruption_leaves_the_file_of_an_earlier_run_alone(self):
        out = os.path.join(self.folder.name, "out.json")
        Path(out).write_text("earlier\n")
        process, master = start_on_terminal(*LONG, "--json", "--force", "-o", out)
        try:
            self.assertRegex(read_until(master, r"simulated", 120), r"simulated")
            process.send_signal(signal.SIGINT)
            read_until(master, r"(?!)", 30)
            self.assertEqual(process.wait(timeout=30), 130)
        finally:
            self.end(process, master)
        self.assertEqual(Path(out).read_text(), "earlier\n")
        self.assertEqual(os.listdir(self.folder.name), ["out.json"])


if __name__ == "__main__":
    unittest.main()
