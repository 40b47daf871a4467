#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""report, view and the exports of run without a browser: inputs, refusals, what is in the files.

Usage: report_test.py PROGRAM [unittest arguments]
"""
import http.client
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

PROGRAM = str(Path(sys.argv.pop(1)).resolve())


def rehearse(*words, env=None):
    return subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=120, env={**os.environ, **(env or {})})


class Files(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.path = Path(cls.temporary.name)
        cls.slow = cls.path / "slow.json"
        done = rehearse("run", "dlrm-8", "--patch", "slow-rank: {rank: 3, slowdown: 3}", "--json", "-o", str(cls.slow))
        assert done.returncode == 0, done.stderr

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()


class Report(Files):
    def made(self, *inputs, options=()):
        page = self.path / "page.html"
        done = rehearse("report", *map(str, inputs), "-o", str(page), "--force", "--json", *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["schema"], "rehearse.report/1")
        self.assertEqual(json.loads(done.stdout)["bytes"], page.stat().st_size)
        return page.read_text()

    def test_a_page_needs_nothing_else_and_is_the_same_every_time(self):
        page = self.made(self.slow)
        self.assertEqual(page, self.made(self.slow))
        self.assertIsNone(re.search(r'(?:src|href)="(?!#)', page))
        self.assertIn("Content-Security-Policy", page)
        scripts = re.findall(r"<script[^>]*>", page)
        self.assertTrue(all("nonce=" in tag or 'type="application/octet-stream"' in tag for tag in scripts), scripts)
        self.assertLess(len(page), 1 << 20)

    def test_an_outcome_alone_is_explained(self):
        page = self.made(self.slow)
        why, todo, pictures = (page.index(f"<h2>{heading}</h2>") for heading in ("Why", "What to do", "Pictures"))
        self.assertIn("F60:rank=3", page[why:todo])
        self.assertIn("symptom D2.2", page[why:todo])
        self.assertIn("runs were simulated to find out", page[why:todo])
        self.assertIn('class="good"', page[todo:pictures])
        self.assertIn("helps in 100 % of 20 draws", page[todo:pictures])
        self.assertRegex(page[todo:pictures], r"ms<div class=\"note\">[0-9.]+ ms – [0-9.]+ ms</div>")
        self.assertNotIn("Not looked for", page)

    def test_an_outcome_whose_scenario_changed_is_not_explained(self):
        outcome = json.loads(self.slow.read_text())
        for name, changed in (("other", {"end_ns": outcome["end_ns"] + 1}), ("moved", {"origin": {**outcome["origin"], "scenario": "moved.yaml"}}),
                              ("unknown", {"origin": {}})):
            path = self.path / f"{name}.json"
            path.write_text(json.dumps({**outcome, **changed}))
            self.assertIn("Not looked for", self.made(path), name)

    def test_it_says_which_command_adds_causes_and_fixes(self):
        page = self.made(self.slow, options=["--as-is"])
        self.assertIn("Not looked for.", page)
        self.assertIn("rehearse diagnose dlrm-8 --patch &#39;slow-rank: {rank: 3, slowdown: 3}&#39; --json", page)
        self.assertIn("rehearse fix dlrm-8 --patch", page)

    def test_causes_fixes_and_accuracy_appear_when_they_are_given(self):
        why, fixes, accuracy = (self.path / name for name in ("why.json", "fixes.json", "accuracy.json"))
        why.write_text(rehearse("diagnose", str(self.slow), "--json").stdout)
        fixes.write_text(json.dumps({"schema": "rehearse.fixes/1", "scenario": "dlrm-8", "fixes": [
            {"fault": "F42", "use": "F42:rank=3", "name": "swap", "change": "swap the <GPU>", "step_time_ns": 5, "restores": True,
             "band": "unvalidated", "paper_count": 2, "pattern": "", "patches": []}]}))
        accuracy.write_text(json.dumps({"schema": "rehearse.validate/1", "checks": [
            {"id": "replay-step", "what": "step time of a replay", "n": 12, "median_error": 0.012, "p90_error": 0.03, "target": 0.03, "met": True},
            {"id": "step-ranking", "what": "order of layouts", "n": 31, "median_error": 0.4, "p90_error": 0.9, "metric": "Kendall's tau",
             "value": 0.923, "target": 0.8, "at_least": True, "met": True}]}))
        page = self.made(self.slow, why, fixes, accuracy)
        self.assertIn("swap the &lt;GPU&gt;", page)
        self.assertIn("step time of a replay", page)
        self.assertIn("1.2 %", page)
        self.assertIn("at most 3.0 %", page)
        # What is no share is not shown as one.
        self.assertIn("Kendall&#39;s tau 0.923", page)
        self.assertIn("at least 0.8", page)
        self.assertNotIn("80.0 %", page)
        self.assertIn('<ol class="causes">', page)
        self.assertNotIn("Not looked for", page)

    def test_a_recorded_job_says_how_far_its_replay_is_from_what_was_measured(self):
        synth, folder, trace, outcome = (self.path / name for name in ("made.rtrace", "recorded", "recorded.rtrace", "recorded.json"))
        for words in (("synth", "dlrm", "--dp", "4", "-o", synth), ("export", synth, "--format", "kineto", "-o", folder)):
            self.assertEqual(rehearse(*map(str, words)).returncode, 0, words)
        for file in folder.iterdir():  # as a profiler would have written it
            recorded = json.loads(file.read_text())
            self.assertTrue(recorded.pop("synthetic"))
            file.write_text(json.dumps(recorded))
        self.assertEqual(rehearse("import", str(folder), "-o", str(trace)).returncode, 0)
        self.assertEqual(rehearse("run", str(trace), "--patch", "slow-rank: {rank: 1, slowdown: 2}", "--json", "-o", str(outcome)).returncode, 0)
        said = "step time of each rank, this job replayed as recorded"
        self.assertIn(said, self.made(trace))
        self.assertIn(said, self.made(outcome))
        self.assertNotIn(said, self.made(outcome, options=["--as-is"]))
        self.assertNotIn(said, self.made(self.slow), "a generated job was never measured")

    def test_an_outcome_without_pictures_still_has_its_text(self):
        outcome = json.loads(self.slow.read_text())
        outcome["pictures"] = ""
        outcome["command"] = []
        bare = self.path / "bare.json"
        bare.write_text(json.dumps(outcome))
        page = self.made(bare)
        self.assertIn("This outcome has no timeline", page)
        self.assertIn("rehearse run dlrm-8 --json", page)

    def test_hostile_documents_are_refused_or_escaped(self):
        outcome = json.loads(self.slow.read_text())
        outcome["scenario"] = "</title><script>alert(1)</script>"
        outcome["culprits"] = [{"kind": "rank", "rank": 1, "link": "", "why": "<img src=x onerror=alert(1)>" + "y" * 20000}]
        outcome["findings"] = [{"id": "\"'><b>", "severity": "<i>", "count": 1, "first": "\x07", "advice": "@nonce@", "category": ""}]
        hostile = self.path / "hostile.json"
        hostile.write_text(json.dumps(outcome))
        page = self.made(hostile)
        self.assertNotIn("<script>alert", page)
        self.assertNotIn("<img", page)
        self.assertNotIn("y" * 2000, page)
        self.assertIn("@nonce@", page)  # what is put in is not filled again
        damaged = self.path / "damaged.json"
        for pictures in ("AAAA", "no base64", outcome["pictures"][:1000], 7):
            damaged.write_text(json.dumps({**outcome, "pictures": pictures}))
            done = rehearse("report", str(damaged), "-o", str(self.path / "never.html"))
            self.assertEqual(done.returncode, 65, pictures)
            self.assertFalse((self.path / "never.html").exists())

    def test_a_study_is_drawn_with_what_its_summary_says(self):
        done = rehearse("sweep", "bucket-size", "-o", str(self.path / "buckets"), "--json")
        study = self.path / "study.json"
        study.write_text(done.stdout)
        page = self.made(study)
        self.assertIn("<title>bucket-size</title>", page)
        for picture in ("best", "shares", "means", "front"):
            self.assertIn(f'data-study-picture="{picture}"', page)
        self.assertIn("12 of 12 points computed, 12 feasible", page)
        self.assertRegex(page, r'class="verdict good"><strong>[^<]+</strong> has the least ')
        self.assertIn("bucket=4MiB, network=200Gbps", page)
        self.assertIn('data-picture="timeline"', self.made(self.slow, study))
        hostile = {**json.loads(done.stdout), "study": "<script>alert(1)</script>", "best": [7, {"axes": "x"}, {}], "effects": [None, {"axes": 3}],
                   "pareto": "no", "failed": [[], {"count": -1, "reason": "<img>"}], "maximise": "yes", "points": -5}
        study.write_text(json.dumps(hostile))
        page = self.made(study)
        self.assertNotIn("<script>alert", page)
        self.assertNotIn("<img", page)

    def test_refusals_say_what_to_do(self):
        def refused(code, text, *words):
            done = rehearse("report", *map(str, words), "-o", str(self.path / "never.html"))
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(text, done.stderr)
            self.assertFalse((self.path / "never.html").exists())
        other, why, text = (self.path / name for name in ("other.json", "first.json", "text.json"))
        other.write_text('{"schema": "rehearse.scenarios/1"}')
        why.write_text('{"schema": "rehearse.diagnosis/1"}')
        text.write_text("not JSON")
        refused(65, "no place for", other)
        refused(65, "not a JSON document", text)
        refused(2, "comes first", why)
        refused(66, "gone.json", self.path / "gone.json")
        refused(2, "stands alone", "ddp-16", self.slow)
        refused(2, "cannot be changed", self.slow, "--fault", "F16")


class Exports(Files):
    def test_every_format_has_every_operation(self):
        names = {"timeline": "t.json", "perfetto": "t.pftrace", "chrome": "c.json", "csv": "t.csv"}
        words = [word for option, name in names.items() for word in (f"--{option}", str(self.path / name))]
        done = rehearse("run", "dlrm-8", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        timeline = json.loads((self.path / "t.json").read_text())
        operations = sum(len(lane["start"]) for rank in timeline["ranks"] for lane in rank["lanes"])
        chrome = json.loads((self.path / "c.json").read_text())["traceEvents"]
        self.assertEqual(sum(event["ph"] == "X" for event in chrome), operations)
        self.assertEqual(len((self.path / "t.csv").read_text().splitlines()), operations + 1)
        self.perfetto_has(timeline, operations, self.path / "t.pftrace")
        self.assertEqual(len(timeline["names"]), len(timeline["kinds"]))
        again = rehearse("run", "dlrm-8", "--csv", str(self.path / "t.csv"))
        self.assertEqual(again.returncode, 2, "an existing file was overwritten")


    def perfetto_has(self, timeline, operations, file):
        """By the numbers of the public schema alone, as protoc prints them, so that a wrong number in ours is seen."""
        if not shutil.which("protoc"):
            self.skipTest("protoc is not installed")
        with open(file, "rb") as trace:
            raw = subprocess.run(["protoc", "--decode_raw"], stdin=trace, capture_output=True, text=True, timeout=120)
        self.assertEqual(raw.returncode, 0, raw.stderr)
        packets, path = [], []
        for line in raw.stdout.splitlines():
            line = line.strip()
            if line.endswith("{"):
                path.append(line.split()[0])
                if path == ["1"]:  # Trace.packet
                    packets.append({})
            elif line == "}":
                path.pop()
            else:
                name, value = line.split(": ", 1)
                packets[-1].setdefault(".".join(path[1:] + [name]), []).append(value)
        # TracePacket: 60 track_descriptor, 11 track_event. TrackDescriptor: 1 uuid, 3 process (6 name), 5 parent, 8 counter.
        processes = {p["60.1"][0]: p["60.3.6"][0].strip('"') for p in packets if "60.3.6" in p}
        ranks = {uuid for uuid, name in processes.items() if name.startswith("rank ")}
        self.assertEqual(len(ranks), len(timeline["ranks"]))
        lanes = {p["60.1"][0] for p in packets if p.get("60.5", [""])[0] in ranks and "60.8" not in p and not any(key.startswith("60.8.") for key in p)}
        self.assertGreaterEqual(len(lanes), sum(len(rank["lanes"]) for rank in timeline["ranks"]))
        # TrackEvent: 9 type (1 begin, 2 end, 4 counter), 10 name_iid, 11 track_uuid, 47 flow_ids.
        kind = lambda p: p.get("11.9", [""])[0]
        begun = [p for p in packets if kind(p) == "1" and p["11.11"][0] in lanes]
        self.assertEqual(len(begun), operations)
        self.assertEqual(sum(kind(p) == "1" for p in packets), sum(kind(p) == "2" for p in packets))
        self.assertTrue(all("8" in p for p in packets if "11.9" in p), "an event without a timestamp")
        # Names are interned (InternedData 12, event_names 2) once and then numbers.
        names = [value for p in packets for value in p.get("12.2.1", [])]
        self.assertEqual(len(names), len(set(names)))
        self.assertTrue({p["11.10"][0] for p in begun} <= set(names))
        self.assertGreater(sum(kind(p) == "4" for p in packets), 0)
        self.assertGreater(sum("11.47" in p for p in packets), 0)


class View(Files):
    NO_BROWSER = {"DISPLAY": "", "WAYLAND_DISPLAY": ""}

    def test_without_a_browser_it_prints_the_link_and_ends(self):
        trace = self.path / "a b.pftrace"
        trace.write_bytes(b"x" * 100)
        done = rehearse("view", str(trace), env=self.NO_BROWSER)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, "https://ui.perfetto.dev/#!/?url=http://127.0.0.1:9001/a%20b.pftrace\n")
        self.assertEqual(rehearse("view", str(self.path / "gone")).returncode, 66)

    def test_it_serves_the_file_once_to_perfetto_alone(self):
        trace = self.path / "t.pftrace"
        trace.write_bytes(os.urandom(3 << 20))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        server = subprocess.Popen([PROGRAM, "view", str(trace), "--serve", "--port", str(port)], stdout=subprocess.PIPE,
                                  env={**os.environ, **self.NO_BROWSER})
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.kill)
        server.stdout.readline()

        def ask(path, method="GET", host=None):
            """Status, allowed origin and body."""
            for _ in range(100):
                line = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
                try:
                    line.request(method, path, headers={"Host": host} if host else {})
                    answer = line.getresponse()
                    return answer.status, answer.getheader("Access-Control-Allow-Origin"), answer.read()
                except ConnectionRefusedError:
                    time.sleep(0.05)
                finally:
                    line.close()
            self.fail("nobody answers")
        self.assertEqual(ask("/etc/passwd")[0], 404)
        self.assertEqual(ask("/../t.pftrace")[0], 404)
        self.assertEqual(ask("/t.pftrace", host="evil.example")[0], 403)
        self.assertEqual(ask("/t.pftrace", "OPTIONS")[1], "https://ui.perfetto.dev")
        self.assertEqual(ask("/t.pftrace", "POST")[0], 404)
        self.assertEqual(ask("/t.pftrace"), (200, "https://ui.perfetto.dev", trace.read_bytes()))
        self.assertEqual(server.wait(timeout=10), 0)


if __name__ == "__main__":
    unittest.main()
