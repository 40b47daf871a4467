#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The contract of the command line: exit codes, errors, --json, -o, colour, silence in a pipe.

Usage: command_line_test.py PROGRAM [unittest arguments]
"""
import fcntl
import json
import os
import pty
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import unittest
from pathlib import Path

PROGRAM = str(Path(sys.argv.pop(1)).resolve()) if len(sys.argv) > 1 else "rehearse"
ROOT = Path(__file__).resolve().parents[2]


def rehearse(*words, **options):
    environment = {**os.environ, **options.pop("env", {})}
    return subprocess.run([PROGRAM, *words], capture_output=True, text=True, env=environment, timeout=120,
                          **options)


def on_terminal(*words, env=None, columns=0):
    """Runs with stdout and stderr on a pseudo-terminal; returns what was written there."""
    master, slave = pty.openpty()
    if columns:
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    process = subprocess.Popen([PROGRAM, *words], stdout=slave, stderr=slave, stdin=subprocess.DEVNULL,
                               env={**os.environ, "TERM": "xterm", **(env or {})})
    os.close(slave)
    text = b""
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:
            break
        if not part:
            break
        text += part
    process.wait(timeout=120)
    os.close(master)
    return text.decode()


def verbs():
    return [verb["name"] for verb in json.loads(rehearse("help", "--json").stdout)["verbs"]]


class Tables(unittest.TestCase):
    def test_a_narrow_terminal_wraps_text_and_a_pipe_nothing(self):
        narrow = on_terminal("run", "--list", "--color=never", columns=52).replace("\r", "").splitlines()
        self.assertLessEqual(max(map(len, narrow)), 52)
        whole = rehearse("run", "--list").stdout.splitlines()
        self.assertGreater(max(map(len, whole)), 52)
        self.assertEqual(" ".join(" ".join(narrow).split()).count("ddp-16"), 1)

    def test_a_run_its_causes_and_fixes_fit_a_narrow_terminal(self):
        for words in (("run", "ddp-16", "--fault", "F16"), ("run", "dlrm-8", "--fault", "F21"), ("diagnose", "dlrm-8", "--fault", "F21"),
                      ("fix", "dlrm-8", "--fault", "F21", "--draws", "0")):
            lines = on_terminal(*words, "--color=never", "--quiet", columns=60).replace("\r", "").splitlines()
            # A word that is longer than the terminal stays whole.
            wide = [line for line in lines if len(line) > 60 and " " in line.strip()]
            self.assertEqual(wide, [], words)

    def test_the_first_line_of_a_run_is_its_verdict_and_steps_are_blocks(self):
        lines = rehearse("run", "ddp-16", "--patch", "steps: 2").stdout.splitlines()
        self.assertRegex(lines[0], r"^ddp-16: completed, step time ")
        self.assertTrue(any(line.startswith("  steps") and "█" in line for line in lines), lines[:6])


class Errors(unittest.TestCase):
    def test_no_verb_is_a_usage_error_that_shows_the_overview(self):
        done = rehearse()
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stdout, "")
        self.assertIn("usage:", done.stderr)

    def test_an_unknown_verb_names_the_nearest(self):
        done = rehearse("hlep")
        self.assertEqual(done.returncode, 2)
        self.assertIn("unknown verb 'hlep'", done.stderr)
        self.assertIn("fix: did you mean help?", done.stderr)

    def test_an_unknown_option_names_the_nearest_on_every_verb(self):
        for verb in verbs():
            done = rehearse(verb, "--jsn")
            self.assertEqual(done.returncode, 2, verb)
            self.assertEqual(done.stdout, "", verb)
            self.assertIn("did you mean --json?", done.stderr, verb)

    def test_an_option_is_not_guessed_from_its_beginning(self):
        self.assertEqual(rehearse("help", "--exampl").returncode, 2)

    def test_an_option_before_the_verb_is_refused(self):
        self.assertEqual(rehearse("--json", "help").returncode, 2)

    def test_too_many_and_too_few_arguments_are_usage_errors(self):
        self.assertIn("SHELL is missing", rehearse("completion").stderr)
        self.assertIn("one argument too many", rehearse("completion", "bash", "zsh").stderr)
        self.assertIn("did you mean fish?", rehearse("completion", "fihs").stderr)
        for words in (["run", "--list", "ddp-16"], ["platforms", "list", "dgx-a100"],
                      ["diagnose", "ddp-16", "--scenario", "ddp-16"]):
            self.assertEqual(rehearse(*words).returncode, 2, words)

    def test_a_generated_horovod_job_is_packed_as_it_is_told(self):
        def step(*words):
            done = rehearse("run", "horovod-16", *words, "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            return json.loads(done.stdout)["step_time_ns"]["mean"]
        self.assertGreater(step("--set", "launch.ranks[*].env.HOROVOD_FUSION_THRESHOLD=0"), step() * 1.01)

    def test_print_config_tells_where_each_setting_comes_from(self):
        done = rehearse("run", "ddp-16", "--expect", "hang", "--print-config", "--json",
                        env={"REHEARSE_CACHE": "elsewhere"})
        self.assertEqual(done.returncode, 0, done.stderr)
        document = json.loads(done.stdout)
        self.assertEqual(document["schema"], "rehearse.config/1")
        origin = {s["name"]: (s["value"], s["origin"]) for s in document["settings"]}
        self.assertEqual(origin["--expect"], ("hang", "command line"))
        self.assertEqual(origin["--color"], ("auto", "default"))
        self.assertEqual(origin["REHEARSE_CACHE"], ("elsewhere", "environment"))

    def test_json_gives_an_error_document(self):
        done = rehearse("completion", "tcsh", "--json")
        self.assertEqual(done.returncode, 2)
        document = json.loads(done.stdout)
        self.assertEqual(list(document), ["schema", "error"])
        self.assertEqual(document["schema"], "rehearse.error/1")
        self.assertEqual(list(document["error"]), ["code", "what", "where", "fix"])
        self.assertEqual(document["error"]["code"], "usage")
        self.assertTrue(done.stderr.startswith("rehearse: completion: "))

    def test_a_wrong_colour_is_refused(self):
        self.assertEqual(rehearse("help", "--color", "sometimes").returncode, 2)

    def test_control_characters_do_not_reach_the_terminal(self):
        done = rehearse("inspect", "a\033[31mb.rtrace")
        self.assertEqual(done.returncode, 66)
        self.assertNotIn("\033", done.stderr)

    def test_a_full_disk_is_an_io_error(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([PROGRAM, "man"], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 74)
        self.assertIn("stdout: cannot write", done.stderr)

    def test_a_reader_that_goes_away_is_no_error(self):
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run([PROGRAM, "man"], stdout=writer, stderr=subprocess.PIPE)
        os.close(writer)
        self.assertEqual(done.returncode, -signal.SIGPIPE)
        self.assertEqual(done.stderr, b"")


class Output(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.file = Path(self.folder.name) / "out"

    def tearDown(self):
        self.folder.cleanup()

    def test_a_file_is_written_whole_and_nothing_else_is_left(self):
        self.assertEqual(rehearse("man", "-o", str(self.file)).returncode, 0)
        self.assertEqual(self.file.read_text(), rehearse("man").stdout)
        self.assertEqual(os.listdir(self.folder.name), ["out"])

    def test_a_file_is_not_overwritten_without_force(self):
        self.file.write_text("mine")
        done = rehearse("man", "-o", str(self.file))
        self.assertEqual(done.returncode, 2)
        self.assertIn("--force", done.stderr)
        self.assertEqual(self.file.read_text(), "mine")
        self.assertEqual(rehearse("man", "-o", str(self.file), "--force").returncode, 0)
        self.assertNotEqual(self.file.read_text(), "mine")

    def test_a_folder_that_does_not_exist_is_an_io_error(self):
        done = rehearse("man", "-o", self.folder.name + "/no/such/file")
        self.assertEqual(done.returncode, 74)
        self.assertIn("create the folder first", done.stderr)


class Repairs(unittest.TestCase):
    def test_files_of_nodes_with_one_name_are_repaired_apart(self):
        with tempfile.TemporaryDirectory() as at:
            cluster, repaired = Path(at) / "cluster", Path(at) / "repaired"
            for node in ("a", "b"):
                (cluster / node).mkdir(parents=True)
                (cluster / node / "env").write_text(
                    f"HOSTNAME={node}\nPATH=/bin\nHOME=/root\nNCCL_IB_TIMOUT=22\n")
            self.assertEqual(rehearse("check", str(cluster), "--apply", str(repaired)).returncode, 1)
            for node in ("a", "b"):
                text = (repaired / node / "env").read_text()
                self.assertIn(f"HOSTNAME={node}\n", text)
                self.assertIn("NCCL_IB_TIMEOUT=22\n", text)


class Text(unittest.TestCase):
    def test_version(self):
        self.assertRegex(rehearse("--version").stdout, r"^rehearse \d+\.\d+\.\d+\n$")

    def test_every_verb_has_help_with_an_example(self):
        for verb in verbs():
            done = rehearse(verb, "--help")
            self.assertEqual(done.returncode, 0, verb)
            self.assertIn("examples:\n  # ", done.stdout)
            self.assertIn("./rehearse " + verb, done.stdout)
            self.assertEqual(done.stdout, rehearse("help", verb).stdout)

    def test_help_in_a_pipe_has_no_colour_and_fits_a_page(self):
        for verb in verbs():
            text = rehearse(verb, "--help").stdout
            self.assertNotIn("\033", text)

    def test_a_terminal_gets_colour_unless_NO_COLOR_is_set(self):
        self.assertIn("\033[1m", on_terminal("help", "man", env={"NO_COLOR": ""}))
        self.assertNotIn("\033", on_terminal("help", "man", env={"NO_COLOR": "1"}))
        self.assertNotIn("\033", on_terminal("help", "man", "--color", "never", env={"NO_COLOR": ""}))

    def test_colour_can_be_forced_into_a_pipe(self):
        done = rehearse("help", "man", "--color", "always", env={"NO_COLOR": "1"})
        self.assertIn("\033[1m", done.stdout)

    def test_completion_knows_every_verb_and_option(self):
        table = json.loads(rehearse("help", "--json").stdout)
        for shell in ("bash", "zsh", "fish"):
            script = rehearse("completion", shell).stdout
            for verb in table["verbs"]:
                self.assertIn(verb["name"], script)
                for option in verb["options"]:
                    name = option["name"][2:]
                    self.assertIn("-l " + name if shell == "fish" else "--" + name, script)

    def test_bash_completes_verbs_options_and_words(self):
        def complete(*words):
            script = ('source <("$0" completion bash); COMP_WORDS=(rehearse "$@"); '
                      'COMP_CWORD=$#; _rehearse; printf "%s\\n" "${COMPREPLY[@]}"')
            done = subprocess.run(["bash", "-c", script, PROGRAM, *words], capture_output=True, text=True,
                                  cwd="/proc/self/task")
            self.assertEqual(done.stderr, "")
            return done.stdout.split()
        self.assertEqual(complete("compl"), ["completion"])
        self.assertEqual(complete("man", "--for"), ["--force"])
        self.assertEqual(complete("completion", "zs"), ["zsh"])

    def test_the_man_page_names_every_verb_option_and_exit_code(self):
        page = rehearse("man").stdout.replace("\\-", "-")
        for verb in json.loads(rehearse("help", "--json").stdout)["verbs"]:
            self.assertIn(".SS rehearse " + verb["name"], page)
            for option in verb["options"]:
                self.assertIn("\\fB" + option["name"], page)
        for code in (0, 1, 2, 65, 66, 70, 74, 75, 130):
            self.assertIn(f"\n.B {code}\n", page)


class Platforms(unittest.TestCase):
    def test_the_catalogue_is_listed_for_people_and_programs(self):
        document = json.loads(rehearse("platforms", "--json").stdout)
        self.assertEqual(list(document), ["schema", "platforms"])
        self.assertEqual(document["schema"], "rehearse.platforms/1")
        text = rehearse("platforms", "list").stdout
        for platform in document["platforms"]:
            self.assertTrue(platform["id"] and platform["name"] and platform["description"])
            self.assertIn("\n" + platform["id"] + " ", text)

    def test_a_platform_is_shown_with_as_many_nodes_as_asked(self):
        shown = json.loads(rehearse("platforms", "show", "dgx-a100", "--nodes", "3", "--json").stdout)
        self.assertEqual(shown["schema"], "rehearse.platform/1")
        self.assertEqual(len(shown["platform"]["nodes"]), 3)

    def test_a_machine_is_read_from_the_traces_of_its_ranks_as_a_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            for rank in range(2):
                (Path(folder) / f"rank{rank}.json").write_text(json.dumps({
                    "schemaVersion": 1, "distributedInfo": {"rank": rank, "world_size": 2},
                    "deviceProperties": [{"id": rank, "name": "NVIDIA H200", "totalGlobalMem": 150121545728,
                                          "computeMajor": 9, "computeMinor": 0, "numSms": 132}],
                    "traceEvents": [{"ph": "X", "cat": "kernel", "name": "gemm", "pid": rank, "tid": 7, "ts": 10.0,
                                     "dur": 5.0, "args": {"device": rank, "stream": 7, "correlation": 1}}]}))
            done = rehearse("platforms", "import", folder)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertIn("h200", done.stdout)

    def test_a_platform_without_a_description_has_no_line_for_it(self):
        with tempfile.TemporaryDirectory() as folder:
            machine = Path(folder) / "one.yaml"
            machine.write_text("name: mine\nnodes: {numa: [{cores: 8}], gpus: {like: h100-sxm5, count: 2}}\n")
            done = rehearse("platforms", "show", str(machine))
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertTrue(done.stdout.startswith("mine: 1 node"), done.stdout[:80])

    def test_an_unknown_platform_names_the_nearest(self):
        done = rehearse("platforms", "show", "dgx-a10")
        self.assertEqual(done.returncode, 66)
        self.assertIn("dgx-a100", done.stderr)
        self.assertEqual(rehearse("platforms", "show").returncode, 2)
        for nodes in ("-1", "0", "2.5", "99999999", "many", ""):
            self.assertEqual(rehearse("platforms", "show", "dgx-a100", "--nodes", nodes).returncode, 2)


class Traces(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.file = str(Path(self.folder.name) / "t.rtrace")

    def tearDown(self):
        self.folder.cleanup()

    def test_a_generated_trace_is_what_was_asked_for(self):
        done = rehearse("synth", "resnet50", "--dp", "4", "--bucket", "10MB", "-o", self.file, "--json")
        made = json.loads(done.stdout)
        self.assertEqual((made["schema"], made["ranks"]), ("rehearse.synth/1", 4))
        self.assertEqual(made["options"]["bucket"], 10_000_000)
        found = json.loads(rehearse("inspect", self.file, "--json").stdout)
        self.assertEqual((found["schema"], found["ranks"]), ("rehearse.inspect/1", 4))
        self.assertEqual(found["operations"], made["operations"])

    def test_names_of_a_trace_cannot_steer_the_terminal(self):
        name = "evil\x1b[2J\x1b]0;title\x07" + "<template>" * 40
        event = {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": 110, "dur": 500,
                 "args": {"correlation": 7, "stream": 7, "device": 0}}
        job = {"deviceProperties": [{"id": 0, "name": "NVIDIA A100-SXM4-80GB"}], "traceEvents": [event],
               "distributedInfo": {"rank": 0, "world_size": 1}}
        recorded, trace = Path(self.folder.name) / "evil.json", Path(self.folder.name) / "evil.rtrace"
        recorded.write_text(json.dumps(job))
        for words in (["import", recorded, "-o", trace], ["inspect", trace], ["run", trace]):
            done = rehearse(*map(str, words))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertNotRegex(done.stdout + done.stderr, r"[\x00-\x08\x0b-\x1f\x7f]")
        self.assertIn("evil", done.stdout)
        self.assertLess(max(map(len, done.stdout.splitlines())), 250)  # names are cut, however long
        told = json.loads(rehearse("run", str(trace), "--json").stdout)
        self.assertEqual(told["critical_path"]["operations"][0]["name"], name)

    def test_options_of_synth_are_checked_and_leave_no_file(self):
        for words in (["--dp", "-1"], ["--dp", "1.5"], ["--bucket", "5m"], ["--bucket", "-1MiB"],
                      ["--zero", "4"], ["--dtype", "bf61"], ["--jitter", "2"], ["--gpu", "h10"]):
            done = rehearse("synth", "gpt", *words, "-o", self.file)
            self.assertIn(done.returncode, (2, 65, 66), words)
            self.assertIn("fix:", done.stderr, words)
            self.assertEqual(os.listdir(self.folder.name), [], words)
        self.assertEqual(rehearse("synth", "gpt").returncode, 2)
        self.assertEqual(rehearse("synth", "gtp", "-o", self.file).returncode, 2)

    def test_a_cut_trace_is_refused_unless_allowed(self):
        rehearse("synth", "resnet50", "--dp", "2", "-o", self.file)
        whole = Path(self.file).read_bytes()
        Path(self.file).write_bytes(whole[:len(whole) // 2])
        done = rehearse("inspect", self.file)
        self.assertEqual(done.returncode, 65)
        self.assertIn("t.rtrace", done.stderr)
        flipped = bytearray(whole)
        flipped[len(whole) // 2] ^= 0x40
        Path(self.file).write_bytes(flipped)
        self.assertEqual(rehearse("inspect", self.file).returncode, 65)
        self.assertEqual(rehearse("run", self.file).returncode, 65)

    def test_interruption_leaves_no_file(self):
        words = ["synth", "gpt", "--dp", "256", "--tp", "8", "-o", self.file]
        process = subprocess.Popen([PROGRAM, *words], stderr=subprocess.PIPE)
        try:
            process.wait(timeout=0.5)
            self.skipTest("the machine is too fast to be interrupted")
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
        self.assertEqual(process.returncode, 130)
        self.assertFalse(os.path.exists(self.file))


class Run(unittest.TestCase):
    def scenario(self, text):
        file = tempfile.NamedTemporaryFile("w", suffix=".yaml")
        file.write(text)
        file.flush()
        self.addCleanup(file.close)
        return file.name

    def test_the_shipped_scenarios_are_listed(self):
        names = [s["name"] for s in json.loads(rehearse("run", "--list", "--json").stdout)["scenarios"]]
        for name in ("ddp-16", "fsdp-32", "gpt-32", "moe-16", "dlrm-8", "horovod-16", "tf-8"):
            self.assertIn(name, names)

    def test_two_runs_give_the_same_bytes_with_the_schema_first(self):
        first = rehearse("run", "ddp-16", "--json")
        self.assertEqual(first.returncode, 0)
        self.assertEqual(first.stdout, rehearse("run", "ddp-16", "--json").stdout)
        document = json.loads(first.stdout)
        self.assertEqual(list(document)[0], "schema")
        self.assertEqual((document["schema"], document["verdict"], document["symptom"]["id"]),
                         ("rehearse.outcome/1", "completed", "healthy"))
        self.assertNotIn("baseline_step_time_ns", document)

    def test_changes_apply_in_the_order_written_and_bring_a_baseline(self):
        path = "platform.nodes[1].nics[*].bandwidth="
        done = rehearse("run", "ddp-16", "--set", path + "10Gbps", "--patch",
                        "slow-rank: {rank: 6, slowdown: 1.0}", "--set", path + "200Gbps", "--json")
        document = json.loads(done.stdout)
        self.assertEqual(len(document["patches"]), 3)
        self.assertIn("200Gbps", document["patches"][2])
        self.assertEqual(document["step_time_ns"], document["baseline_step_time_ns"])

    def test_expect_decides_the_exit_code(self):
        hang = ["run", "ddp-16", "--patch", "skip-collective: {rank: 3, nth: 5}"]
        self.assertEqual(rehearse(*hang).returncode, 0)
        self.assertEqual(rehearse(*hang, "--expect", "hang").returncode, 0)
        self.assertEqual(rehearse(*hang, "--expect", "completed").returncode, 1)
        self.assertEqual(rehearse(*hang, "--expect", "complete").returncode, 2)

    def test_bad_input_is_refused_with_place_and_remedy(self):
        bad = self.scenario("trace: ddp-16\nplatfrom: dgx-a100\n")
        done = rehearse("run", bad)
        self.assertEqual(done.returncode, 65)
        self.assertIn(f"{bad}:2:", done.stderr)
        self.assertIn("platform", done.stderr)
        for wrong, place, code in (("trace: ddp-16\npatches: [{set: {a: 1}}]\n", "patches[0]", 65),
                                   ("trace: {synth: {model: gpt, dp: 65536, tp: 65536}}\n", "trace.synth", 75)):
            bad = self.scenario(wrong)
            done = rehearse("run", bad)
            self.assertEqual(done.returncode, code)
            self.assertIn(f"{bad}: {place}: ", done.stderr)
        done = rehearse("run", self.scenario("trace: no-such-file.rtrace\nplatform: dgx-a100\n"))
        self.assertEqual(done.returncode, 66)
        for change in ("platform.nodes[1].nics[*].bandwidth=-5Gbps", "platform.nodes[9].name=x",
                       "platform.nodes[0].nmae=x", "platform", "launch.env.A"):
            done = rehearse("run", "ddp-16", "--set", change)
            self.assertIn(done.returncode, (2, 65), change)
            self.assertIn("fix:", done.stderr, change)
        self.assertEqual(rehearse("run", "ddp-61").returncode, 66)
        self.assertEqual(rehearse("run", "ddp-16", "--fault", "F999").returncode, 2)
        self.assertEqual(rehearse("run").returncode, 2)

    def test_a_name_in_a_scenario_has_no_colours_in_findings(self):
        done = rehearse("run", self.scenario('trace: ddp-16\nname: "\\x1b[31mred\\x1b[0m"\n'))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("platform-assumed", done.stderr)
        self.assertNotIn("\x1b", done.stderr)

    def test_nothing_but_the_document_is_on_stdout_and_stderr_is_silent_in_a_pipe(self):
        done = rehearse("run", "ddp-16", "--json")
        json.loads(done.stdout)
        self.assertEqual(done.stderr, "")



class Explanations(unittest.TestCase):
    def test_an_explained_call_names_its_choice_time_and_bound(self):
        done = rehearse("nccl", "explain", "--platform", "dgx-h100", "--ranks", "8", "--bytes", "64MiB", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        document = json.loads(done.stdout)
        self.assertEqual(list(document)[0], "schema")
        self.assertGreater(document["time_ns"], 0)
        self.assertEqual(sum(v["chosen"] for v in document["variants"]), 1)
        for variant in document["variants"]:
            self.assertTrue(variant["available"] or variant["why_not"])
        self.assertAlmostEqual(document["busbw"] / document["algbw"], 1.75, places=3)

    def test_a_sweep_has_one_row_per_size(self):
        done = rehearse("nccl", "explain", "--platform", "dgx-a100", "--sweep", "1KiB:64KiB:4", "--json")
        sizes = [row["bytes"] for row in json.loads(done.stdout)["sizes"]]
        self.assertEqual(sizes, [1024, 4096, 16384, 65536])

    def test_a_variable_that_changes_nothing_is_told(self):
        def idle(*settings):
            words = [word for setting in settings for word in ("--env", setting)]
            done = rehearse("nccl", "explain", "--platform", "dgx-a100", "--ranks", "16", *words, "--json")
            return [f for f in json.loads(done.stdout)["findings"] if f["id"] == "setting-without-effect"]

        self.assertEqual([f["first"] for f in idle("NCCL_IB_SL=3", "NCCL_ALGO=Tree")], ["NCCL_IB_SL=3"])
        self.assertEqual(idle("ranks[8-15].env.NCCL_IB_DISABLE=1"), [])
        # All are named, each with where it counts.
        (both,) = idle("NCCL_IB_TIMEOUT=14", "NCCL_SOCKET_IFNAME=eth0")
        self.assertEqual(both["first"], "NCCL_IB_TIMEOUT=14 NCCL_SOCKET_IFNAME=eth0")
        self.assertIn("NCCL_IB_TIMEOUT=14: the call is the same without it; it counts when a port is lost", both["advice"])
        self.assertIn("when a job starts", both["advice"])

    def test_what_makes_no_sense_is_refused_with_a_remedy(self):
        base = ["nccl", "explain", "--platform", "dgx-a100"]
        for words, code in [(["--bytes", "-5"], 2), (["--bytes", "many"], 2), (["--sweep", "1:2:1"], 2),
                            (["--sweep", "1KiB"], 2), (["--env", "X"], 2), (["--env", "ranks[1-.env.A=1"], 2),
                            (["--collective", "all_redoce"], 2), (["--type", "float7"], 2),
                            (["--ranks", "0"], 2), (["--ranks", "9", "--nodes", "1"], 65),
                            (["--env", "NCCL_ALGO=Rings"], 65), (["--nccl-version", "two"], 65)]:
            done = rehearse(*base, *words)
            self.assertEqual(done.returncode, code, (words, done.stderr))
            self.assertEqual(done.stdout, "")
        self.assertEqual(rehearse("nccl", "explain").returncode, 2)
        self.assertEqual(rehearse("nccl", "explain", "--platform", "dgx-a1000").returncode, 66)

    def test_tables_that_are_missing_or_empty_are_refused(self):
        self.assertEqual(rehearse("validate", "nccl-tests").returncode, 2)
        self.assertEqual(rehearse("validate", "nccl-tests", "no-such-table.txt").returncode, 66)
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as empty:
            self.assertEqual(rehearse("validate", "nccl-tests", empty.name).returncode, 65)

    def test_every_validate_prints_checks_of_one_shape(self):
        fields = {"id", "what", "n", "median_error", "p90_error", "median_interval", "metric", "value", "target", "at_least",
                  "met", "skipped", "why", "assumptions"}
        with tempfile.TemporaryDirectory() as folder:
            trace = f"{folder}/resnet.rtrace"
            self.assertEqual(rehearse("synth", "resnet50", "--dp", "2", "-o", trace).returncode, 0)
            for words in (["--only", "decisions"], ["--only", "schedules"],
                          ["nccl", "--vectors", str(ROOT / "tests/golden/nccl")],
                          ["nccl-log", str(ROOT / "tests/corpus/nccl_log/h100-2gpu.log"), "--platform", "hgx-h100"],
                          ["nccl-tests", str(ROOT / "tests/golden/nccl_tests/all_reduce.txt"), "--platform", "hgx-h100"],
                          ["pairs", str(ROOT / "tests/golden/pairs/pairs.json")], ["replay", trace]):
                done = rehearse("validate", *words, "--json")
                document = json.loads(done.stdout)
                self.assertEqual(list(document)[0], "schema")
                self.assertEqual(document["schema"], "rehearse.validate/1")
                self.assertTrue(document["checks"], words)
                for check in document["checks"]:
                    self.assertEqual(fields - set(check), set(), (words, check["id"]))
                    self.assertEqual(check["met"] is None, check["skipped"] or check["target"] is None, check)


if __name__ == "__main__":
    unittest.main()
