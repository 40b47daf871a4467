// SPDX-License-Identifier: Apache-2.0
#include "traces/import/csv/job.hpp"

#include "base/document.hpp"
#include "traces/proto/table.pb.h"

namespace rehearse::traces::csv {
namespace {

constexpr size_t kLongestJob = 64 << 10;

}  // namespace

bool sniff_job(std::string_view head) {
  if (head.size() > kLongestJob) return false;
  const auto line = [&](std::string_view key) {
    return head.starts_with(key) ||
           head.find(std::string("\n").append(key)) != std::string_view::npos;
  };
  return line("world_size:") && line("dp_size:") && line("pp_size:");
}

Result<FilePart> read_job(Source& source, ReadContext&) {
  std::string text(kLongestJob + 1, '\0');
  size_t size = 0;
  for (;;) {
    RH_TRY(const size_t got, source.read(std::span(text).subspan(size)));
    if (got == 0) break;
    size += got;
    if (size > kLongestJob) return fail(Code::kLimit, "longer than 64 KiB", source.name());
  }
  text.resize(size);
  pb::TableJob job;
  if (auto read = read_document(text, source.name(), job); !read)
    return tl::unexpected(read.error());
  FilePart part;
  part.job = job.trial_name();
  part.world_size = job.world_size();
  return part;
}

}  // namespace rehearse::traces::csv
