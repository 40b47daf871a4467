#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts of the real evidence files for real_files_evidence.cpp, by python alone.

usage: count_evidence_files.py DATA FOLDER > rows

Logs are searched with regular expressions over the whole text, rows of nccl-tests are those that
nccl_tests.csv lists for the file (else lines that look like rows), Inspector lines and dumps are
read with json and pickle.
"""
import csv, gzip, json, pickle, re, sys
from collections import Counter
from pathlib import Path

data, folder = Path(sys.argv[1]), sys.argv[2]
listed = Counter()
table = data / "nccl/nccl_tests.csv"
if table.exists():
    for row in csv.DictReader(open(table)):
        listed["nccl/" + row["source_file"]] += 1

CHOICE = re.compile(r"Bytes -> Algo (?:[A-Z]\w*|\d) proto (?:[A-Z]\w*|\d) (?:time [\d.]+(?=\s)|channel\{Lo..Hi\}=\{\d+\.\.\d+\})")
VIA = re.compile(r"Channel (\d+(?:/\d+)?) : (\d+)\[\w+\] -> (\d+)\[\w+\](?: \[\w+\])? via "
                 r"(P2P/(?:direct pointer|IPC|CUMEM)(?:/read)?|SHM/direct/direct|NET/\S+)$", re.M)
ROW = re.compile(r"^\s*(\d+)\s+(\d+)\s+(?:float|double|half|int8|bfloat16)\b.*", re.M)
REFUSED = "known are"


def row(path, form, counts="", says=""):
    body = f'    {{"{path}", "{form}"'
    if counts or says:
        body += f", {{{counts}}}"
    if says:
        body += f', "{says}"'
    print(body + "},")


def evidence(**n):
    order = ["communicators", "choices", "connections", "rows", "records", "entries"]
    return "0, 0, 0, 0, 0, 0, -1, " + ", ".join(str(n.get(k, 0)) for k in order)


for file in sorted(p for p in (data / folder).rglob("*") if p.is_file()):
    path = str(file.relative_to(data))
    raw = file.read_bytes()
    if raw[:2] == b"\x1f\x8b":
        raw = gzip.decompress(raw)
    if folder == "flight_recorder" and file.name.startswith("_dump_"):
        row(path, "flight-recorder-pickle", evidence(entries=len(pickle.loads(raw)["entries"])))
        continue
    text = raw.decode("utf-8", "replace")
    if folder == "flight_recorder" and file.name.startswith("rank"):
        row(path, "flight-recorder", evidence(entries=len(json.loads(text)["entries"])))
    elif "/inspector/" in path:
        lines = [json.loads(line) for line in text.splitlines()]
        row(path, "inspector", evidence(records=sum("coll_perf" in x or "p2p_perf" in x for x in lines)))
    elif path == "nccl/nccl_tests.csv":
        row(path, "nccl-tests-csv", evidence(rows=sum(listed.values())))
    elif text.startswith("size_bytes,time_us"):
        row(path, "nccl-tests-csv", evidence(rows=len(text.splitlines()) - 1))
    elif " NCCL INFO " in text or re.search(r"^NCCL version \d", text, re.M):
        ids = set(re.findall(r"commId (0x[0-9a-f]+) ", text))
        runs = sum("opCount" in run for run in re.split(r"^# nThread", text, flags=re.M)[1:])
        choices = len(CHOICE.findall(text))
        vias = len({m for m in VIA.findall(text)})
        comms = len(ids) if ids else runs if runs else int("Channel 00/" in text)
        row(path, "nccl-log", evidence(communicators=comms, choices=choices, connections=vias, rows=listed[path]))
    elif listed[path]:
        row(path, "nccl-tests", evidence(rows=listed[path]))
    else:
        row(path, "", says=REFUSED)
