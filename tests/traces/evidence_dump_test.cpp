// SPDX-License-Identifier: Apache-2.0
// Inspector records and flight recorder dumps, hostile pickles among them.
#include "tests/traces/evidence_samples.hpp"
#include "traces/import/flight_recorder/pickle.hpp"

namespace rehearse::evidence_dump_test {
using namespace rehearse;
using namespace rehearse::traces;
using namespace std::string_literals;
using samples::must_read;
using samples::read_bytes;

namespace {

std::string text(std::string_view value) {
  const auto n = static_cast<uint32_t>(value.size());
  std::string out = "X";
  for (int i = 0; i < 4; ++i) out += static_cast<char>(n >> (8 * i));
  return out + std::string(value);
}

// {"version": "2.9", "pg_config": {}, "entries": [{"record_id": 1, "profiling_name": name, "pg_id":
// 0, "state": "scheduled"}]}
std::string dump_with(const std::string& entry_value) {
  return "\x80\x02}("s + text("version") + text("2.9") + text("pg_config") + "}" + text("entries") +
         "](}(" + text("record_id") + "K\x01" + text("profiling_name") + entry_value +
         text("state") + text("scheduled") + "ueu.";
}

Result<flight_recorder::ValueId> unpickled(const std::string& bytes) {
  flight_recorder::Values values;
  return flight_recorder::unpickle(bytes, "dump", values);
}

}  // namespace

TEST_CASE("inspector records become columns", "[evidence][inspector]") {
  const auto read = must_read(samples::kInspector);
  REQUIRE(read.evidence.size() == 1);
  const pb::InspectorRecords& r = read.evidence[0].inspector();
  CHECK(r.communicator() == "0xec");
  CHECK(r.rank() == 1);
  CHECK(r.ranks_total() == 2);
  REQUIRE(r.bytes_size() == 2);
  CHECK(r.collectives(static_cast<int>(r.collective(0))) == "all_reduce");
  CHECK(r.collectives(static_cast<int>(r.collective(1))) == "send");
  CHECK(r.peer(0) == -1);
  CHECK(r.peer(1) == 0);
  CHECK(r.time_us(0) == 21.5);
  CHECK(complaint_about(read.evidence[0]).empty());
  pb::Evidence broken = read.evidence[0];
  broken.mutable_inspector()->set_collective(0, 9);
  CHECK_FALSE(complaint_about(broken).empty());
}

TEST_CASE("whole figures of Inspector may have a point", "[evidence][inspector]") {
  std::string text = samples::kInspector;
  const size_t at = text.find(R"(_msg_size_bytes":)");
  REQUIRE(at != std::string::npos);
  text.insert(text.find_first_of(",}", at), ".0");
  const auto read = must_read(text);
  CHECK(read.evidence[0].inspector().bytes_size() == 2);
}

TEST_CASE("Inspector's counts and records on several lines are read", "[evidence][inspector]") {
  const std::string counts =
      R"({"header":{"id":"0xec"},"metadata":{"inspector_output_format_version":"v4.1"},)"
      R"("dump_stats":{"coll_dropped":3,"p2p_dropped":0,"coll_recorded":9}})";
  const std::string spread = R"({
  "header": {"id": "0xec", "rank": 1, "n_ranks": 2, "nnodes": 1},
  "metadata": {"inspector_output_format_version": "v4.2"},
  "coll_perf": {
    "coll": "AllReduce", "coll_algo": "RING", "coll_proto": "LL", "coll_sn": 1,
    "coll_msg_size_bytes": 4096, "coll_exec_time_us": 7
  }
}
)";
  const auto read = must_read(counts + "\n" + spread + samples::kInspector);
  CHECK(read.format == "inspector");
  CHECK(read.findings.count("inspector-line-unused") == 0);
  CHECK(read.findings.count("inspector-records-dropped") == 3);
  CHECK(read.findings.count("inspector-choices-unused") == 1);
  REQUIRE(read.evidence.size() == 1);
  REQUIRE(read.evidence[0].inspector().bytes_size() == 3);
  CHECK(read.evidence[0].inspector().bytes(0) == 4096);
}

TEST_CASE("lines of Inspector that cannot be used are counted", "[evidence][inspector]") {
  const auto read = must_read(samples::kInspector + "{\"header\": broken\n"s);
  CHECK(read.findings.count("inspector-line-unused") == 1);
  CHECK(read.evidence[0].inspector().bytes_size() == 2);
}

