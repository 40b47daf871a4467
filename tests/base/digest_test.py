# SPDX-License-Identifier: Apache-2.0
"""base/cmake/digest.cmake: what changes the digest of some sources, and what does not."""
import pathlib, subprocess, sys, tempfile, unittest

CMAKE, SCRIPT = sys.argv.pop(1), sys.argv.pop(1)


class Digest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.at = pathlib.Path(self.folder.name)

    def tree(self, name):
        root = self.at / name
        (root / "room" / "inner").mkdir(parents=True)
        (root / "room" / "a.cpp").write_text("int a;\n")
        (root / "room" / "inner" / "b.yaml").write_text("b: 1\n")
        (root / "other").mkdir()
        (root / "other" / "c.cpp").write_text("int c;\n")
        return root

    def digest(self, root):
        out = self.at / "out.cpp"
        subprocess.run([CMAKE, f"-DROOT={root}", f"-DOUT={out}", "-DFUNCTION=f", "-DFOLDERS=room", "-P", SCRIPT], check=True)
        self.assertIn(str(root / "room" / "a.cpp"), pathlib.Path(f"{out}.d").read_text())
        return out.read_text()

    def test_the_same_sources_anywhere_have_the_same_digest(self):
        here = self.tree("here")
        self.assertEqual(self.digest(here), self.digest(self.tree("there")))
        (here / "other" / "c.cpp").write_text("long c;\n")
        (here / "room" / "notes.txt").write_text("nothing that is compiled\n")
        self.assertEqual(self.digest(here), self.digest(self.at / "there"))

    def test_another_source_name_or_file_is_another_digest(self):
        seen = {self.digest(self.tree("plain"))}
        changed = self.tree("changed")
        (changed / "room" / "inner" / "b.yaml").write_text("b: 2\n")
        seen.add(self.digest(changed))
        renamed = self.tree("renamed")
        (renamed / "room" / "a.cpp").rename(renamed / "room" / "z.cpp")
        (renamed / "room" / "a.cpp").write_text("")
        seen.add(self.digest(renamed))
        more = self.tree("more")
        (more / "room" / "new.hpp").write_text("")
        seen.add(self.digest(more))
        self.assertEqual(len(seen), 4)


if __name__ == "__main__":
    unittest.main()
