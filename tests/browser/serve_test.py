#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The page of `rehearse serve` in a real browser: a part of the cluster is clicked, a fault placed there, run,
diagnosed and repaired; names in a trace stay text; nothing is wrong on the console.

Usage: serve_test.py PROGRAM ROOT FOLDER-FOR-SCREENSHOTS [unittest arguments]
Without chromium, its driver or selenium: exit code 77.
"""
import importlib.util
import json
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM = str(Path(sys.argv.pop(1)).resolve())
ROOT = Path(sys.argv.pop(1)).resolve()
SHOTS = sys.argv.pop(1)
sys.path[:0] = [str(ROOT / "tests/browser"), str(ROOT / "tests/serve")]
for file in ("/usr/bin/chromium", "/usr/bin/chromedriver"):
    if not Path(file).exists():
        print(f"skipped: {file} is not installed (./dev setup)")
        sys.exit(77)
if importlib.util.find_spec("selenium") is None:
    print("skipped: python3-selenium is not installed (./dev setup)")
    sys.exit(77)

from browser import Browser  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.ui import Select  # noqa: E402
from served import Served  # noqa: E402


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Served(PROGRAM, "--jobs", "2")
        cls.browser = Browser(SHOTS, 1440, 1100)
        cls.driver = cls.browser.driver

    @classmethod
    def tearDownClass(cls):
        cls.browser.__exit__()
        cls.server.close()

    def tearDown(self):
        self.assertEqual(self.browser.console(), [])

    def open(self, address):
        # Another address first: a change behind # alone loads nothing.
        self.driver.get("about:blank")
        self.driver.get(f"http://127.0.0.1:{self.server.port}/{address}")

    def until(self, what, seconds=90):
        return self.browser.until(what, "what the test waits for", seconds)

    def wait(self, css, seconds=90):
        return self.browser.find(css, seconds)

    def click(self, css):
        self.browser.click(css)

    def text(self, css):
        return self.browser.text(css)

    def shot(self, name):
        self.browser.shot("serve-" + name)

    def test_a_fault_is_clicked_into_the_cluster_run_and_repaired(self):
        self.open("#/workbench")
        self.click('[data-part="node 1"] .title')
        self.shot("workbench-node")
        self.click('[data-fault="F16"] summary')
        self.assertEqual(self.browser.attribute('[data-fault="F16"] input[name=node]', "value"), "1")
        self.click('[data-fault="F16"] .inject')
        self.until(lambda: "F16:node=1" in self.text(".changes"))
        self.until(lambda: "NCCL_IB_DISABLE" in self.text("pre.yaml"))
        self.wait('.part.node.changed[data-part="node 1"]')
        # The keyboard is where it was before the part was chosen.
        self.until(lambda: self.driver.switch_to.active_element.get_attribute("data-part") == "node 1")
        self.click("#do-run")
        self.wait('.job[data-kind=run] .verdict.warn')
        self.assertIn("unexpected protocol", self.text('.job[data-kind=run] .verdict'))
        self.wait('.part.node.blamed[data-part="node 1"]')
        self.shot("workbench-run")
        self.click(".try-fixes")
        self.wait('.job[data-kind=fix] .fix.good')
        self.assertIn("NCCL_IB_DISABLE", self.text('.job[data-kind=fix] .fix.good'))
        self.shot("workbench-fixes")
        self.click(".fix.good button")
        self.wait('.job[data-kind=run] .verdict.good')
        self.shot("workbench-repaired")

    def test_a_report_is_made_and_shown_in_a_sandbox(self):
        id = self.server.submit("run", {"scenario": "ddp-16", "edits": [{"fault": "F21"}]})
        self.server.wait(id)
        self.open("#/run/" + id)
        self.until(lambda: "0-4, 6-15" in self.text(".view.run table"))
        self.shot("run-hang")
        self.click(".head .actions button")
        self.driver.get(self.browser.attribute('.head a[href$="report.html"]', "href"))
        self.until(lambda: "hang" in self.text("body"))
        self.assertEqual(self.driver.execute_script("return self.origin"), "null")
        self.shot("report")

    def test_the_keyboard_is_enough(self):
        self.open("#/workbench")
        gpu = self.wait('[data-part="gpu 0 3"]')
        self.driver.execute_script("arguments[0].focus()", gpu)
        gpu.send_keys(Keys.ENTER)
        self.wait(".inspector:not([hidden])")
        self.assertIn("rank 3", self.text(".inspector"))
        self.driver.switch_to.active_element.send_keys(Keys.ESCAPE)
        self.until(lambda: not self.driver.find_element(By.CSS_SELECTOR, ".inspector").is_displayed())
        self.until(lambda: self.driver.switch_to.active_element.get_attribute("data-part") == "gpu 0 3")

    def test_a_scenario_is_built_by_a_form(self):
        self.open("#/workbench?platform=dgx-h100")
        self.until(lambda: "DGX H100" in self.text("#cluster-name"))
        self.assertIn("dgx-h100", self.text("pre.yaml"))
        Select(self.driver.find_element(By.ID, "build-platform")).select_by_value("dgx-a100")
        self.until(lambda: "DGX A100" in self.text("#cluster-name"))

    def test_runs_are_listed_and_compared(self):
        first = self.server.submit("run", {"scenario": "ddp-16"}, title="as it should be")
        second = self.server.submit("run", {"scenario": "ddp-16", "edits": [{"fault": "F60:rank=3,factor=1.5"}]}, title="a slow GPU")
        self.server.wait(first), self.server.wait(second)
        self.open("#/runs")
        for id in (first, second):
            self.click(f'[data-job="{id}"] input[type=checkbox]')
        self.shot("runs")
        self.click(".head button")
        self.wait(".view.compare table")
        self.assertIn("a slow GPU", self.text(".view.compare"))
        self.shot("compare")
        clipped = self.driver.execute_script("""return [...document.querySelectorAll('svg.chart text.figure')].filter(
            (text) => text.getBoundingClientRect().right > text.ownerSVGElement.getBoundingClientRect().right + 1).map((text) => text.textContent)""")
        self.assertEqual(clipped, [])

    def test_a_job_that_ends_while_the_page_loads_is_shown_as_ended(self):
        # The first answer about jobs is kept back until the job is over: its end is told meanwhile, and once.
        hold = """const ask = window.fetch;
          window.fetch = async (address, how) => {
            const answer = await ask(address, how);
            if (window.held || !/jobs(\\?limit=50|\\/\\d+)$/.test(address)) return answer;
            window.held = await answer.clone().text();
            await new Promise((resolve) => { window.release = resolve; });
            return answer; };"""
        script = self.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": hold})["identifier"]
        try:
            for address, state in (("#/runs", '[data-job="{}"] .pill'), ("#/run/{}", ".head .pill")):
                id = self.server.submit("diagnose", {"scenario": "gpt-32", "edits": [{"fault": "F63"}]})
                self.open(address.format(id))
                held = self.until(lambda: self.browser.run("return window.held"))
                self.assertRegex(held, '"state": *"(queued|running)"')
                self.wait("#active-jobs:not([hidden])")
                self.server.ask("POST", f"/jobs/{id}/cancel", {}, expect=200)
                self.assertEqual(self.server.wait(id)["state"], "cancelled")
                self.wait("#active-jobs[hidden]")
                self.browser.run("window.release()")
                self.until(lambda: self.text(state.format(id)) == "cancelled", 10)
        finally:
            self.driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", {"identifier": script})

    def test_names_of_a_trace_stay_text(self):
        evil = "<script>window.owned = 1</script><img src=x onerror='window.owned = 1'>" + "k" * 10000
        trace = json.loads((ROOT / "tests/corpus/kineto/small.json").read_text())
        for event in trace["traceEvents"]:
            if event.get("cat") == "kernel" and "nccl" not in event["name"].lower():
                event["name"] = evil
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "<img src=x onerror=alert(1)>.json"
            file.write_text(json.dumps(trace))
            self.open("#/library/traces")
            self.wait("#files")
            self.driver.find_element(By.ID, "symmetric").click()
            self.driver.find_element(By.ID, "files").send_keys(str(file))
            self.until(lambda: "operations" in self.text(".card") or self.text(".uploads .wrong"))
        self.assertEqual(self.text(".uploads .wrong"), "")
        self.shot("library-traces")
        self.click(".card a.button")
        self.wait('[data-part="node 0"]')
        self.click("#do-run")
        self.wait(".job[data-kind=run] .verdict")
        self.shot("workbench-hostile")
        self.assertIsNone(self.driver.execute_script("return window.owned || null"))
        title = "<b onclick=alert(1)>title</b>"
        id = self.server.submit("run", {"scenario": "ddp-16"}, title=title)
        self.server.wait(id)
        self.open("#/run/" + id)
        self.until(lambda: title in self.text("h1"))

    def test_a_lab_is_started_edited_and_repaired(self):
        self.open("#/learn/L01")
        self.click("#lab-start")
        self.click("#lab-check")
        self.until(lambda: "Not repaired yet" in self.text(".verdict"))
        self.click('.files .tab[data-file="job.yaml"]')
        area = self.wait("textarea.file")
        text = area.get_attribute("value")
        self.assertIn("world_size:", text)
        lines = ["  world_size: 16" if line.startswith("  world_size:") else line for line in text.split("\n")]
        self.driver.execute_script("arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('input'))", area, "\n".join(lines))
        self.click("#lab-check")
        self.until(lambda: "Repaired" in self.text(".verdict.good"))
        # Texts of labs are Markdown, shown as what it means.
        self.assertIn("What it was", self.text(".prose h3"))
        self.assertNotIn("##", self.text(".prose"))
        self.assertTrue(self.driver.find_elements(By.CSS_SELECTOR, '.prose li a[href^="https://"][rel=noreferrer]'))
        self.shot("lab")

    def test_light_dark_and_small(self):
        self.open("#/library/faults")
        self.wait("details.card")
        self.driver.find_element(By.CSS_SELECTOR, ".search").send_keys("sockets")
        self.until(lambda: 0 < len(self.driver.find_elements(By.CSS_SELECTOR, "details.card")) < 20)
        self.open("#/library/platforms")
        self.wait("article.card")
        self.driver.find_element(By.ID, "theme").click()
        self.shot("library-dark")
        self.open("#/workbench")
        self.wait('[data-part="node 1"]')
        self.shot("workbench-dark")
        self.driver.find_element(By.ID, "theme").click()
        self.browser.size(400, 800)
        self.open("#/workbench")
        self.wait('[data-part="node 1"]')
        wide = self.driver.execute_script("return document.documentElement.scrollWidth - document.documentElement.clientWidth")
        cut = self.driver.execute_script("""return [...document.querySelectorAll('svg.cluster text')].filter((word) =>
            word.getBoundingClientRect().right > word.ownerSVGElement.getBoundingClientRect().right + 1).map((word) => word.textContent)""")
        self.shot("workbench-phone")
        self.browser.size(1440, 1100)
        self.assertLessEqual(wide, 0)
        self.assertEqual(cut, [])


if __name__ == "__main__":
    unittest.main()
