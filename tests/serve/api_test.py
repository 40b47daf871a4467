#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The API of `rehearse serve` over loopback, from the library to fixes, and what happens to jobs.

Usage: api_test.py PROGRAM ROOT [unittest arguments]
"""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

PROGRAM = str(Path(sys.argv.pop(1)).resolve())
ROOT = Path(sys.argv.pop(1)).resolve()
sys.path.insert(0, str(Path(__file__).parent))
from served import Served  # noqa: E402

HEALTHY = {"scenario": "ddp-16"}
SOCKETS = {"scenario": "ddp-16", "edits": [{"fault": "F16:node=1"}]}
LONG = {"scenario": "ddp-16", "edits": [{"patch": "steps: 100000"}]}


def workers_of(pid):
    """Processes that the server started and that are alive."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[1]) == pid and fields[0] != "Z":
            found.append(int(entry.name))
    return found


class Answers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Served(PROGRAM, "--jobs", "2")
        cls.ask = cls.server.ask

    @classmethod
    def tearDownClass(cls):
        cls.server.close()

    def cli(self, *words):
        return subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=120).stdout

    def test_the_catalogues_are_those_of_the_command_line(self):
        for path, words in (("/platforms", ["platforms"]), ("/faults", ["faults"]), ("/scenarios", ["run", "--list"]),
                            ("/faults/F16", ["faults", "show", "F16"]),
                            ("/platforms/dgx-a100?nodes=3", ["platforms", "show", "dgx-a100", "--nodes", "3"])):
            self.assertEqual(self.ask("GET", path, expect=200), json.loads(self.cli(*words, "--json")), path)

    def test_a_scenario_is_previewed_with_its_edits(self):
        seen = self.ask("POST", "/preview", SOCKETS, expect=200)
        self.assertEqual(seen["schema"], "rehearse.scenario/1")
        self.assertEqual(seen["patches"], ["launch.ranks[node=1].env.NCCL_IB_DISABLE=1"])
        self.assertEqual(len(seen["scenario"]["platform"]["nodes"]), 2)
        names = [link["name"] for link in seen["links"]]
        self.assertIn("node1/mlx5_0/tx", names)
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as kept:
            kept.write(seen["yaml"])
            kept.flush()
            again = json.loads(self.cli("run", kept.name, "--json"))
        self.assertEqual(again["symptom"]["id"], "B3")
        status, refused = self.ask("POST", "/preview", {"scenario": "ddp-16", "edits": [{"set": "platform.nodes[9].name=x"}]})
        self.assertEqual(status, 400)
        self.assertEqual(list(refused["error"]), ["code", "what", "where", "fix"])

    def test_a_run_gives_the_bytes_of_the_command_line(self):
        id = self.server.submit("run", SOCKETS, title="no InfiniBand")
        job = self.server.wait(id)
        self.assertEqual((job["state"], job["schema"]), ("done", "rehearse.job/1"), job)
        self.assertEqual(job["summary"]["symptom"], "B3")
        self.assertGreater(job["summary"]["step_time_ns"], job["summary"]["baseline_step_time_ns"])
        _, headers, text = self.server.raw("GET", f"/api/v1/jobs/{id}/result")
        self.assertEqual(headers["Content-Type"], "application/json")
        self.assertEqual(text.decode(), self.cli("run", "ddp-16", "--fault=F16:node=1", "--json"))
        self.assertIn("result.json", [f["name"] for f in job["files"]])

    def test_cause_and_fix(self):
        diagnosis = self.server.submit("diagnose", SOCKETS)
        fix = self.server.submit("fix", SOCKETS)
        check = self.server.submit("check", SOCKETS)
        for id in (diagnosis, fix, check):
            self.assertEqual(self.server.wait(id)["state"], "done")
        self.assertEqual(self.server.result(diagnosis)["causes"][0]["fault"], "F16")
        best = self.server.result(fix)["fixes"][0]
        self.assertTrue(best["restores"])
        self.assertEqual(self.server.result(check)["schema"], "rehearse.check/1")
        repaired = dict(SOCKETS, edits=SOCKETS["edits"] + [{"patch": patch} for patch in best["patches"]])
        run = self.server.submit("run", repaired)
        self.assertEqual(self.server.wait(run)["summary"]["symptom"], "healthy")

    def test_runs_are_compared(self):
        a, b = self.server.submit("run", HEALTHY), self.server.submit("run", SOCKETS)
        self.server.wait(a), self.server.wait(b)
        runs = self.ask("GET", f"/compare?jobs={a},{b}", expect=200)["runs"]
        self.assertEqual([r["job"] for r in runs], [a, b])
        self.assertEqual(runs[0]["ratio"], 1)
        self.assertGreater(runs[1]["ratio"], 1.01)
        self.assertGreater(runs[0]["breakdown"]["compute"], 0)
        self.assertEqual(self.ask("GET", "/compare?jobs=", None)[0], 400)
        self.assertEqual(self.ask("GET", f"/compare?jobs={a},999999", None)[0], 404)

    def test_a_dropped_trace_is_imported_and_runs(self):
        trace = (ROOT / "tests/corpus/kineto/small.json").read_bytes()
        job = self.ask("POST", "/traces?assume_symmetric=true&name=my%20run%2F..%2Fsmall.json", trace,
                       {"Content-Type": "application/octet-stream"}, expect=202)
        job = self.server.wait(job["id"])
        self.assertEqual(job["state"], "done", job)
        name = job["summary"]["trace"]
        self.assertRegex(name, r"^small(-\d+)?\.rtrace$")
        self.assertIn(name, [t["name"] for t in self.ask("GET", "/traces", expect=200)["traces"]])
        self.assertEqual(self.ask("GET", f"/traces/{name}", expect=200)["schema"], "rehearse.inspect/1")
        self.assertTrue(self.server.raw("GET", f"/api/v1/traces/{name}/file")[2].startswith(b"RTRACE"))
        for subject in ({"trace": name}, {"yaml": f"trace: {name}\nplatform: {{like: dgx-a100, scale: 1}}\n"}):
            run = self.server.wait(self.server.submit("run", subject))
            self.assertEqual(run["state"], "done", run)
        self.assertEqual(self.ask("DELETE", f"/traces/{name}")[0], 204)
        self.assertEqual(self.ask("GET", f"/traces/{name}")[0], 404)
        self.assertEqual(self.ask("POST", "/jobs", {"kind": "run", "subject": {"trace": name}})[0], 404)

    def test_files_that_belong_together_are_uploaded_one_by_one(self):
        source = ROOT / "tests/corpus/kineto/small.json"
        upload = self.ask("POST", "/uploads?name=rank0.json", source.read_bytes(),
                          {"Content-Type": "application/octet-stream"}, expect=201)["upload"]
        job = self.ask("POST", "/traces", {"uploads": [upload], "name": "two.json", "assume_symmetric": True}, expect=202)
        self.assertEqual(self.server.wait(job["id"])["state"], "done")
        self.assertEqual(self.ask("POST", "/traces", {"uploads": [upload], "name": "two.json"})[0], 404)
        # One that is not there, or is none, leaves the others where they are.
        upload = self.ask("POST", "/uploads?name=rank0.json", source.read_bytes(),
                          {"Content-Type": "application/octet-stream"}, expect=201)["upload"]
        self.assertEqual(self.ask("POST", "/traces", {"uploads": [upload, "0" * 32]})[0], 404)
        status, answer = self.ask("POST", "/traces", {"uploads": [upload, 7]})
        self.assertEqual((status, answer["error"]["where"]), (400, "body: /uploads/1"))
        self.ask("POST", "/traces", {"uploads": [upload], "assume_symmetric": True}, expect=202)

    def test_what_cannot_be_imported_says_why(self):
        job = self.ask("POST", "/traces?name=x.json", b"\x00\x01 nothing", {"Content-Type": "application/octet-stream"}, expect=202)
        job = self.server.wait(job["id"])
        self.assertEqual(job["state"], "failed")
        self.assertEqual(list(job["error"]), ["code", "what", "where", "fix"])
        self.assertEqual(self.ask("GET", f"/jobs/{job['id']}/result")[0], 409)

    def test_a_failing_job_carries_the_error_of_the_command_line(self):
        job = self.server.wait(self.server.submit("run", {"scenario": "ddp-16", "edits": [{"fault": "F999"}]}))
        self.assertEqual((job["state"], job["error"]["code"]), ("failed", "usage"))
        job = self.server.wait(self.server.submit("run", {"scenario": "ddp-61"}))
        self.assertEqual(job["error"]["code"], "missing-input")
        self.assertIn("ddp-16", job["error"]["fix"])

    def test_progress_comes_as_events_until_the_job_has_ended(self):
        id = self.server.submit("run", HEALTHY)
        status, headers, text = self.server.raw("GET", f"/api/v1/jobs/{id}/events")
        self.assertEqual((status, headers["Content-Type"]), (200, "text/event-stream"))
        events = [json.loads(line[6:]) for line in text.decode().splitlines() if line.startswith("data: ")]
        self.assertEqual(events[-1]["state"], "done")
        self.assertTrue(all(event["id"] == id for event in events))

    def test_a_job_can_be_cancelled_and_deleted(self):
        id = self.server.submit("run", LONG)
        self.assertEqual(self.ask("DELETE", f"/jobs/{id}")[0], 409)
        while self.ask("GET", f"/jobs/{id}", expect=200)["state"] == "queued":
            time.sleep(0.02)
        self.assertEqual(self.ask("POST", f"/jobs/{id}/cancel")[0], 200)
        self.assertEqual(self.server.wait(id)["state"], "cancelled")
        self.assertEqual(self.ask("POST", f"/jobs/{id}/cancel")[0], 409)
        self.assertEqual(self.ask("DELETE", f"/jobs/{id}")[0], 204)
        self.assertEqual(self.ask("GET", f"/jobs/{id}")[0], 404)
        self.assertFalse((Path(self.server.folder) / "jobs" / id).exists())

    def test_a_lab_is_begun_looked_at_and_checked(self):
        if not self.ask("GET", "", expect=200)["labs"]:
            self.skipTest("this program has no labs")
        first = self.ask("GET", "/labs", expect=200)["labs"][0]["id"]
        self.assertEqual(self.ask("GET", f"/labs/{first}", expect=200)["id"], first)
        self.assertFalse(self.ask("GET", f"/labs/{first}/files", expect=200)["started"])
        self.assertEqual(self.ask("POST", f"/labs/{first}/check", {})[0], 400)
        self.ask("POST", f"/labs/{first}/start", {"seed": 3}, expect=200)
        files = {f["name"]: f for f in self.ask("GET", f"/labs/{first}/files", expect=200)["files"]}
        self.assertTrue(files["job.yaml"]["yours"])
        self.assertFalse(files["README.md"]["yours"])
        check = self.ask("POST", f"/labs/{first}/check", {"files": {"job.yaml": files["job.yaml"]["text"]}}, expect=200)
        self.assertFalse(check["passed"])
        self.assertEqual(self.ask("POST", f"/labs/{first}/run", {}, expect=200)["schema"], "rehearse.outcome/1")
        self.assertTrue(self.ask("POST", f"/labs/{first}/hint", {}, expect=200)["text"])
        for files in ({"README.md": "x"}, {"../x": "x"}, {"job.yaml": 1}, {"env/node1.env/../../x.env": ""},
                      {"job.yaml": "trace: /etc/passwd"}, {"job.yaml": "trace: ddp-16\nplatform: ../x.yaml"}, {"cluster.yaml": "like: cluster.yaml"}):
            self.assertEqual(self.ask("POST", f"/labs/{first}/check", {"files": files})[0], 400, files)
        for id in ("..", "..%2fL01", "--help", "L01%2f..", "nothing"):
            self.assertEqual(self.ask("POST", f"/labs/{id}/start", {})[0] // 100, 4, id)

    def test_every_address_of_the_openapi_file_is_there_and_no_other(self):
        document = self.ask("GET", "/openapi.json", expect=200)
        self.assertEqual(document, json.loads((ROOT / "cli/serve/openapi.json").read_text()))
        source = (ROOT / "cli/serve/api.cpp").read_text()
        served = {(m, p[len("/api/v1"):] or "/") for m, p in re.findall(r'\{"(GET|POST|DELETE)", "(/api/v1[^"]*)"', source)}
        listed = {(m.upper(), p) for p, methods in document["paths"].items() for m in methods}
        self.assertEqual(served, listed)
        for path in document["paths"]:
            concrete = "/api/v1" + re.sub(r"\{\w+\}", "nothing-here", path)
            status, headers, _ = self.server.raw("PUT", concrete)
            self.assertEqual(status, 405, concrete)
            self.assertTrue(headers["Allow"])

    def test_the_page_and_its_parts_are_served_with_a_policy(self):
        status, headers, page = self.server.raw("GET", "/")
        self.assertEqual((status, headers["Content-Type"]), (200, "text/html; charset=utf-8"))
        self.assertIn("script-src 'self'", headers["Content-Security-Policy"])
        self.assertNotRegex(page.decode(), r'(src|href)="https?:')
        for name in set(re.findall(r'"/assets/([^"]+)"', page.decode())):
            status, headers, _ = self.server.raw("GET", "/assets/" + name)
            self.assertEqual((status, headers["X-Content-Type-Options"]), (200, "nosniff"), name)
        self.assertIn(b"rehearse_jobs{state=\"done\"}", self.server.raw("GET", "/metrics")[2])


class Documents(unittest.TestCase):
    def test_the_commands_of_the_document_do_what_it_says(self):
        script = re.search(r"^```sh\n(.*?)^```", (ROOT / "docs/serve.md").read_text(), re.M | re.S).group(1)
        with tempfile.TemporaryDirectory() as folder:
            os.symlink(PROGRAM, folder + "/rehearse")
            os.symlink(ROOT / "tests", folder + "/tests")
            with open(folder + "/talk", "w+") as talk:
                done = subprocess.run(["bash", "-e", "-c", script + "\nwait\n"], cwd=folder, stdout=talk, stderr=subprocess.STDOUT, timeout=120)
                talk.seek(0)
                self.assertEqual(done.returncode, 0, talk.read())
            outcome = json.loads(Path(folder, "outcome.json").read_text())
            self.assertEqual(outcome["symptom"]["id"], "B3")


class Lives(unittest.TestCase):
    def test_twenty_jobs_at_once_queue_and_finish(self):
        server = Served(PROGRAM, "--jobs", "2")
        self.addCleanup(server.close)
        ids, most = [], 0
        lock = threading.Lock()

        def submit(i):
            id = server.submit("run", HEALTHY, title=f"job {i}")
            with lock:
                ids.append(id)
        threads = [threading.Thread(target=submit, args=(i,)) for i in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(set(ids)), 20)
        while True:
            jobs = server.ask("GET", "/jobs?limit=100", expect=200)["jobs"]
            most = max(most, sum(job["state"] == "running" for job in jobs))
            if all(job["state"] not in ("queued", "running") for job in jobs):
                break
            time.sleep(0.05)
        self.assertEqual([job["state"] for job in jobs], ["done"] * 20)
        self.assertLessEqual(most, 2)
        self.assertEqual(len({json.dumps(server.result(id)) for id in ids}), 1)

    def test_a_killed_worker_takes_nothing_with_it(self):
        server = Served(PROGRAM, "--jobs", "1")
        self.addCleanup(server.close)
        id, after = server.submit("run", LONG), server.submit("run", HEALTHY)
        workers = []
        while not workers:
            workers = workers_of(server.process.pid)
            time.sleep(0.02)
        os.kill(workers[0], signal.SIGKILL)
        job = server.wait(id)
        self.assertEqual((job["state"], job["error"]["code"]), ("failed", "internal"))
        self.assertIn("SIGKILL", job["error"]["what"])
        self.assertEqual(server.wait(after)["state"], "done")

    def test_a_restart_keeps_results_and_goes_on_with_the_queue(self):
        server = Served(PROGRAM, "--jobs", "1")
        self.addCleanup(server.close)
        done = server.submit("run", HEALTHY)
        server.wait(done)
        before = server.result(done)
        long, queued = server.submit("run", LONG), server.submit("check", HEALTHY)
        while server.ask("GET", f"/jobs/{long}", expect=200)["state"] == "queued":
            time.sleep(0.02)
        self.assertEqual(server.stop(signal.SIGTERM), 0)
        self.assertEqual(workers_of(server.process.pid), [])
        server.start()
        self.assertEqual(server.result(done), before)
        server.ask("POST", f"/jobs/{long}/cancel", expect=200)  # an orderly end puts it back into the queue
        self.assertEqual(server.wait(queued)["state"], "done")
        # Killed, it says what became of what ran.
        again = server.submit("run", LONG)
        while server.ask("GET", f"/jobs/{again}", expect=200)["state"] == "queued":
            time.sleep(0.02)
        server.stop(signal.SIGKILL)
        server.start()
        job = server.wait(again)
        self.assertEqual((job["state"], job["error"]["code"]), ("failed", "interrupted"))
        self.assertEqual(server.result(done), before)

    def test_a_refused_import_leaves_no_file(self):
        server = Served(PROGRAM, "--jobs", "1")
        self.addCleanup(server.close)
        server.stop(signal.SIGTERM)
        for id in range(1, 1003):  # 1000 may wait, one runs
            folder = Path(server.folder, "jobs", str(id))
            folder.mkdir()
            folder.joinpath("job.json").write_text(json.dumps({
                "schema": "rehearse.job/1", "id": str(id), "state": "queued", "request": {"kind": "run", "subject": LONG}}))
        server.start()
        status, _ = server.ask("POST", "/traces?name=x.json", b"{}", {"Content-Type": "application/octet-stream"})
        self.assertEqual(status, 503)
        self.assertEqual(list((Path(server.folder) / "uploads").iterdir()), [])

    def test_a_job_that_takes_too_long_is_ended(self):
        server = Served(PROGRAM, "--job-time", "300ms")
        self.addCleanup(server.close)
        job = server.wait(server.submit("run", LONG))
        self.assertEqual((job["state"], job["error"]["code"]), ("failed", "limit"))

    def test_two_servers_do_not_share_a_folder(self):
        server = Served(PROGRAM)
        self.addCleanup(server.close)
        second = subprocess.run([PROGRAM, "serve", "--port", "0", server.folder], capture_output=True, text=True, timeout=30)
        self.assertEqual(second.returncode, 2)
        self.assertIn("another server uses this folder", second.stderr)
        taken = subprocess.run([PROGRAM, "serve", "--port", str(server.port), tempfile.mkdtemp()], capture_output=True,
                               text=True, timeout=30)
        self.assertEqual(taken.returncode, 2)
        self.assertIn("cannot listen", taken.stderr)


if __name__ == "__main__":
    unittest.main()
