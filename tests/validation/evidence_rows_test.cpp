// SPDX-License-Identifier: Apache-2.0
#include "validation/calibrate/evidence_rows.hpp"

#include <catch2/catch.hpp>

namespace rehearse::validation::evidence_rows_test {
TEST_CASE("records of NCCL Inspector count what one rank gives to an all-gather",
          "[validation][calibrate]") {
  pb::InspectorRecords records;
  records.set_ranks_total(4);
  records.set_nodes(1);
  records.add_sources("kernel_gpu");
  for (const char* collective : {"all_reduce", "all_gather", "reduce_scatter"}) {
    records.add_collective(static_cast<uint32_t>(records.collectives_size()));
    records.add_collectives(collective);
    records.add_bytes(uint64_t{1} << 30);
    records.add_time_us(1000);
  }
  const auto rows = inspector_rows(records, "records");
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].bytes == Bytes{1} << 30);
  CHECK(rows[1].bytes == Bytes{4} << 30);
  CHECK(rows[2].bytes == Bytes{4} << 30);
  CHECK(rows[0].graph);
  // The host's clock waits for launches too; sizes that nobody has are left out.
  records.add_sources("collective_cpu");
  records.set_bytes(1, UINT64_MAX / 2);
  const auto others = inspector_rows(records, "records");
  REQUIRE(others.size() == 2);
  CHECK_FALSE(others[0].graph);
}

}  // namespace rehearse::validation::evidence_rows_test
