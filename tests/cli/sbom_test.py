#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The bill of materials names every package of base/packages.txt once, in SPDX's form, the same in every run.

Usage: sbom_test.py PROJECT
"""
import json
import re
import subprocess
import sys
import unittest
from pathlib import Path

PROJECT = Path(sys.argv.pop(1)).resolve()


def sbom():
    return subprocess.run([PROJECT / "base/sbom.py"], capture_output=True, check=True).stdout


class Sbom(unittest.TestCase):
    def test_every_package_is_there_once_with_its_version(self):
        document = json.loads(sbom())
        names = [p["name"] for p in document["packages"]]
        listed = [line.split()[1] for line in (PROJECT / "base/packages.txt").read_text().splitlines()
                  if line.strip() and not line.startswith("#")]
        self.assertEqual(sorted(names), sorted(["rehearse", *listed]))
        missing = [p["name"] for p in document["packages"] if "versionInfo" not in p]
        installed = subprocess.run(["dpkg-query", "-W", *missing], capture_output=True, text=True).stdout if missing else ""
        self.assertEqual(re.findall(r"^\S+\t\S", installed, re.M), [])

    def test_it_has_what_spdx_asks_for(self):
        document = json.loads(sbom())
        self.assertEqual(document["spdxVersion"], "SPDX-2.3")
        ids = [p["SPDXID"] for p in document["packages"]]
        self.assertEqual(len(ids), len(set(ids)))
        for entry in document["packages"]:
            self.assertRegex(entry["SPDXID"], r"^SPDXRef-[A-Za-z0-9.-]+$")
            self.assertIn("downloadLocation", entry)
        known = {*ids, "SPDXRef-DOCUMENT"}
        related = set()
        for relation in document["relationships"]:
            self.assertLessEqual({relation["spdxElementId"], relation["relatedSpdxElement"]}, known)
            related |= {relation["spdxElementId"], relation["relatedSpdxElement"]}
        self.assertEqual(related, known)

    def test_twice_gives_the_same_bytes(self):
        self.assertEqual(sbom(), sbom())


if __name__ == "__main__":
    unittest.main()
