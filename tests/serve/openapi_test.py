#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What `rehearse serve` answers is what its OpenAPI file says: every operation of the file is asked once so that it works
and, where it can be refused, once so that it does not; status, type and fields of the answers are those of the file.

Usage: openapi_test.py PROGRAM ROOT [unittest arguments]
"""
import http.client
import json
import re
import sys
import unittest
from pathlib import Path

PROGRAM = str(Path(sys.argv.pop(1)).resolve())
ROOT = Path(sys.argv.pop(1)).resolve()
sys.path.insert(0, str(Path(__file__).parent))
from served import Served  # noqa: E402

SUBJECT = {"scenario": "ddp-16", "edits": [{"fault": "F16:node=1"}]}
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float)}


def disagreements(document, schema, value, at="answer"):
    """What of a value is not as the schema says; the keywords that the file uses, and no other."""
    known = {"type", "required", "properties", "items", "enum", "$ref", "description", "example", "maxItems", "maxLength",
             "additionalProperties"}
    unknown = set(schema) - known
    if unknown:
        return [f"{at}: the test does not know {sorted(unknown)}"]
    if "$ref" in schema:
        return disagreements(document, document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]], value, at)
    wanted = TYPES[schema["type"]]
    if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
        return [f"{at}: {type(value).__name__} instead of {schema['type']}"]
    out = []
    if "enum" in schema and value not in schema["enum"]:
        out.append(f"{at}: {value!r} is none of {schema['enum']}")
    if isinstance(value, dict):
        out += [f"{at}: no {name}" for name in schema.get("required", []) if name not in value]
        for name, of in schema.get("properties", {}).items():
            if name in value:
                out += disagreements(document, of, value[name], f"{at}.{name}")
    if isinstance(value, list) and "items" in schema:
        for i, one in enumerate(value[:50]):
            out += disagreements(document, schema["items"], one, f"{at}[{i}]")
    return out


class OpenApi(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Served(PROGRAM, "--jobs", "2")
        cls.document = json.loads((ROOT / "cli/serve/openapi.json").read_text())
        cls.asked = set()

    @classmethod
    def tearDownClass(cls):
        cls.server.close()

    def check(self, method, path, body=None, binary=None, query="", expect=200, **names):
        """Asks one operation and compares the answer with the file. Returns the JSON of the answer, or its bytes."""
        self.asked.add((method, path, "works" if expect < 300 else "refused"))
        operation = self.document["paths"][path][method.lower()]
        filled = re.sub(r"\{(\w+)\}", lambda m: names[m.group(1)], "" if path == "/" else path)
        stated = {p["name"] for p in operation.get("parameters", []) if p["in"] == "query"}
        for name in re.findall(r"[?&](\w+)=", query):
            self.assertIn(name, stated, f"{method} {path}")
        headers = {}
        if body is not None:
            headers["Content-Type"] = "application/json"
            schema = operation["requestBody"]["content"]["application/json"]["schema"]
            if expect < 300:
                self.assertEqual(disagreements(self.document, schema, body, "request"), [], f"{method} {path}")
            body = json.dumps(body)
        if binary is not None:
            headers["Content-Type"] = "application/octet-stream"
            self.assertIn("application/octet-stream", operation["requestBody"]["content"])
            body = binary
        status, heads, text = self.server.raw(method, "/api/v1" + filled + query, body, headers)
        where = f"{method} {filled}{query}: {text[:300]}"
        self.assertEqual(status, expect, where)
        answer = operation["responses"].get(str(status), operation["responses"]["default"])
        if "content" not in answer:
            self.assertEqual(text, b"", where)
            return None
        kind = heads["Content-Type"].split(";")[0]
        self.assertTrue(kind in answer["content"] or "application/octet-stream" in answer["content"], where)
        if kind != "application/json" or "application/json" not in answer["content"]:
            return text
        value = json.loads(text)
        self.assertEqual(disagreements(self.document, answer["content"]["application/json"]["schema"], value), [], where)
        return value

    def done(self, job):
        job = self.server.wait(job["id"])
        self.assertEqual(job["state"], "done", job)
        return job["id"]

    def test_answers_are_those_of_the_file(self):
        check = self.check
        check("GET", "/")
        check("GET", "/openapi.json")
        for kind, id in (("platforms", "dgx-a100"), ("faults", "F16")):
            check("GET", f"/{kind}")
            check("GET", f"/{kind}/{{id}}", id=id)
            check("GET", f"/{kind}/{{id}}", id="nothing-here", expect=404)
        check("GET", "/platforms/{id}", id="dgx-a100", query="?nodes=2")
        check("GET", "/scenarios")
        check("GET", "/scenarios/{name}", name="ddp-16")
        check("GET", "/scenarios/{name}", name="nothing-here", expect=404)
        check("POST", "/preview", SUBJECT)
        check("POST", "/preview", {"weather": "fine"}, expect=400)
        self.traces()
        self.jobs()
        if check("GET", "/")["labs"]:
            self.labs()
        listed = {(method.upper(), path) for path, methods in self.document["paths"].items() for method in methods}
        works = {(method, path) for method, path, how in self.asked if how == "works"}
        self.assertEqual(works if self.server.ask("GET", "", expect=200)["labs"] else works | {o for o in listed if "/labs" in o[1]}, listed)

    def traces(self):
        check = self.check
        trace = (ROOT / "tests/corpus/kineto/small.json").read_bytes()
        self.done(check("POST", "/traces", binary=trace, query="?name=one.json&assume_symmetric=true", expect=202))
        upload = check("POST", "/uploads", binary=trace, query="?name=rank0.json", expect=201)["upload"]
        self.done(check("POST", "/traces", {"uploads": [upload], "name": "two.json", "assume_symmetric": True}, expect=202))
        check("POST", "/traces", {"uploads": [upload], "name": "two.json"}, expect=404)
        names = [one["name"] for one in check("GET", "/traces")["traces"]]
        self.assertEqual(names, ["one.rtrace", "two.rtrace"])
        check("GET", "/traces/{name}", name=names[0])
        check("GET", "/traces/{name}", name="nothing-here", expect=404)
        self.assertTrue(check("GET", "/traces/{name}/file", name=names[0]).startswith(b"RTRACE"))
        check("DELETE", "/traces/{name}", name=names[1], expect=204)
        check("DELETE", "/traces/{name}", name=names[1], expect=404)

    def jobs(self):
        check = self.check
        ids = {}
        for kind in ("run", "diagnose", "fix", "check"):
            ids[kind] = check("POST", "/jobs", {"kind": kind, "subject": SUBJECT, "title": kind}, expect=202)
        run = self.done(ids["run"])
        for kind, job in ids.items():
            self.assertEqual(check("GET", "/jobs/{id}", id=self.done(job))["state"], "done")
            check("GET", "/jobs/{id}/result", id=job["id"])
        report = self.done(check("POST", "/jobs", {"kind": "report", "outcomes": [run]}, expect=202))
        self.assertIn(b"<!doctype html>", check("GET", "/jobs/{id}/files/{name}", id=report, name="report.html")[:200].lower())
        kept = self.done(check("POST", "/jobs", {"kind": "run", "subject": {"yaml": "trace: ddp-16\nplatform: {like: dgx-a100, scale: 2}\n"}, "also": ["perfetto", "timeline"]}, expect=202))
        files = {one["name"] for one in check("GET", "/jobs/{id}", id=kept)["files"]}
        self.assertLessEqual({"result.json", "run.pftrace", "timeline.json", "scenario.yaml"}, files)
        for name in files:
            self.assertTrue(check("GET", "/jobs/{id}/files/{name}", id=kept, name=name), name)
        check("GET", "/jobs/{id}/files/{name}", id=kept, name="nothing-here", expect=404)
        self.assertIn(b"data: ", check("GET", "/jobs/{id}/events", id=run))
        check("GET", "/jobs", query="?limit=2&before=100")
        check("GET", "/compare", query=f"?jobs={run},{kept}")
        check("GET", "/compare", query="?jobs=", expect=400)
        check("POST", "/jobs", {"kind": "weather"}, expect=400)
        long = check("POST", "/jobs", {"kind": "run", "subject": {"scenario": "ddp-16", "edits": [{"patch": "steps: 100000"}]}}, expect=202)["id"]
        check("POST", "/jobs/{id}/cancel", id=long)
        self.server.wait(long)
        check("POST", "/jobs/{id}/cancel", id=long, expect=409)
        failed = self.server.wait(check("POST", "/jobs", {"kind": "run", "subject": {"scenario": "nothing-here"}}, expect=202)["id"])
        self.assertEqual(check("GET", "/jobs/{id}", id=failed["id"])["state"], "failed")
        check("GET", "/jobs/{id}/result", id=failed["id"], expect=409)
        check("DELETE", "/jobs/{id}", id=long, expect=204)
        check("GET", "/jobs/{id}", id=long, expect=404)
        self.stream()

    def stream(self):
        """/events goes on for ever: its head and its first event."""
        self.asked.add(("GET", "/events", "works"))
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)
        connection.request("GET", "/api/v1/events")
        answer = connection.getresponse()
        self.assertIn(answer.getheader("Content-Type"), self.document["paths"]["/events"]["get"]["responses"]["200"]["content"])
        self.server.submit("check", {"scenario": "ddp-16"})
        line = b""
        while not line.startswith(b"data: "):
            line = answer.readline()
        self.assertEqual(disagreements(self.document, self.document["components"]["schemas"]["Job"], json.loads(line[6:])), [])
        connection.close()

    def labs(self):
        check = self.check
        first = check("GET", "/labs")["labs"][0]["id"]
        check("GET", "/labs/{id}", id=first)
        check("GET", "/labs/{id}", id="nothing", expect=404)
        check("POST", "/labs/{id}/{action}", {"seed": 3}, id=first, action="start")
        files = check("GET", "/labs/{id}/files", id=first)["files"]
        job = next(one["text"] for one in files if one["name"] == "job.yaml")
        for action in ("run", "check", "hint", "solution"):
            check("POST", "/labs/{id}/{action}", {"files": {"job.yaml": job}}, id=first, action=action)
        check("POST", "/labs/{id}/{action}", {}, id=first, action="nothing", expect=404)


if __name__ == "__main__":
    unittest.main()
