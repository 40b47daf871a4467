#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""200 connections with mixed requests for 30 s each, while jobs run: no error, and memory does not grow from the
second round on.

Usage: load_test.py PROGRAM [SECONDS]
"""
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

PROGRAM = str(Path(sys.argv[1]).resolve())
SECONDS = int(sys.argv[2]) if len(sys.argv) > 2 else 30
sys.path.insert(0, str(Path(__file__).parent))
from served import Served  # noqa: E402

ERRORS = ("connect", "read", "write", "timeout", "status")
GROWTH_KIB = 8 * 1024  # what allocators of 256 threads may still take


def main():
    if shutil.which("wrk") is None:
        print("skipped: wrk is not installed (apt-get install wrk)")
        return 77
    server = Served(PROGRAM, "--jobs", "1")
    try:
        server.wait(server.submit("run", {"scenario": "ddp-16"}))
        bad, memory = 0, []
        for turn in range(3):
            ids = [server.submit("run", {"scenario": "ddp-16"}) for _ in range(5)]
            done = subprocess.run(["wrk", "-t2", "-c200", f"-d{SECONDS}s", "--timeout", "20s", "-s", str(Path(__file__).with_name("load.lua")),
                                   f"http://127.0.0.1:{server.port}"], capture_output=True, text=True)
            figures = json.loads(done.stdout.strip().splitlines()[-1])
            states = {server.wait(id)["state"] for id in ids}
            time.sleep(7)  # idle connections are closed
            memory.append(server.memory_kib())
            print(f"round {turn + 1}: {figures['requests']} requests, {figures['requests'] / SECONDS:.0f}/s, p50 {figures['p50_us'] / 1000:.1f} ms, "
                  f"p99 {figures['p99_us'] / 1000:.1f} ms, errors {({k: figures[k] for k in ERRORS})}, jobs {states}, "
                  f"memory {memory[-1] // 1024} MiB, descriptors {server.descriptors()}", flush=True)
            bad += sum(figures[k] for k in ERRORS) + (states != {"done"})
        grown = memory[2] - memory[1]
        print(f"memory grew by {grown} KiB from round 2 to round 3")
        return 0 if bad == 0 and grown < GROWTH_KIB else 1
    finally:
        server.close()


if __name__ == "__main__":
    sys.exit(main())
