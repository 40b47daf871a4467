#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Reports in a real browser: what they say, that they can be used, that nothing in a trace becomes markup.

Usage: report_test.py PROGRAM FOLDER-FOR-SCREENSHOTS [unittest arguments]
"""
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from browser import Browser  # noqa: E402
from selenium.webdriver.common.action_chains import ActionChains  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402

PROGRAM = str(Path(sys.argv.pop(1)).resolve())
SHOTS = sys.argv.pop(1)
TIMELINE = "rehearse.pictures['timeline-0']"
CUT_OFF = """return [...document.querySelectorAll('svg text')].filter((word) => {
  const own = word.getBoundingClientRect(), frame = word.ownerSVGElement.getBoundingClientRect();
  return own.width > 0 && (own.right > frame.right + 1 || own.left < frame.left - 1); }).map((word) => word.textContent)"""
HOSTILE = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">' \" & \u202e"


def rehearse(*words, status=0):
    done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=300)
    assert done.returncode == status, f"{words}: exit code {done.returncode}: {done.stderr}"
    return done.stdout


def kernel(rank, number, name):
    """The GPU is busy all the time, so that kernels are on the critical path."""
    launch = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 100 + rank, "tid": 1,
              "ts": 100 + 6 * number, "dur": 5, "args": {"correlation": number}}
    work = {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": 1000 + 100 * number, "dur": 100,
            "args": {"device": 0, "stream": 7, "correlation": number}}
    return [launch, work]


def hostile_trace(folder):
    """Two ranks whose kernels are named by an enemy; one name has 10 kB."""
    for rank in range(2):
        events = []
        for i in range(60):
            name = HOSTILE if i % 3 == 0 else "</script>" + "x" * 10000 if i % 3 == 1 else "plain_kernel"
            events += kernel(rank, i + 1, name)
        document = {"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 2},
                    "deviceProperties": [{"id": 0, "name": "NVIDIA A100-SXM4-80GB", "totalGlobalMem": 85899345920}],
                    "traceEvents": events}
        (folder / f"rank{rank}.json").write_text(json.dumps(document))


class Reports(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = Path(cls.folder.name)
        cls.browser = Browser(SHOTS)

    @classmethod
    def tearDownClass(cls):
        cls.browser.__exit__()
        cls.folder.cleanup()

    def setUp(self):
        self.browser.size(1280, 1000)
        self.browser.look(dark=False)

    def open(self, page):
        self.browser.open(page)
        # Drawn when it is loaded: nobody has to wait for it.
        self.assertEqual(self.browser.run("return document.documentElement.dataset.ready"), "yes")

    def text(self):
        return self.browser.driver.find_element(By.TAG_NAME, "body").text

    def quiet(self):
        self.assertEqual(self.browser.console(), [])

    def test_a_slow_job_is_explained_and_can_be_explored(self):
        page = self.path / "slow.html"
        rehearse("report", "ddp-16", "--fault", "F16", "-o", str(page))
        self.open(page)
        text = self.text()
        order = [text.index(heading) for heading in ("What happened", "Why", "What to do", "Step time", "Where a step goes",
                                                     "Timeline", "Cluster", "Critical path", "Replay error", "Findings",
                                                     "Make this again")]
        self.assertEqual(order, sorted(order))
        self.assertIn("NCCL_IB_DISABLE", text)
        self.assertIn("rehearse run ddp-16 --fault F16 --json", text)
        self.browser.shot("slow-light")
        run = self.browser.run

        # Zoom by buttons, keys and wheel; the view gets smaller and stays inside the run.
        whole = run(f"return {TIMELINE}.view()")
        self.browser.driver.find_element(By.CSS_SELECTOR, "#timeline-0 button[title='Zoom in']").click()
        closer = run(f"return {TIMELINE}.view()")
        self.assertLess(closer[1] - closer[0], 0.6 * (whole[1] - whole[0]))
        canvas = self.browser.driver.find_element(By.CSS_SELECTOR, "#timeline-0 canvas")
        canvas.send_keys("+", "+", Keys.ARROW_RIGHT)
        moved = run(f"return {TIMELINE}.view()")
        self.assertLess(moved[1] - moved[0], 0.3 * (closer[1] - closer[0]))
        self.assertGreaterEqual(moved[0], 0)
        canvas.send_keys("0")
        self.assertAlmostEqual(run(f"return {TIMELINE}.view()")[1], whole[1], delta=1)

        # Search finds calls, steps through them and selects.
        box = self.browser.driver.find_element(By.CSS_SELECTOR, "#timeline-0 input[type=search]")
        box.send_keys("all_reduce")
        matches = run(f"return {TIMELINE}.matches()")
        self.assertGreater(matches, 16)
        box.send_keys(Keys.ENTER)
        chosen = run(f"return {TIMELINE}.chosen()")
        self.assertIn("call", dict(chosen["rows"]))
        self.assertIn("1 of", self.browser.driver.find_element(By.CSS_SELECTOR, "#timeline-0 [role=status]").text)
        self.browser.run("document.querySelector('#timeline-0').scrollIntoView()")
        self.browser.shot("timeline-selected", whole=False)
        box.clear()

        # A click selects what is under it; Escape lets go.
        canvas.send_keys("0")
        ActionChains(self.browser.driver).move_to_element(canvas).click().perform()
        canvas.send_keys(Keys.ESCAPE)
        self.assertIsNone(run(f"return {TIMELINE}.chosen()"))
        canvas.send_keys(Keys.SHIFT + Keys.ARROW_RIGHT)
        self.assertIsNotNone(run(f"return {TIMELINE}.chosen()"))

        # The cluster at a time; every GPU and NIC can be reached.
        self.assertGreaterEqual(run("return rehearse.pictures['cluster-0'].parts()"), 2 * (1 + 8 + 8))
        run("rehearse.pictures['cluster-0'].goTo(5)")
        self.assertIn("–", self.browser.driver.find_element(By.CSS_SELECTOR, "#cluster-0 .bar-tools .note").text)
        self.assertTrue(self.browser.driver.find_elements(By.CSS_SELECTOR, "#cluster-0 .culprit"))

        # On paper the timeline follows its frame instead of the pixels it was drawn with: nothing is cut off.
        self.browser.media("print")
        self.assertLess(run("const c = document.querySelector('#timeline-0 canvas'); c.parentElement.style.width = '600px';"
                            "const wide = c.getBoundingClientRect().width; c.parentElement.style.width = ''; return wide"), 601)
        self.browser.media("")
        # Pictures are drawn anew for a sheet, and again for the screen.
        picture = "document.querySelector('#steps-0 svg')"
        of = f"{picture}.viewBox.baseVal.width"
        fits = f"{of} === Math.floor({picture}.parentElement.getBoundingClientRect().width)"
        self.browser.wait_for(fits, "the picture as wide as its place on the screen")
        screen = run(f"return {of}")
        sheet = run(f"dispatchEvent(new Event('beforeprint')); const wide = {of}; dispatchEvent(new Event('afterprint')); return wide")
        self.assertLess(sheet, 800)
        self.assertEqual(run(f"return {of}"), screen)

        self.browser.look(dark=True)
        self.browser.wait_for("getComputedStyle(document.body).backgroundColor !== 'rgb(255, 255, 255)'", "dark")
        self.browser.shot("slow-dark")
        # Paper is white also for those who read in the dark, and words of the timeline have the size they have on the screen.
        paper = run("dispatchEvent(new Event('beforeprint')); const canvas = document.querySelector('#timeline-0 canvas');"
                    "const seen = [getComputedStyle(document.body).backgroundColor, canvas.style.width];"
                    "dispatchEvent(new Event('afterprint')); return [...seen, getComputedStyle(document.body).backgroundColor, canvas.style.width]")
        self.assertEqual(paper[:2], ["rgb(255, 255, 255)", "720px"])
        self.assertNotEqual(paper[2], "rgb(255, 255, 255)")
        self.assertNotEqual(paper[3], "720px")
        self.browser.size(390, 844)
        self.browser.look(dark=False)
        self.open(page)
        wide = run("return document.documentElement.scrollWidth")
        self.assertLessEqual(wide, 390, "the page is wider than a phone")
        # Rows of tables are blocks of named lines: nothing has to be scrolled sideways.
        self.assertEqual(run("return [...document.querySelectorAll('.scroll')].filter((box) => box.scrollWidth > box.clientWidth + 1).length"), 0)
        self.assertEqual(run("return getComputedStyle(document.querySelector('.fixes td:nth-child(3)'), '::before').content"), '"recovered"')
        self.browser.shot("slow-phone")
        self.quiet()

    def test_a_hang_shows_who_waits_for_whom(self):
        page = self.path / "hang.html"
        rehearse("report", "ddp-16", "--fault", "F21:rank=11,nth=7", "-o", str(page))
        self.open(page)
        text = self.text()
        self.assertIn("hang", text)
        self.assertIn("Watchdog caught collective operation timeout", text)
        labels = [node.text for node in self.browser.driver.find_elements(By.CSS_SELECTOR, "#waiting-0 .part text")]
        self.assertTrue(any("rank 11" in label for label in labels), labels)
        self.assertTrue(self.browser.driver.find_elements(By.CSS_SELECTOR, "#waiting-0 .culprit"))
        self.browser.shot("hang-light")
        self.browser.look(dark=True)
        self.browser.shot("hang-dark")
        # On a phone no word of a picture is cut off.
        self.browser.size(390, 844)
        self.open(page)
        self.assertEqual(self.browser.run(CUT_OFF), [])
        self.browser.shot("hang-phone")
        self.quiet()

    def test_a_thousand_ranks_fit_into_3_megabytes_and_stay_quick(self):
        trace, outcome, page = (self.path / name for name in ("big.rtrace", "big.json", "big.html"))
        rehearse("synth", "gpt", "--layers", "2", "--hidden", "1024", "--dp", "128", "--tp", "8", "--steps", "1", "-o", str(trace))
        rehearse("run", str(trace), "--patch", "slow-rank: {rank: 700, slowdown: 1.5}", "--json", "-o", str(outcome))
        self.assertEqual(json.loads(outcome.read_text())["ranks"], 1024)
        rehearse("report", str(outcome), "-o", str(page))
        size = page.stat().st_size
        self.assertLess(size, 3 << 20)
        self.open(page)
        ready = self.browser.run("return rehearse.ready")
        run = self.browser.run
        self.assertEqual(run(f"return {TIMELINE}.ranks"), 1024)
        slowest = 0
        for depth in range(1, 12):
            slowest = max(slowest, run(
                f"const t = {TIMELINE}; return t.show(t.end * 0.4, t.end * 0.4 + t.end / {2 ** depth})"))
        print(f"1,024 ranks: {size / 1e6:.2f} MB, ready after {ready:.0f} ms, slowest of 11 zooms {slowest:.1f} ms (target 100 ms)")
        # What is drawn is bounded by the screen.
        run("document.querySelectorAll('#timeline-0 input[type=checkbox]').forEach((box) => { if (!box.checked) box.click(); })")
        drawn = run(f"const t = {TIMELINE}; t.show(0, t.end); t.drawNow(); return [t.rows(), t.drawn, t.ms]")
        print(f"all {drawn[0]} rows: {drawn[1]} boxes in {drawn[2]:.1f} ms")
        self.assertLess(drawn[1], 640 / 13 * 1280)
        self.assertGreater(drawn[0], 2048)
        run(f"{TIMELINE}.show(0, {TIMELINE}.end)")
        # Every rank has its cell, lines begin with their first rank, and the slow one is outlined.
        self.assertEqual(run("return document.querySelectorAll('#breakdown-0 .heat rect').length"), 1024)
        self.assertEqual(run("return document.querySelectorAll('#breakdown-0 .culprit').length"), 1)
        self.assertEqual(run(CUT_OFF), [])
        self.browser.shot("thousand-light")
        self.quiet()

    def test_names_of_an_enemy_stay_text(self):
        folder = self.path / "hostile"
        folder.mkdir()
        hostile_trace(folder)
        trace, outcome, page = (self.path / name for name in ("hostile.rtrace", "hostile.json", "hostile.html"))
        rehearse("import", str(folder), "-o", str(trace))
        rehearse("run", str(trace), "--json", "-o", str(outcome))
        rehearse("report", str(outcome), "-o", str(page))
        source = page.read_text()
        self.assertNotIn("document.title='owned'</script>", source)
        self.assertNotIn("onerror=\"", source)
        self.assertLess(page.stat().st_size, 1 << 20)
        self.open(page)
        self.assertEqual(self.browser.driver.title, "hostile")
        self.assertIn("<script>", self.text())
        box = self.browser.driver.find_element(By.CSS_SELECTOR, "#timeline-0 input[type=search]")
        box.send_keys("<script>", Keys.ENTER)
        self.assertGreater(self.browser.run(f"return {TIMELINE}.matches()"), 0)
        self.assertIn("<script>", self.browser.driver.find_element(By.CSS_SELECTOR, "#timeline-0 .chosen").text)
        self.assertEqual(self.browser.run("return document.querySelectorAll('.chosen script, .chosen img, .tip img').length"), 0)
        self.browser.shot("hostile")
        self.quiet()

    def test_runs_side_by_side(self):
        outcomes = []
        for name, words in (("healthy", []), ("slow", ["--fault", "F16"]), ("straggler", ["--patch", "slow-rank: {rank: 6, slowdown: 2}"])):
            outcomes.append(str(self.path / f"{name}.json"))
            rehearse("run", "ddp-16", *words, "--json", "-o", outcomes[-1])
        page = self.path / "compared.html"
        rehearse("report", *outcomes, "-o", str(page))
        self.open(page)
        rows = self.browser.driver.find_elements(By.CSS_SELECTOR, ".comparison tbody tr")
        self.assertEqual([row.text.split()[0] for row in rows], ["healthy", "slow", "straggler"])
        self.assertEqual(len(self.browser.driver.find_elements(By.CSS_SELECTOR, "#compare-3 g.row")), 3)
        # One run is shown at a time; the table leads to the others.
        self.assertIn("rehearse diagnose ddp-16 --fault F16 --json", self.text())
        self.assertEqual(len(self.browser.driver.find_elements(By.CSS_SELECTOR, "article.run:not([hidden])")), 1)
        self.browser.shot("compared")
        rows[2].find_element(By.TAG_NAME, "a").click()
        self.browser.wait_for("!document.getElementById('run-2').hidden", "the third run")
        self.browser.wait_for("document.querySelector('#timeline-2 canvas').clientWidth > 900", "its timeline")
        self.assertIn("slow-rank", self.text())
        self.quiet()

    def test_a_study_is_drawn(self):
        study = self.path / "study.yaml"
        study.write_text("base: ddp-16\naxes:\n  - zip:\n      - {name: machine, written: platform, values: ['{like: dgx-a100, scale: 1}', '{like: dgx-a100, scale: 2}']}\n"
                         "      - {name: dp, written: trace.synth.dp, values: [8, 16]}\n"
                         "  - {name: bucket, written: trace.synth.bucket, values: [4MiB, 100MiB]}\nobjective: {minimise: gpu_time_ns}\n")
        summary = self.path / "summary.json"
        summary.write_text(rehearse("sweep", str(study), "-o", str(self.path / "swept"), "--json"))
        page = self.path / "study.html"
        rehearse("report", str(summary), "-o", str(page))
        self.open(page)
        count = lambda place: len(self.browser.driver.find_elements(By.CSS_SELECTOR, f"#study-{place}-0 g.row"))
        self.assertEqual(count("best"), 4)
        self.assertEqual(count("means"), 2 + 2)
        self.assertGreaterEqual(count("shares"), 2)
        front = len(json.loads(summary.read_text())["pareto"])
        shown = self.browser.driver.find_elements(By.CSS_SELECTOR, "#study-front-0:not([hidden]) circle")
        self.assertEqual(len(shown), 4 + front if front > 1 else 0)
        self.browser.shot("study")
        self.quiet()


if __name__ == "__main__":
    unittest.main(verbosity=2)
