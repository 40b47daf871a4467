# SPDX-License-Identifier: Apache-2.0
"""Headless Chromium for tests: no network, console errors are failures, screenshots are kept."""
import base64
import os
import tempfile
import time
from pathlib import Path

from selenium import webdriver
from selenium.common.exceptions import (ElementClickInterceptedException, ElementNotInteractableException, NoSuchElementException,
                                        StaleElementReferenceException)
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By

SWITCHES = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--hide-scrollbars")
# What a page that draws itself anew does to an element between its being found and its being used.
PASSING = (NoSuchElementException, StaleElementReferenceException, ElementClickInterceptedException, ElementNotInteractableException)


class Browser:
    """with Browser(folder) as browser: browser.open(path); browser.shot("name")"""

    def __init__(self, shots, width=1280, height=1000, dark=False):
        self.shots = Path(shots)
        self.shots.mkdir(parents=True, exist_ok=True)
        self.profile = tempfile.TemporaryDirectory()
        options = Options()
        options.binary_location = "/usr/bin/chromium"
        for switch in SWITCHES:
            options.add_argument(switch)
        options.add_argument(f"--user-data-dir={self.profile.name}")
        options.add_argument(f"--window-size={width},{height}")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(service=Service("/usr/bin/chromedriver", log_path=os.devnull), options=options)
        self.driver.set_script_timeout(60)
        self.look(dark)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.driver.quit()
        self.profile.cleanup()

    def look(self, dark):
        """Nothing moves by itself: what is clicked stays where it was found."""
        self.features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
                         {"name": "prefers-reduced-motion", "value": "reduce"}]
        self.media("")

    def media(self, kind):
        """"print" or "" for the screen."""
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": kind, "features": self.features})

    def size(self, width, height):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600})

    def open(self, path):
        self.driver.get(Path(path).resolve().as_uri())

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def wait_for(self, condition, what, seconds=30):
        end = time.monotonic() + seconds
        while not self.run(f"return Boolean({condition})"):
            assert time.monotonic() < end, f"{what} did not come within {seconds} s: {self.console()}"
            time.sleep(0.02)

    def until(self, attempt, what, seconds=90):
        """The first true answer of `attempt`; an element that was drawn anew meanwhile is looked for again."""
        end = time.monotonic() + seconds
        while True:
            try:
                if answer := attempt():
                    return answer
                why = "it is not so"
            except PASSING as error:
                why = str(error)
            assert time.monotonic() < end, f"{what} did not come within {seconds} s: {why}; {self.console()}"
            time.sleep(0.02)

    def find(self, css, seconds=90):
        return self.until(lambda: self.driver.find_element(By.CSS_SELECTOR, css), css, seconds)

    def click(self, css, seconds=90):
        """The first element that fits, as soon as it is there and nothing covers it."""
        def attempt():
            element = self.driver.find_element(By.CSS_SELECTOR, css)
            self.run("arguments[0].scrollIntoView({block: 'center'})", element)
            element.click()
            return True
        self.until(attempt, f"a click on {css}", seconds)

    def text(self, css):
        """Of all elements that fit, as they are seen at one moment."""
        return self.run("return [...document.querySelectorAll(arguments[0])].map((e) => e.innerText).join(' ')", css)

    def attribute(self, css, name):
        return self.until(lambda: self.driver.find_element(By.CSS_SELECTOR, css).get_attribute(name), f"{name} of {css}")

    def console(self):
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]

    def shot(self, name, whole=True):
        """The whole page, or what is seen of it."""
        parameters = {"format": "png"}
        if whole:
            size = self.driver.execute_cdp_cmd("Page.getLayoutMetrics", {})["cssContentSize"]
            parameters |= {"captureBeyondViewport": True,
                           "clip": {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 16000), "scale": 1}}
        data = self.driver.execute_cdp_cmd("Page.captureScreenshot", parameters)["data"]
        (self.shots / f"{name}.png").write_bytes(base64.b64decode(data))