TEST_CASE("Inspector's records may stand in one array", "[evidence][inspector]") {
  const std::string lines = samples::kInspector;
  const size_t first = lines.find('\n');
  const std::string a = lines.substr(0, first),
                    b = lines.substr(first + 1, lines.find('\n', first + 1) - first - 1);
  for (const std::string& text :
       {"[" + a + "," + b + "]", "[\n  " + a + ",\n  " + b + "\n]\n", a + ",\n" + b + "\n"}) {
    INFO(text);
    const auto read = must_read(text);
    CHECK(read.format == "inspector");
    REQUIRE(read.evidence.size() == 1);
    CHECK(read.evidence[0].inspector().bytes_size() == 2);
    CHECK(read.findings.rows().empty());
  }
  const auto cut = samples::read_bytes("[" + a + "," + b.substr(0, 30));
  REQUIRE_FALSE(cut);
  CHECK(cut.error().what == "the array ends early: 1 records are whole");
}

TEST_CASE("Inspector's records are found behind what a launcher puts before them",
          "[evidence][inspector]") {
  const std::string lines = samples::kInspector;
  const size_t first = lines.find('\n');
  const std::string a = lines.substr(0, first),
                    b = lines.substr(first + 1, lines.find('\n', first + 1) - first - 1);
  for (const std::string lead :
       {"[1,0]<stdout>:", "[1,mpirank:3,algo-1]<stdout>: ", "0: ", "worker-3 | ", "node1: ",
        "[default0]:", "(RayTrainWorker pid=17, ip=10.0.0.2) ", "2026-05-01T12:00:00.123Z ",
        "[pod/train-worker-0/main] ", "\x1b[36m(Worker pid=9)\x1b[0m ", "inspector-7.log:"}) {
    INFO(lead);
    const auto read = must_read(lead + a + "\n" + lead + b + "\r\n");
    CHECK(read.format == "inspector");
    REQUIRE(read.evidence.size() == 1);
    CHECK(read.evidence[0].inspector().bytes_size() == 2);
    CHECK(read.findings.rows().empty());
  }
  // What the program prints between them is counted, and so is a record that was torn.
  const auto mixed = must_read("0: starting\n0: " + a + "\x1b[0m\n1: step 1 done\n1: " + b +
                               " [repeated 3x across cluster]\n0: " + a.substr(0, 90) +
                               "\n0: " + a.substr(90) + "\n");
  CHECK(mixed.evidence[0].inspector().bytes_size() == 2);
  CHECK(mixed.findings.count("text-between-records") == 2);
  CHECK(mixed.findings.count("inspector-line-unused") == 2);
  // A log of NCCL stays one.
  CHECK(must_read(samples::kTwoRanks + ("0: " + a + "\n")).format == "nccl-log");
}

TEST_CASE("records of plugins that write no metadata are read", "[evidence][inspector]") {
  const std::string record =
      R"({"header":{"rank":3,"n_ranks":8},"coll_perf":{"coll":"AllReduce","coll_sn":10,"coll_msg_size_bytes":4096,"coll_exec_time_us":150.3}})"
      "\n";
  const auto read = must_read(record + record);
  REQUIRE(read.evidence.size() == 1);
  CHECK(read.evidence[0].inspector().rank() == 3);
  CHECK(read.evidence[0].inspector().bytes_size() == 2);
  CHECK(read.findings.rows().empty());
}

TEST_CASE("figures that are no numbers cost themselves alone", "[evidence]") {
  std::string line = samples::kInspector;
  line.replace(line.find("6.1"), 3, "inf");
  line.replace(line.find("6.1"), 3, "-nan");
  const auto inspector = must_read(line);
  REQUIRE(inspector.evidence[0].inspector().bytes_size() == 2);
  CHECK(inspector.evidence[0].inspector().algbw(0) == 0);
  CHECK(inspector.findings.rows().empty());
  // As Python's json writes them.
  std::string dump = samples::kRecorder;
  dump.insert(dump.find(R"("state")"), R"("duration_ms": NaN, "x": [Infinity, -Infinity], )");
  const auto recorder = must_read(dump, "rank03.json");
  const pb::FlightRecorder& r = recorder.evidence[0].flight_recorder();
  REQUIRE(r.entries_size() == 1);
  CHECK_FALSE(r.entries(0).has_duration_ms());
  CHECK(r.entries(0).collective_seq() == 7);
  CHECK_FALSE(read_bytes(dump.substr(0, dump.size() - 3), "rank03.json"));
}

