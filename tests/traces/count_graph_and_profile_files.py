#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts for real_files_{chakra,horovod,tensorflow}.cpp, by a reading of the files that shares nothing with
the importers: json, and a protobuf decoder of its own. Usage: count_graph_and_profile_files.py DATA"""
import gzip
import json
import re
import sys
from collections import Counter, defaultdict
from pathlib import Path


def varint(b, i):
    value = shift = 0
    while True:
        c = b[i]
        i += 1
        value |= (c & 127) << shift
        shift += 7
        if c < 128:
            return value, i


def fields(b):
    i = 0
    while i < len(b):
        key, i = varint(b, i)
        kind = key & 7
        if kind == 0:
            value, i = varint(b, i)
        elif kind == 2:
            n, i = varint(b, i)
            value, i = b[i:i + n], i + n
        else:
            n = 8 if kind == 1 else 4
            value, i = b[i:i + n], i + n
        yield key >> 3, value


def messages(b):
    i = 0
    while i < len(b):
        n, i = varint(b, i)
        yield b[i:i + n]
        i += n


def text(path):
    raw = path.read_bytes()
    return (gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw).decode()


def row(path, ranks, kinds, steps=-1):
    total = sum(kinds.values())
    print(f"{path}: ranks {ranks}, operations {total}, kernels {kinds['kernel']}, calls {kinds['call']}, "
          f"copies {kinds['copy']}, memsets {kinds['memset']}, steps {steps}")


def gpu_kind(name, communicates):
    if communicates or re.match(r"nccl\w*Kernel", name):
        return "call"
    if name.startswith("Memcpy"):
        return "copy"
    return "memset" if name.startswith("Memset") else "kernel"


def chakra(path):
    kinds = Counter()
    if path.suffix == ".et":
        for message in list(messages(path.read_bytes()))[1:]:
            name, node_type, cpu, described = "", 0, None, False
            for number, value in fields(message):
                if number == 2:
                    name = value.decode()
                if number == 3:
                    node_type = value
                if number == 10:
                    attribute = dict(fields(value))
                    if attribute[1] == b"is_cpu_op":
                        cpu = bool(attribute.get(27, 0))
                    described = described or attribute[1] == b"comm_size"
            host = cpu and not (node_type in (5, 6, 7) and described)
            kinds["host" if host else gpu_kind(name, node_type in (5, 6, 7))] += 1
    else:
        for node in json.loads(text(path))["workload_graph"]:
            kinds["host" if node["is_cpu_op"] else gpu_kind(node["Name"], node["NodeType"] in (5, 6, 7))] += 1
    row(path, 1, kinds)


def horovod(path):
    kinds, ranks, depth = Counter(), {0}, Counter()
    for event in json.loads(text(path)):
        if event["ph"] == "i" and event["name"] == "CYCLE_START":
            kinds["cycle"] += 1
        if event["ph"] == "X":
            kinds["ready"] += 1
            ranks.add(int(event["name"]))
        if event["ph"] == "B":
            depth[event["pid"]] += 1
        if event["ph"] == "E" and depth[event["pid"]] > 0:
            depth[event["pid"]] -= 1
            kinds["phase"] += 1
    row(path, len(ranks), kinds)


def trace_json(path):
    kinds, process, thread = Counter(), {}, {}
    events = json.loads(text(path))["traceEvents"]
    for e in events:
        if e.get("name") == "process_name":
            process[e["pid"]] = e["args"]["name"]
        if e.get("name") == "thread_name":
            thread[e["pid"], e["tid"]] = e["args"]["name"]
    devices = set()
    for e in events:
        if e.get("ph") != "X":
            continue
        if process.get(e["pid"], "").startswith("/device:"):
            if thread.get((e["pid"], e["tid"]), "").startswith("Stream #"):
                devices.add(e["pid"])
                kinds[gpu_kind(e["name"], False)] += 1
        else:
            kinds["host"] += 1
    row(path, max(1, len(devices)), kinds)


def xspace(path):
    kinds, devices = Counter(), set()
    for number, plane in fields(path.read_bytes()):
        if number != 1:
            continue
        parts, names, stats = defaultdict(list), {}, {}
        for n, v in fields(plane):
            parts[n].append(v)
        plane_name = parts[2][0].decode()
        for entry in parts[4]:
            pair = dict(fields(entry))
            names[pair.get(1, 0)] = dict(fields(pair.get(2, b""))).get(2, b"").decode(errors="replace")
        for entry in parts[5]:
            pair = dict(fields(entry))
            stats[pair.get(1, 0)] = dict(fields(pair.get(2, b""))).get(2, b"").decode()
        for line in parts[3]:
            inside = defaultdict(list)
            for n, v in fields(line):
                inside[n].append(v)
            line_name = inside[2][0].decode() if inside[2] else ""
            for event in inside[4]:
                facts = dict(fields(event))
                told = {stats.get(dict(fields(v)).get(1, 0)) for n, v in fields(event) if n == 4}
                if plane_name.startswith("/device:"):
                    if not line_name.startswith("Stream #"):
                        continue
                    devices.add(plane_name)
                    kind = gpu_kind(names.get(facts.get(1, 0), ""), False)
                    if "memcpy_details" in told:
                        kind = "copy"
                    if "memset_details" in told:
                        kind = "memset"
                    kinds[kind] += 1
                elif plane_name.startswith("/host:"):
                    kinds["host"] += 1
    row(path, max(1, len(devices)), kinds)


def main():
    data = Path(sys.argv[1])
    for path in sorted((data / "chakra").iterdir()):
        if path.suffix != ".md":
            chakra(path)
    for path in sorted((data / "horovod").glob("*.json")):
        horovod(path)
    for path in sorted((data / "tensorflow").iterdir()):
        if path.suffix == ".pb":
            xspace(path)
        elif path.suffix == ".gz":
            trace_json(path)


main()
