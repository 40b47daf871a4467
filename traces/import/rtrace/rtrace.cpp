// SPDX-License-Identifier: Apache-2.0
#include "traces/import/rtrace/rtrace.hpp"

#include "traces/model/rtrace.hpp"

namespace rehearse::traces::rtrace {

bool sniff(std::string_view head) { return head.starts_with("RTRACE"); }

Result<FilePart> read(Source& source, ReadContext& context) {
  if (source.path().empty() || source.encoding() != Encoding::kPlain) {
    return fail(Code::kBadInput, "a .rtrace is compressed inside and is read from a plain file",
                source.name(), "unpack it first");
  }
  ReadOptions options;
  if (context.cut_files == CutFiles::kAccept) options.truncated = Truncated::kAccept;
  FilePart part;
  RH_TRY(part.whole, read_rtrace(source.path(), options, context.reporter));
  return part;
}

}  // namespace rehearse::traces::rtrace
