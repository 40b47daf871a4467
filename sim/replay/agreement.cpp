// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/agreement.hpp"

#include <algorithm>

namespace rehearse::sim {
namespace {

using traces::Collective;

bool same_type(const traces::Call& a, const traces::Call& b) {
  return a.dtype == b.dtype || a.dtype == traces::DType::kUnknown ||
         b.dtype == traces::DType::kUnknown;
}

bool same_reduction(const traces::Call& a, const traces::Call& b) {
  return a.reduction == b.reduction || a.reduction == traces::Reduction::kNone ||
         b.reduction == traces::Reduction::kNone;
}

Agreement pair(const traces::Call& a, const traces::Call& b, Bytes credit) {
  if (a.collective == b.collective) return Agreement::kNeverEnds;  // two sends or two recvs
  const traces::Call& send = a.collective == Collective::kSend ? a : b;
  const traces::Call& recv = a.collective == Collective::kSend ? b : a;
  // Importers fill in one of the two sizes or both.
  const Bytes sent = std::max(send.bytes_in, send.bytes_out);
  const Bytes wanted = std::max(recv.bytes_in, recv.bytes_out);
  if (sent == wanted) return Agreement::kAgree;
  return sent > wanted && sent - wanted <= credit ? Agreement::kCorrupts : Agreement::kNeverEnds;
}

}  // namespace

Agreement agreement(const traces::Call& a, const traces::Call& b, Bytes credit) {
  if (traces::is_point_to_point(a.collective) && traces::is_point_to_point(b.collective)) {
    return pair(a, b, credit);
  }
  if (a.collective != b.collective) return Agreement::kNeverEnds;
  const Agreement content = same_type(a, b) ? Agreement::kAgree : Agreement::kCorrupts;
  const Agreement reduced =
      same_type(a, b) && same_reduction(a, b) ? Agreement::kAgree : Agreement::kCorrupts;
  switch (a.collective) {
    case Collective::kAllReduce:
    case Collective::kReduceScatter:
      return a.bytes_in == b.bytes_in && a.bytes_out == b.bytes_out ? reduced
                                                                    : Agreement::kNeverEnds;
    case Collective::kAllGather:
      return a.bytes_in == b.bytes_in && a.bytes_out == b.bytes_out ? content
                                                                    : Agreement::kNeverEnds;
    case Collective::kBroadcast:
    case Collective::kReduce: {
      const bool alike = a.peer == b.peer &&
                         std::max(a.bytes_in, a.bytes_out) == std::max(b.bytes_in, b.bytes_out);
      if (!alike) return Agreement::kNeverEnds;
      return a.collective == Collective::kReduce ? reduced : content;
    }
    case Collective::kGather:
    case Collective::kScatter:
      return a.peer == b.peer ? Agreement::kAgree : Agreement::kNeverEnds;
    default:
      return Agreement::kAgree;  // sizes may differ by rank
  }
}

}  // namespace rehearse::sim
