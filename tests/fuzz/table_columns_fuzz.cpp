// SPDX-License-Identifier: Apache-2.0
// Any bytes as the YAML that says what the columns of a table are (--columns), then a table read by it; and as the YAML
// that tells the size of a job.
#include "tests/fuzz/memory_file.hpp"
#include "tests/fuzz/reader_fuzz.hpp"
#include "traces/import/csv/csv.hpp"
#include "traces/import/csv/job.hpp"

using namespace rehearse;
using namespace rehearse::traces;

namespace {

constexpr std::string_view kTable = R"(gpu,iteration,what,begin,end,bytes,stage
0,0,gemm,10,20,0,0
0,0,allreduce,20,35,4096,0
1,0,gemm,11,22,0,1
1,0,allreduce,22,35,4096,1
0,1,load,40,41,0,0
1,1,send,40,44,128,1
)";

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes = fuzz_bytes(data, size);
  read_any_bytes(bytes, csv::read_job);
  const MemoryFile file(bytes);
  const auto mapping = csv::load_mapping(file.path().string());
  if (!mapping) {
    if (mapping.error().what.empty()) __builtin_trap();
    return 0;
  }
  read_any_bytes(kTable, csv::read, &*mapping);
  return 0;
}