TEST_CASE("a flight recorder dump as JSON is read", "[evidence][flight-recorder]") {
  const auto read = must_read(samples::kRecorder, "rank03.json");
  const pb::FlightRecorder& r = read.evidence[0].flight_recorder();
  CHECK(r.rank() == 3);
  CHECK(r.version() == "2.9");
  REQUIRE(r.groups_size() == 1);
  CHECK(r.groups(0).ranks_size() == 2);
  CHECK(r.groups(0).last_enqueued() == 7);
  CHECK(r.groups(0).last_started() == -1);
  REQUIRE(r.entries_size() == 1);
  CHECK(r.entries(0).collective() == "all_gather");
  CHECK(r.entries(0).group_id() == "0");
  CHECK(r.entries(0).created_ns() == 1758610505880883597);
  CHECK_FALSE(r.entries(0).has_started_ns());
  CHECK(r.entries(0).inputs(0).sizes(1) == 5);
  CHECK(r.entries(0).frames(0) == "step train.py:12");
}

TEST_CASE("numbers of calls that no job comes to are taken as not told",
          "[evidence][flight-recorder]") {
  std::string dump = samples::kRecorder;
  const auto say = [&](const std::string& key, const std::string& now) {
    const size_t at = dump.find(key) + key.size() + 2;
    dump.replace(at, dump.find_first_of(",}", at) - at, now);
  };
  say("last_enqueued_collective", "9223372036854775807");
  say("\"collective_seq_id", "-9223372036854775808");
  say("record_id", "-9223372036854775807");
  const auto read = must_read(dump, "rank03.json");
  const pb::FlightRecorder& r = read.evidence[0].flight_recorder();
  CHECK(r.groups(0).last_enqueued() == -2);
  CHECK(r.groups(0).last_completed() == 6);
  REQUIRE(r.entries_size() == 1);
  CHECK(r.entries(0).collective_seq() == -1);
  CHECK(r.entries(0).record_id() == -1);
  CHECK(read.findings.count("flight-recorder-number-unused") == 3);
}

TEST_CASE("a flight recorder dump as pickle is read as plain data", "[evidence][flight-recorder]") {
  const auto read = must_read(dump_with(text("nccl:send 0->3")), "_dump_12");
  const pb::FlightRecorder& r = read.evidence[0].flight_recorder();
  CHECK(r.rank() == 12);
  REQUIRE(r.entries_size() == 1);
  CHECK(r.entries(0).collective() == "send");
}

TEST_CASE("pickles of the first two protocols are read", "[evidence][flight-recorder]") {
  // {"version": "2.9", "pg_config": {"0": {"ranks": [0, 1]}}, "entries": [{...}]} as pickle.dumps(_, 0) prints it.
  const std::string printed =
      "(dp0\nVversion\np1\nV2.9\np2\nsVpg_config\np3\n(dp4\nV0\np5\n(dp6\nVranks\np7\n("
      "lp8\nI0\naI1\na"
      "sssVentries\np9\n(lp10\n(dp11\nVrecord_id\np12\nI-1\nsVpg_id\np13\ng5\nsVprofiling_"
      "name\np14\n"
      "Vnccl:all_reduce\np15\nsVtime_created_ns\np16\nL1758610505880883597L\nsVduration_"
      "ms\np17\nF1.5\ns"
      "Vretired\np18\nI01\nsVinput_sizes\np19\n((I4\nI5\ntp20\ntp21\nsVframes\np22\n(lp23\n"
      "Vtr\xe4"
      "in \\u20ac \\u005cu\np24\naS'it\\'s \\x41'\np25\nasVx\np26\nFnan\nsVnone\np27\nNsas.";
  const auto read = must_read(printed, "_dump_2");
  CHECK(read.format == "flight-recorder-pickle");
  const pb::FlightRecorder& r = read.evidence[0].flight_recorder();
  CHECK(r.version() == "2.9");
  REQUIRE(r.groups_size() == 1);
  CHECK(r.groups(0).ranks_size() == 2);
  REQUIRE(r.entries_size() == 1);
  const pb::FlightEntry& e = r.entries(0);
  CHECK(e.record_id() == -1);
  CHECK(e.group_id() == "0");
  CHECK(e.collective() == "all_reduce");
  CHECK(e.created_ns() == 1758610505880883597);
  CHECK(e.duration_ms() == 1.5);
  CHECK(e.retired());
  CHECK(e.inputs(0).sizes(1) == 5);
  REQUIRE(e.frames_size() == 2);
  CHECK(e.frames(0) == "tr\u00e4in \u20ac \\u");
  CHECK(e.frames(1) == "it's A");
  // pickle.dumps(_, 1): texts with their length, large integers printed.
  const std::string second = "}q\x00("s + text("entries") + "q\x01]q\x02}q\x03(" +
                             text("record_id") + "q\x04K\x01" + text("profiling_name") + "q\x05" +
                             text("nccl:broadcast") + "q\x06" + text("time_created_ns") +
                             "q\x07L17L\n" + text("retired") + "q\x08I00\nua" + text("pg_config") +
                             "q\x09}q\x0au.";
  const auto older = must_read(second, "_dump_2");
  REQUIRE(older.evidence[0].flight_recorder().entries_size() == 1);
  CHECK(older.evidence[0].flight_recorder().entries(0).created_ns() == 17);
  CHECK_FALSE(older.evidence[0].flight_recorder().entries(0).retired());
  // Every cut is refused, and so is what calls or cannot be.
  for (size_t length = 0; length < printed.size(); ++length) {
    CHECK_FALSE(unpickled(printed.substr(0, length)));
  }
  for (const char* bytes :
       {"cos\nsystem\n(S'echo'\ntR.", "(dp0\nI1\ncos\nsystem\ns.", "I\n.", "I1x\n.",
        "L99999999999999999999999999L\n.", "F1,5\n.", "S'open\n.", "S'\\q'\n.", "V\\u12\n.",
        "V\\U00110000\n.", "Np-1\n.", "Npx\n.", "g0\n.", "I1\n"}) {
    INFO(bytes);
    CHECK_FALSE(unpickled(bytes));
  }
}

