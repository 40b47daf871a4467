#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The software bill of materials of rehearse as an SPDX 2.3 document (JSON) on stdout: every package of
base/packages.txt with the version that is installed here, and what it is to rehearse.

Usage: base/sbom.py, or ./dev sbom. SOURCE_DATE_EPOCH sets the time of creation (default: that of the last commit).
"""
import datetime
import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# What the packages of a group are to rehearse.
RELATION = {"test": "TEST_DEPENDENCY_OF", "lint": "DEV_TOOL_OF", "slow": "TEST_DEPENDENCY_OF"}
BUILD_TOOLS = {"g++", "cmake", "ninja-build", "pkg-config", "protobuf-compiler"}


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False).stdout


def listed():
    """(group, package, what for) of base/packages.txt."""
    for line in (ROOT / "base/packages.txt").read_text().splitlines():
        words, _, what = line.partition("#")
        if len(words.split()) == 2:
            yield (*words.split(), what.strip())


def installed(names):
    """{package: (version, architecture, source package)} of those that are installed."""
    form = "${Package}\t${Version}\t${Architecture}\t${source:Package}\t${db:Status-Status}\n"
    rows = (line.split("\t") for line in output("dpkg-query", "-W", "-f", form, *names).splitlines())
    return {name: (version, arch, source) for name, version, arch, source, state in rows if state == "installed"}


def created():
    epoch = os.environ.get("SOURCE_DATE_EPOCH") or output("git", "log", "-1", "--format=%ct").strip() or "0"
    return datetime.datetime.fromtimestamp(int(epoch), datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def identifier(name):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", lambda c: f"-{ord(c[0]):x}-", name)


def package(name, what, found):
    entry = {"SPDXID": identifier(name), "name": name, "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
             "licenseConcluded": "NOASSERTION", "licenseDeclared": "NOASSERTION", "copyrightText": "NOASSERTION",
             "supplier": "Organization: Debian"}
    if what:
        entry["summary"] = what
    if found:
        version, arch, source = found
        entry["versionInfo"] = version
        entry["sourceInfo"] = f"Debian source package {source}"
        entry["externalRefs"] = [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                                  "referenceLocator": f"pkg:deb/debian/{name.replace('+', '%2B')}@{version}?arch={arch}"}]
    return entry


def document():
    rows = list(listed())
    found = installed([name for _, name, _ in rows])
    version = re.search(r"project\(rehearse VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())[1]
    commit = output("git", "rev-parse", "HEAD").strip() or "unknown"
    own = {"SPDXID": "SPDXRef-rehearse", "name": "rehearse", "versionInfo": version, "filesAnalyzed": False,
           "downloadLocation": "NOASSERTION", "licenseConcluded": "Apache-2.0", "licenseDeclared": "Apache-2.0",
           "copyrightText": "NOASSERTION", "supplier": "NOASSERTION"}
    relations = [("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-rehearse")]
    for group, name, _ in rows:
        if group == "run" and name not in BUILD_TOOLS:
            relations.append(("SPDXRef-rehearse", "DEPENDS_ON", identifier(name)))
        else:
            relations.append((identifier(name), RELATION.get(group, "BUILD_TOOL_OF"), "SPDXRef-rehearse"))
    return {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
            "name": f"rehearse-{version}",
            "documentNamespace": f"https://spdx.org/spdxdocs/rehearse-{version}-{commit}",
            "creationInfo": {"created": created(), "creators": ["Tool: rehearse-sbom"]},
            "packages": [own] + [package(name, what, found.get(name)) for _, name, what in rows],
            "relationships": [{"spdxElementId": a, "relationshipType": how, "relatedSpdxElement": b}
                              for a, how, b in relations]}


if __name__ == "__main__":
    json.dump(document(), sys.stdout, indent=2)
    print()
