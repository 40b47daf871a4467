// SPDX-License-Identifier: Apache-2.0
#include "platforms/model/address.hpp"

#include <catch2/catch.hpp>

namespace rehearse::platforms::address_test {

TEST_CASE("a counter in braces is replaced, divided and taken modulo", "[platforms][address]") {
  CHECK(fill("mlx5_{i}", 'i', 7) == "mlx5_7");
  CHECK(fill("plx{i/2}", 'i', 7) == "plx3");
  CHECK(fill("a{i/2%2}b{i}", 'i', 6) == "a1b6");
  CHECK(fill("{k}{i}", 'k', 3) == "3{i}");
}

TEST_CASE("braces that are no counter stay as they are", "[platforms][address]") {
  for (const char* text : {"{", "{}", "{i", "{ii}", "{i/}", "{i/0}", "{i+1}", "{i%}", "x}",
                           "{i/99999999999999999999}"}) {
    CHECK(fill(text, 'i', 1) == text);
  }
}

TEST_CASE("an address above 254 is carried into the next octet", "[platforms][address]") {
  CHECK(nth_address("10.0.0.{i}/16", 0) == "10.0.0.1/16");
  CHECK(nth_address("10.0.0.{i}/16", 253) == "10.0.0.254/16");
  CHECK(nth_address("10.0.0.{i}/16", 254) == "10.0.1.1/16");
  CHECK(nth_address("10.0.0.{i}/16", 300) == "10.0.1.47/16");
  CHECK(nth_address("10.{i}.0.1/8", 0) == "10.1.0.1/8");
  CHECK(nth_address("10.0.{i}.1/24", 254) == "10.1.1.1/24");
  CHECK(nth_address("fd00::{i}/64", 255) == "fd00::100/64");
  CHECK(nth_address("10.0.0.9", 5) == "10.0.0.9");
}

TEST_CASE("an address that would leave its network is refused", "[platforms][address]") {
  CHECK(nth_address("10.0.0.{i}/24", 253) == "10.0.0.254/24");
  CHECK(nth_address("10.0.0.{i}/24", 254).empty());
  CHECK(nth_address("255.255.255.{i}", 254).empty());
}

TEST_CASE("addresses and port ranges are checked", "[platforms][address]") {
  CHECK(parse_cidr("10.0.0.1/16")->prefix == 16);
  CHECK(parse_cidr("10.0.0.1")->prefix == 32);
  CHECK(parse_cidr("fd00::1/64")->bits == 128);
  for (const char* text :
       {"", "10.0.0", "10.0.0.256", "10.0.0.1/33", "10.0.0.1/", "fd00::1/129", "host"}) {
    CHECK_FALSE(parse_cidr(text));
  }
  CHECK(is_port_range(""));
  CHECK(is_port_range("29500"));
  CHECK(is_port_range("1024-65535"));
  for (const char* text : {"x", "70000", "20-10", "-5", "1-", "1-70000"})
    CHECK_FALSE(is_port_range(text));
}

}  // namespace rehearse::platforms::address_test