TEST_CASE("dumps of older and newer versions are read", "[evidence][flight-recorder]") {
  const std::string entry = "}(" + text("record_id") + "K\x01" + text("pg_id") + "K\x00"s +
                            text("seq_id") + "K\x07" + text("profiling_name") +
                            text("nccl:all_reduce") + text("state") + text("scheduled") + "u";
  // PyTorch 2.2: the entries alone.
  const auto bare = must_read("\x80\x02](" + entry + "e.", "dump_rank_4");
  const pb::FlightRecorder& r = bare.evidence[0].flight_recorder();
  CHECK(r.rank() == 4);
  REQUIRE(r.entries_size() == 1);
  CHECK(r.entries(0).collective_seq() == 7);
  CHECK_FALSE(
      read_bytes("\x80\x02](K\x01K\x02"
                 "e.",
                 "dump_rank_4"));
  const auto as_json = must_read(
      R"([{"id": 1, "pg_id": 0, "seq_id": 7, "profiling_name": "nccl:all_reduce", "state": "scheduled", "time_created_us": 12}])",
      "dump_rank_4.json");
  CHECK(as_json.evidence[0].flight_recorder().entries(0).collective_seq() == 7);
  CHECK(as_json.evidence[0].flight_recorder().entries(0).created_ns() == 12'000);
  // Version 1: groups by number, no configuration in some, whole durations.
  const auto old = must_read(
      R"({"version": "1.4", "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}},
          "entries": [{"record_id": 0, "pg_id": 0, "seq_id": 1, "profiling_name": "nccl:broadcast", "state": "completed", "duration_ms": 5}]})",
      "rank0.json");
  const pb::FlightEntry& e = old.evidence[0].flight_recorder().entries(0);
  CHECK(e.group_description() == "default_pg");
  CHECK(e.duration_ms() == 5);
  CHECK(
      must_read(
          R"({"version": "1.0", "entries": [{"record_id": 0, "profiling_name": "nccl:send 0->1", "seq_id": 1}]})",
          "rank0.json")
          .evidence[0]
          .flight_recorder()
          .entries_size() == 1);
  // Newer ones call NCCL the communication library.
  CHECK(must_read(
            R"({"version": "2.10", "comm_lib_version": "2.27.5", "pg_config": {}, "entries": []})",
            "rank0.json")
            .evidence[0]
            .flight_recorder()
            .nccl_version() == "2.27.5");
}

TEST_CASE("dumps that a tool wrote anew are read", "[evidence][flight-recorder]") {
  const std::string entry =
      R"({"record_id": 0, "collective_seq_id": "7", "op_id": "9", "retired": "true", "profiling_name": "nccl:all_reduce"})";
  const auto all = must_read("[" + entry + "]", "rank2.json");
  const pb::FlightRecorder& bare = all.evidence[0].flight_recorder();
  CHECK(bare.rank() == 2);
  REQUIRE(bare.entries_size() == 1);
  CHECK(bare.entries(0).collective_seq() == 7);
  CHECK(bare.entries(0).op_id() == 9);
  CHECK(bare.entries(0).retired());
  // The rank inside counts where the name does not tell it.
  const std::string told = R"({"rank": 3, "entries": [)" + entry + "]}";
  CHECK(must_read(told, "dump.json").evidence[0].flight_recorder().rank() == 3);
  CHECK(must_read(told, "rank5.json").evidence[0].flight_recorder().rank() == 5);
}

