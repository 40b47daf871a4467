// SPDX-License-Identifier: Apache-2.0
#include "tests/traces/nsys_samples.hpp"

#include <fmt/format.h>
#include <sqlite3.h>

#include <stdexcept>

namespace rehearse::traces::samples {

std::string database(const std::string& sql) {
  sqlite3* db = nullptr;
  sqlite3_open(":memory:", &db);
  char* said = nullptr;
  const int code = sqlite3_exec(db, ("BEGIN;" + sql + "COMMIT;").c_str(), nullptr, nullptr, &said);
  const std::string error = said != nullptr ? said : "";
  sqlite3_free(said);
  if (code != SQLITE_OK) {
    sqlite3_close(db);
    throw std::runtime_error(error);
  }
  sqlite3_int64 size = 0;
  unsigned char* const bytes = sqlite3_serialize(db, "main", &size, 0);
  std::string out(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
  sqlite3_free(bytes);
  sqlite3_close(db);
  return out;
}

std::string global(int pid, int tid) {
  return std::to_string((uint64_t{1} << 48) | uint64_t(pid) << 24 | uint64_t(tid));
}

std::string nsys_tables() {
  return R"(
CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT);
INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_SCHEMA_VERSION', '3.25.0');
CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER);
INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1700000000000000000);
CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO StringIds VALUES (1, 'gemm'), (2, 'cudaLaunchKernel_v7000'),
  (3, 'ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)'),
  (4, 'ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)'), (5, 'cudaGraphLaunch_v10000'),
  (6, 'cudaStreamWaitEvent_v3020'), (7, 'cudaEventRecord_v3020'), (8, 'cudaStreamSynchronize_v3020');
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER,
  streamId INTEGER, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, shortName INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER,
  correlationId INTEGER, nameId INTEGER);
CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT, textId INTEGER,
  globalTid INTEGER, jsonText TEXT, binaryData BLOB);
)";
}

std::string kernel(int pid, int device, int stream, int correlation, long start, long end,
                   int name) {
  return fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({},{},{},1,{},{},{},{},{});\n",
                     start, end, device, stream, correlation, global(pid), name, name);
}

std::string runtime(int pid, int tid, int correlation, long start, long end, int name) {
  return fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES ({},{},{},{},{});\n", start,
                     end, global(pid, tid), correlation, name);
}

std::string range(int pid, int tid, long start, long end, const std::string& text,
                  const std::string& json) {
  return fmt::format("INSERT INTO NVTX_EVENTS VALUES ({},{},59,'{}',NULL,{},{},NULL);\n", start,
                     end, text, global(pid, tid), json.empty() ? "NULL" : "'" + json + "'");
}

}  // namespace rehearse::traces::samples
