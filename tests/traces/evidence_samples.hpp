// SPDX-License-Identifier: Apache-2.0
// Small evidence files as text, and the evidence of a text.
#pragma once

#include <catch2/catch.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "traces/evidence/evidence.hpp"
#include "traces/import/format.hpp"

namespace rehearse::traces::samples {

struct Read {
  std::vector<pb::Evidence> evidence;
  Findings findings;
  std::string format;
};

// What the format that takes these bytes makes of them; the error otherwise.
inline Result<Read> read_bytes(std::string_view bytes, const std::string& name = "evidence.txt") {
  RH_TRY(Source source, Source::over(bytes, name, {.max_bytes = 64 << 20}));
  const Format* format = format_of(source.head());
  if (format == nullptr) {
    return fail(Code::kBadInput, "no known format: " + describe(source.head()), name, "-");
  }
  Read out;
  Strings strings;
  SilentReporter silent;
  ReadContext context{strings, out.findings, silent, CutFiles::kRefuse};
  RH_TRY(FilePart part, format->read(source, context));
  out.evidence = std::move(part.evidence);
  out.format = format->name;
  return out;
}

inline Read must_read(std::string_view bytes, const std::string& name = "evidence.txt") {
  auto out = read_bytes(bytes, name);
  if (!out) FAIL(out.error().message());
  return std::move(*out);
}

inline pb::NcclLog log_of(const Read& read) {
  for (const pb::Evidence& e : read.evidence) {
    if (e.has_nccl_log()) return e.nccl_log();
  }
  FAIL("no NCCL log in it");
  return {};
}

inline pb::MeasuredTables tables_of(const Read& read) {
  for (const pb::Evidence& e : read.evidence) {
    if (e.has_measured()) return e.measured();
  }
  FAIL("no table in it");
  return {};
}

// Two ranks of two processes on two hosts, interleaved, over InfiniBand.
inline const char* kTwoRanks =
    R"(a-1:10:10 [0] NCCL INFO NCCL version 2.21.5+cuda12.4
a-1:10:10 [0] NCCL INFO NCCL_SOCKET_IFNAME set by environment to eth0
b-1:20:20 [0] NCCL INFO NCCL_IB_HCA set to mlx5
a-1:10:12 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>
a-1:10:12 [0] NCCL INFO Using network IB
a-1:10:12 [0] NCCL INFO ncclCommInitRank comm 0x1 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 1b000 commId 0xabc - Init START
b-1:20:22 [0] NCCL INFO ncclCommInitRank comm 0x2 rank 1 nranks 2 cudaDev 0 nvmlDev 3 busId 4f000 commId 0xabc - Init START
b-1:20:22 [0] NCCL INFO comm 0x2 rank 1 nRanks 2 nNodes 2 localRanks 1 localRank 0 MNNVL 0
a-1:10:12 [0] NCCL INFO Channel 00/02 :    0   1
a-1:10:12 [0] NCCL INFO Channel 01/02 :    0   1
b-1:20:22 [0] NCCL INFO Trees [0] -1/-1/-1->1->0 [1] 0/-1/-1->1->-1
a-1:10:12 [0] NCCL INFO Trees [0] 1/-1/-1->0->-1 [1] -1/-1/-1->0->1
a-1:10:12 [0] NCCL INFO Channel 00/0 : 1[3] -> 0[0] [receive] via NET/IB/0/GDRDMA
a-1:10:12 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[3] [send] via NET/IB/1
a-1:10:12 [0] NCCL INFO Connected all rings, use ring PXN 0 GDR 1
a-1:10:12 [0] NCCL INFO 2 coll channels, 0 collnet channels, 0 nvls channels, 4 p2p channels, 2 p2p channels per peer
b-1:20:22 [0] NCCL INFO ncclCommInitRank comm 0x2 rank 1 nranks 2 cudaDev 0 nvmlDev 3 busId 4f000 commId 0xabc - Init COMPLETE
a-1:10:10 [0] NCCL INFO AllReduce: opCount 1f sendbuff 0x7 recvbuff 0x8 count 1024 datatype 7 op 0 root 0 comm 0x1 [nranks=2] stream 0x9
a-1:10:10 [0] NCCL INFO 4096 Bytes -> Algo 1 proto 0 time 12.5
[2024-08-13 10:22:33] b-1:20:22 [0] transport/net.cc:512 NCCL WARN Connection closed by remote peer
)";

inline const char* kTable =
    R"(# nccl-tests version 2.17.8 nccl-headers=22902 nccl-library=22902
# Collective test starting: all_reduce_perf
# nThread 1 nGpus 2 minBytes 8 maxBytes 16 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0
#  Rank  0 Group  0 Pid   1343 on hosta device  0 [0000:41:00] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid   1343 on hosta device  1 [0000:44:00] NVIDIA H100 80GB HBM3
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong
           8             2     float     sum      -1    22.72    0.00    0.00       0    22.97    0.00    0.00       0
          16             4     float     sum      -1    24.11    0.00    0.00       0    23.23    0.00    0.00     N/A
# Avg bus bandwidth    : 0.003
)";

inline const char* kInspector =
    R"({"header":{"id":"0xec","rank":1,"n_ranks":2,"nnodes":1},"metadata":{"inspector_output_format_version":"v4.0","git_rev":"","rec_mechanism":"p","dump_timestamp_us":1766474829219208,"hostname":"stone","pid":7},"coll_perf":{"coll":"AllReduce","coll_sn":0,"coll_msg_size_bytes":1024,"coll_exec_time_us":21.5,"coll_timing_source":"kernel_gpu","coll_algobw_gbs":6.1,"coll_busbw_gbs":6.1}}
{"header":{"id":"0xec","rank":1,"n_ranks":2,"nnodes":1},"metadata":{"inspector_output_format_version":"v4.0","dump_timestamp_us":1766474829219300,"hostname":"stone","pid":7},"p2p_perf":{"p2p":"Send","p2p_sn":4,"p2p_peer":0,"p2p_msg_size_bytes":2048,"p2p_exec_time_us":5,"p2p_timing_source":"kernel_cpu","p2p_algobw_gbs":1,"p2p_busbw_gbs":1}}
)";

inline const char* kRecorder =
    R"({"version":"2.9","pg_config":{"0":{"name":"0","desc":"default_pg","ranks":"[0, 1]"}},"nccl_version":"2.27.3","pg_status":{"0":{"last_enqueued_collective":7,"last_started_collective":-1,"last_completed_collective":6}},"entries":[{"record_id":3,"pg_id":0,"process_group":["0","default_pg"],"collective_seq_id":7,"p2p_seq_id":0,"op_id":7,"profiling_name":"nccl:_all_gather_base","time_created_ns":1758610505880883597,"input_sizes":[[4,5]],"input_dtypes":["Float"],"output_sizes":[[8,5]],"output_dtypes":["Float"],"state":"scheduled","time_discovered_started_ns":null,"time_discovered_completed_ns":null,"retired":false,"timeout_ms":600000,"is_p2p":false,"frames":[{"name":"step","filename":"train.py","line":12}]}]})";

}  // namespace rehearse::traces::samples