TEST_CASE("a pickle that names or calls anything is refused", "[evidence][flight-recorder]") {
  const std::string hostile[] = {
      "\x80\x02}(" + text("entries") + "cos\nsystem\n(" + text("echo owned") + "tRu.",
      "\x80\x04" + text("os") + text("system") + "\x93.",
      dump_with("cbuiltins\neval\n"),
      "\x80\x02(cbuiltins\nobject\no.",
      "\x80\x02)\x81.",
      "\x80\x02}}b.",
      "\x80\x02Pname\n.",
      "\x80\x02\x82\x01.",
  };
  for (const std::string& bytes : hostile) {
    const auto got = unpickled(bytes);
    REQUIRE_FALSE(got);
    CHECK(got.error().code == Code::kBadInput);
    CHECK_FALSE(got.error().fix.empty());
  }
  CHECK(unpickled(hostile[0]).error().what.find("os\\nsystem") == std::string::npos);
  CHECK(unpickled(hostile[0]).error().what.find("GLOBAL") != std::string::npos);
}

TEST_CASE("a pickle with sizes, marks or memos that cannot be is refused",
          "[evidence][flight-recorder]") {
  for (const std::string& bytes :
       {"\x80\x02X\xff\xff\xff\x7fshort."s, "\x80\x02\x8d\xff\xff\xff\xff\xff\xff\xff\xff."s,
        "\x80\x02h\x07."s, "\x80\x02t."s, "\x80\x02(\x85."s, "\x80\x02K\x01\x86."s,
        "\x80\x02}(K\x01u."s, "\x80\x02N(e."s, "\x80\x02NN."s, "\x80\x02(."s, "\x80\x02."s,
        "\x80\x09N."s, "\x80\x02q\x01."s, "\x80\x02\x8a\x09\x01\x01\x01\x01\x01\x01\x01\x01\x01."s,
        "\x80\x02\x95\xff\xff\xff\xff\xff\xff\xff\xffN."s, "\x80\x02"s, "\x80"s,
        "\x80\x02K\x01(0."s, "\x80\x02]a."s}) {
    INFO(bytes.size());
    CHECK_FALSE(unpickled(bytes));
  }
}

TEST_CASE("a pickle that contains itself or repeats itself costs no more than its bytes",
          "[evidence][flight-recorder]") {
  // entries = [entries, ...]: a list that holds itself.
  const std::string circle =
      "\x80\x02}("s + text("pg_config") + "}" + text("entries") + "]q\x01h\x01" + "au.";
  const auto read = read_bytes(circle, "_dump_1");
  REQUIRE(read);
  CHECK(read->findings.count("flight-recorder-entry-unused") == 1);
  // Each list holds the one before twice: 2^60 leaves in a few hundred bytes.
  std::string laughs = "\x80\x02}("s + text("pg_config") + "}" + text("entries") + "]q\x00"s;
  for (int i = 0; i < 60; ++i)
    laughs +=
        "q\x01]h\x01"
        "ah\x01"
        "a";
  laughs += "u.";
  CHECK(read_bytes(laughs, "_dump_1"));
  // Many entries that are one: bounded by what a record may hold.
  std::string many = "\x80\x02}("s + text("pg_config") + "}" + text("entries") + "](}(" +
                     text("record_id") + "K\x01" + text("profiling_name") +
                     text(std::string(1000, 'x')) + "uq\x05";
  for (int i = 0; i < 70'000; ++i) many += "h\x05";
  const auto big = read_bytes(many + "eu.", "_dump_1");
  REQUIRE(big);
  CHECK(big->findings.count("flight-recorder-entries-cut") > 0);
  CHECK(big->evidence[0].ByteSizeLong() < (size_t{30} << 20));
}

TEST_CASE("integers of a pickle keep sign and width", "[evidence][flight-recorder]") {
  const auto value = [](const std::string& bytes) {
    flight_recorder::Values values;
    const auto id = flight_recorder::unpickle(bytes, "dump", values);
    REQUIRE(id);
    return values.at(*id).integer;
  };
  CHECK(value("\x80\x02J\xff\xff\xff\xff."s) == -1);
  CHECK(value("\x80\x02\x8a\x01\xff."s) == -1);
  CHECK(value("\x80\x02\x8a\x02\xff\x00."s) == 255);
  CHECK(value("\x80\x02\x8a\x00."s) == 0);
  CHECK(value("\x80\x02M\xff\xff."s) == 65535);
}

}  // namespace rehearse::evidence_dump_test
