#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts what is in Kineto and PyTorch execution trace files with python's json module, as rows of
tests/traces/real_files_kineto.cpp and real_files_et.cpp. Run from the data folder: count_pytorch_files.py FILE..."""
import gzip
import json
import sys

HOST = {"cpu_op", "operator", "python_function"}
RUNTIME = {"cuda_runtime", "cuda_driver", "runtime", "hip_runtime", "mtia_runtime", "xpu_runtime",
           "privateuse1_runtime"}
COPY, MEMSET = {"gpu_memcpy", "memcpy"}, {"gpu_memset", "memset"}
KERNEL = {"kernel", "mtia_ccp_events"}


def load(name):
    raw = open(name, "rb").read()
    if raw[:2] == b"\x1f\x8b":
        raw = gzip.decompress(raw)
    return json.loads(raw.decode("utf-8", "replace"))


def kineto(doc):
    n = dict.fromkeys(("operations", "kernels", "calls", "copies", "memsets", "steps"), 0)
    for e in doc["traceEvents"] if isinstance(doc, dict) else doc:
        cat, name = str(e.get("cat", "")).lower(), str(e.get("name", ""))
        if e.get("ph") != "X":
            if name == "[memory]" and e.get("args", {}).get("Device Type", -1) != 0:
                n["operations"] += 1
            continue
        if cat in KERNEL:
            n["calls" if name.startswith("nccl") else "kernels"] += 1
        elif cat in COPY:
            n["copies"] += 1
        elif cat in MEMSET:
            n["memsets"] += 1
        elif cat == "user_annotation" and name.startswith("ProfilerStep#"):
            n["steps"] += 1
        elif cat not in HOST | RUNTIME | {"overhead", "user_annotation"}:
            continue
        n["operations"] += 1
    return n


def execution_trace(doc):
    calls = 0
    for node in doc["nodes"]:
        if node.get("name") != "record_param_comms":
            continue
        words = json.dumps(node.get("inputs", []))
        if '"wait"' not in words and '"init"' not in words:
            calls += 1
    return {"operations": calls, "kernels": 0, "calls": calls, "copies": 0, "memsets": 0, "steps": 0}


for path in sys.argv[1:]:
    document = load(path)
    n = execution_trace(document) if isinstance(document, dict) and "nodes" in document else kineto(document)
    print(f'    {{"{path}", {", ".join(str(v) for v in n.values())}}},')
