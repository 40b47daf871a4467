#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The verb `rehearse capture` as a user meets it: exit codes, signals, output, folders.

Usage: capture_verb_test.py PROGRAM WATCHED
WATCHED is the program that tests of the library record.
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROGRAM, WATCHED = (Path(word).resolve() for word in sys.argv[1:3])
failures = 0


def check(what, good, more=""):
    global failures
    print(("ok     " if good else "FAILED ") + what + ("" if good else f": {more}"))
    failures += not good


def capture(*words, cwd, env=None):
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("NCCL_", "CUDA_INJ", "NVTX_"))}
    return subprocess.run([PROGRAM, "capture", *words], cwd=cwd, capture_output=True, text=True,
                          env={**clean, **(env or {})}, timeout=120)


with tempfile.TemporaryDirectory() as name:
    here = Path(name)

    done = capture("-o", "a", "--", "sh", "-c", "echo hello; echo there >&2; exit 7", cwd=here)
    check("exit code and output are the program's", done.returncode == 7 and done.stdout == "hello\n", done)
    check("stderr is the program's and one note", done.stderr.startswith("there\n") and
          done.stderr.count("\n") == 2, done.stderr)
    check("the folder is there", (here / "a").is_dir())

    done = capture("--", "sh", "-c", "kill -TERM $$", cwd=here)
    check("a program that a signal ended ends us the same way", done.returncode == -signal.SIGTERM, done)

    done = capture("--dry-run", "--", "true", cwd=here)
    library = [line for line in done.stdout.splitlines() if line.startswith("CUDA_INJECTION64_PATH=")]
    check("a dry run names the library", len(library) == 1 and Path(library[0].split("=")[1]).is_file(), done)
    check("a dry run ends with the command", done.stdout.splitlines()[-1] == "true", done.stdout)
    done = capture("-o", "never", "--dry-run", "--json", "--", "true", cwd=here)
    document = json.loads(done.stdout)
    check("a dry run as JSON", document["schema"] == "rehearse.capture/1" and document["command"] == ["true"])
    check("a dry run makes no folder", not (here / "never").exists())

    done = capture("--", "no-such-program-anywhere", cwd=here)
    check("a program that is not there", done.returncode == 66 and "fix:" in done.stderr, done)
    done = capture(cwd=here)
    check("no command", done.returncode == 2 and "fix:" in done.stderr, done)
    done = capture("--steps", "9-1", "--", "true", cwd=here)
    check("steps that make no sense", done.returncode == 2 and "--steps" in done.stderr, done)
    done = capture("-o", "/proc/nothing", "--", "true", cwd=here)
    check("a folder that cannot be made", done.returncode == 74 and "fix:" in done.stderr, done)

    done = capture("-o", "b", "--json", "--", "sh", "-c", "echo text; exit 3", cwd=here)
    document = json.loads(done.stdout)
    check("JSON leaves stdout to the document", done.returncode == 3 and document["exit_code"] == 3 and
          "text" in done.stderr, done)

    (here / "c").mkdir()
    old = here / "c" / f"rank0.{os.uname().nodename}.1.capture"
    old.write_bytes(b"old")
    done = capture("-o", "c", "--", "true", cwd=here)
    check("an older capture is not mixed with", done.returncode == 2 and old.exists(), done)
    done = capture("-o", "c", "--force", "--", "true", cwd=here)
    check("--force replaces it", done.returncode == 0 and not old.exists(), done)

    done = capture("--", "sh", "-c", 'printf "%s|" "$@"', "sh", "a b", "", "--json", "-o", "x", cwd=here)
    check("arguments behind -- are the program's, to the letter", done.stdout == "a b||--json|-o|x|", done)

    process = subprocess.Popen([PROGRAM, "capture", "-o", "d", "--", "sh", "-c",
                                "trap 'echo got it; exit 9' TERM; echo ready; while :; do sleep 0.1; done"],
                               cwd=here, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=60)
    check("signals reach the program", process.returncode == 9 and out == "got it\n", (process.returncode, out))

    # The program's very first act: the signal may come while we are still busy starting it.
    ends = [capture("-o", "e", "--force", "--", "perl", "-e",
                    '$SIG{TERM} = sub { exit 9 }; kill "TERM", getppid; sleep 20; exit 3', cwd=here).returncode
            for _ in range(20)]
    check("signals reach the program from its first moment on", ends == [9] * 20, ends)

    done = capture("--selftest", "--json", cwd=here)
    document = json.loads(done.stdout)
    state = {c["id"]: c["state"] for c in document["checks"]}
    check("the self-test looks at everything", set(state) == {"library", "driver", "cupti", "nccl", "folder",
                                                             "cost", "kernel"}, document)
    check("library, folder and cost are good", all(state[i] == "ok" for i in ("library", "folder", "cost")),
          document)
    check("its exit code says so", done.returncode == (0 if document["ready"] else 1), done)
    done = capture("--selftest", "-o", "/proc/nowhere/x", cwd=here)
    check("a folder that cannot be written fails it", done.returncode == 1 and "cannot be written" in done.stdout,
          done)

    # Launchers that are installed hand the doors on, and every rank leaves its file.
    launchers = {
        "plain": ["env", "RANK=0", "WORLD_SIZE=1"],
        "torchrun": ["torchrun", "--standalone", "--nproc_per_node", "2", "--no_python"],
        "mpirun": ["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", "2"],
        "srun": ["srun", "-n2"],
        "horovodrun": ["horovodrun", "-np", "2"],
    }
    for launcher, words in launchers.items():
        if shutil.which(words[0]) is None:
            print(f"skipped: {launcher} is not installed")
            continue
        if subprocess.run([*words, "true"], capture_output=True, cwd=here).returncode != 0:
            print(f"skipped: {launcher} starts nothing here")
            continue
        done = capture("-o", launcher, "--", *words, str(WATCHED), "ranges", "50", "0", cwd=here)
        ranks = sorted(f.name.split(".")[0] for f in (here / launcher).glob("*.capture"))
        check(f"{launcher}: a file per rank", done.returncode == 0 and
              ranks == (["rank0"] if launcher == "plain" else ["rank0", "rank1"]), (ranks, done))
        done = subprocess.run([PROGRAM, "import", launcher, "-o", f"{launcher}.rtrace", "--json"], cwd=here,
                              capture_output=True, text=True)
        check(f"{launcher}: what was recorded imports", done.returncode == 0 and
              json.loads(done.stdout)["world_size"] == len(ranks), done)

sys.exit(1 if failures else 0)
