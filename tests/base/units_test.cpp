// SPDX-License-Identifier: Apache-2.0
#include "base/units.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "base/random.hpp"

namespace rehearse::units_test {
using namespace rehearse;

TEST_CASE("sizes are read in SI and IEC units", "[units]") {
  const std::pair<const char*, Bytes> cases[] = {
      {"0", 0},
      {"4096", 4096},
      {"1B", 1},
      {"1kB", 1000},
      {"1KB", 1000},
      {"1 KiB", 1024},
      {"25MiB", 26214400},
      {"1.5GB", 1500000000},
      {"80GiB", 85899345920},
      {"2TB", 2000000000000},
      {"1TiB", 1099511627776},
      {" 1.5 GB ", 1500000000},
      {"1e3", 1000},
      {"1e3 kB", 1000000},
      {"-5", -5},
      {".5KiB", 512},
      {"9223372036854775807", std::numeric_limits<int64_t>::max()}};
  for (const auto& [text, bytes] : cases) {
    CAPTURE(text);
    const auto parsed = parse_bytes(text);
    REQUIRE(parsed);
    CHECK(*parsed == bytes);
  }
}

TEST_CASE("durations are decimal, not rounded through binary fractions", "[units]") {
  const std::pair<const char*, Nanos> cases[] = {{"1.5us", 1500},
                                                 {"0", 0},
                                                 {"1ns", 1},
                                                 {"1.5\u00b5s", 1500},
                                                 {"1.5\u03bcs", 1500},
                                                 {"212ms", 212000000},
                                                 {"0.1s", 100000000},
                                                 {"30min", 1800000000000},
                                                 {"2 h", 7200000000000},
                                                 {"1d", 86400000000000},
                                                 {"9007199254.740993s", 9007199254740993000},
                                                 {"1.0000000000000000000001us", 1000},
                                                 {"-1ms", -1000000},
                                                 {"0.5ns", 0},
                                                 {"1.5ns", 2},
                                                 {"2.5ns", 2}};
  for (const auto& [text, time] : cases) {
    CAPTURE(text);
    const auto parsed = parse_duration(text);
    REQUIRE(parsed);
    CHECK(*parsed == time);
  }
}

TEST_CASE("bandwidth tells bits from bytes", "[units]") {
  const std::pair<const char*, double> cases[] = {
      {"100Gbps", 12.5e9},  {"200Gb/s", 25e9},  {"8 Gbit/s", 1e9},       {"25GB/s", 25e9},
      {"900GBps", 900e9},   {"1GiB/s", 0x1p30}, {"2.039TB/s", 2.039e12}, {"8bps", 1},
      {"1kbps", 125},       {"1kB/s", 1000},    {"1Tbps", 125e9},        {"0", 0},
      {"-5Gbps", -0.625e9}, {"7B/s", 7}};
  for (const auto& [text, rate] : cases) {
    CAPTURE(text);
    const auto parsed = parse_bandwidth(text);
    REQUIRE(parsed);
    CHECK(*parsed == rate);
  }
}

TEST_CASE("compute rates and clocks are read", "[units]") {
  CHECK(*parse_flops("312TFLOPS") == 312e12);
  CHECK(*parse_flops("19.5 TFLOP/s") == 19.5e12);
  CHECK(*parse_flops("1979TOPS") == 1979e12);
  CHECK(*parse_flops("1PFLOPS") == 1e15);
  CHECK(*parse_hertz("1410MHz") == 1410e6);
  CHECK(*parse_hertz("1.98GHz") == 1.98e9);
}

TEST_CASE("a number without a unit is refused where the unit is not obvious", "[units]") {
  const auto rate = parse_bandwidth("100");
  REQUIRE(!rate);
  CHECK(rate.error().code == Code::kBadInput);
  CHECK(rate.error().what == "'100' has no unit");
  CHECK(rate.error().fix.find("100Gbps") != std::string::npos);
  CHECK(!parse_duration("5"));
  CHECK(!parse_flops("312"));
  CHECK(!parse_hertz("1"));
}

TEST_CASE("nonsense quantities are refused with the units accepted", "[units]") {
  for (const char* text : {"", " ", "fast", "-", ".", "1.2.3s", "0x10", "5parsec", "1e", "nan",
                           "inf", "1e99999s", "1 2s", "1,5s", "5m", "1ss", "--5s", "1s\n"}) {
    CAPTURE(text);
    const auto parsed = parse_duration(text);
    REQUIRE(!parsed);
    CHECK(parsed.error().code == Code::kBadInput);
    CHECK(parsed.error().fix.find("min") != std::string::npos);
  }
  CHECK(!parse_bytes("25Mb"));
  CHECK(!parse_bytes("25mb"));
  CHECK(!parse_bandwidth("25GB"));
  CHECK(!parse_bandwidth("100gbps"));
}

TEST_CASE("a quantity that does not fit is an error, not a wrapped number", "[units]") {
  for (const char* text : {"9223372036854775808", "10000000TiB", "1e19", "1e300"}) {
    CAPTURE(text);
    CHECK(!parse_bytes(text));
  }
  CHECK(!parse_duration("293y"));
  CHECK(!parse_duration("106752d"));
  CHECK(parse_duration("106751d"));
  CHECK(!parse_bandwidth("1e999Gbps"));
  CHECK(*parse_bytes("-9223372036854775808") == std::numeric_limits<int64_t>::min());
  CHECK(!parse_bytes("-9223372036854775809"));
  CHECK(!parse_bytes(std::string(100000, '9')));
  CHECK(!parse_bytes("0." + std::string(100000, '0')));
}

TEST_CASE("quantities are shown with three significant digits", "[units]") {
  CHECK(format_bytes(25 << 20) == "25.0 MiB");
  CHECK(format_bytes(0) == "0 B");
  CHECK(format_bytes(512) == "512 B");
  CHECK(format_bytes(5) == "5 B");
  CHECK(format_bytes(1023) == "1023 B");
  CHECK(format_bytes((1 << 20) - 1) == "1.00 MiB");
  CHECK(format_bytes(-2048) == "-2.00 KiB");
  CHECK(format_bandwidth(24.6e9) == "24.6 GB/s");
  CHECK(format_bandwidth(999.96e6) == "1.00 GB/s");
  CHECK(format_duration(1500) == "1.50 us");
  CHECK(format_duration(212'000'000) == "212 ms");
  CHECK(format_duration(7) == "7 ns");
  CHECK(format_duration(999'999) == "1.00 ms");
  CHECK(format_duration(1'800'000'000'000) == "30.0 min");
  CHECK(format_count(1234567) == "1,234,567");
  CHECK(format_count(999) == "999");
  CHECK(format_count(0) == "0");
}

TEST_CASE("exact texts read back as the same quantity", "[units]") {
  CHECK(exact_bytes(80ll << 30) == "80GiB");
  CHECK(exact_bytes(1500000000) == "1500MB");
  CHECK(exact_bandwidth(12.5e9) == "12.5GB/s");
  CHECK(exact_duration(1500) == "1.5us");
  CHECK(exact_duration(1'800'000'000'000) == "30min");
  CHECK(exact_flops(312e12) == "312TFLOPS");
  CHECK(exact_hertz(1410e6) == "1.41GHz");
  Random random(7, "units");
  for (int i = 0; i < 2000; ++i) {
    const auto whole = static_cast<int64_t>(random.next() >> random.below(64));
    const double real =
        random.normal() * std::pow(10.0, static_cast<double>(random.below(30)) - 10);
    CAPTURE(whole, real);
    REQUIRE(parse_bytes(exact_bytes(whole)) == whole);
    REQUIRE(parse_duration(exact_duration(whole)) == whole);
    REQUIRE(parse_bandwidth(exact_bandwidth(real)) == real);
    REQUIRE(parse_flops(exact_flops(real)) == real);
    REQUIRE(parse_hertz(exact_hertz(real)) == real);
  }
}

}  // namespace rehearse::units_test
