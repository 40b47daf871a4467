// SPDX-License-Identifier: Apache-2.0
#include "platforms/import/import.hpp"

#include <fmt/format.h>

#include "base/document.hpp"
#include "platforms/import/smi_table.hpp"

namespace rehearse::platforms {

ImportFormat format_of(std::string_view text) {
  const std::string_view head = text.substr(0, 64u << 10);
  // Comments may stand before the root.
  if (head.find("<system") != std::string_view::npos) return ImportFormat::kNcclTopology;
  if (head.find("<graphs") != std::string_view::npos) return ImportFormat::kNcclGraph;
  if (head.find("NCCL INFO") == std::string_view::npos && has_smi_table(head)) {
    return ImportFormat::kNvidiaSmi;
  }
  return ImportFormat::kUnknown;
}

Result<pb::Platform> expanded(const pb::Platform& compact, const std::string& name,
                              const Machines& machines) {
  pb::Platform platform;
  if (auto ok =
          read_document(write_document(compact), name, platform, machines.catalogue().resolver());
      !ok) {
    return tl::unexpected(ok.error());
  }
  if (auto ok = expand(platform, name); !ok) return tl::unexpected(ok.error());
  return platform;
}

Result<ImportedPlatform> import_seen(const Seen& seen, uint32_t nodes, const std::string& name,
                                     const Machines& machines) {
  RH_TRY(const Match match, best_match(machines, seen));
  ImportedPlatform out;
  out.format = "catalogue match";
  out.platform.set_like(match.id);
  out.platform.set_scale(nodes);
  const auto have = static_cast<uint32_t>(match.node.gpus_size());
  const auto note = [&](const std::string& text) {
    out.platform.add_assumptions(text);
    out.findings.add("assumed", Severity::kInfo, fmt::format("{}: {}", name, text),
                     "check the assumptions of the platform and correct them");
  };
  for (const std::string& each : match.platform.assumptions()) out.platform.add_assumptions(each);
  for (const std::string& what : match.assumed) {
    note(fmt::format("{}: as in {}, the best match of the catalogue", what, match.id));
  }
  if (!match.equal.empty()) {
    std::string others;
    for (const std::string& id : match.equal) others += (others.empty() ? "" : ", ") + id;
    note(fmt::format("{} fit as well as {}", others, match.id));
  }
  if (!seen.gpu_model.empty() && !match.gpu_told) {
    note(
        fmt::format("the GPU '{}' is not in the catalogue; {} is the nearest by compute "
                    "capability and memory",
                    seen.gpu_model, match.node.gpus(0).model()));
  }
  if (seen.gpus > 0 && seen.gpus != have) {
    note(fmt::format("{} GPUs per node were seen of {} in {}", seen.gpus, have, match.id));
  }
  if (seen.gpus > have) {
    out.findings.add("too-many-gpus", Severity::kWarning, name,
                     "no machine of the catalogue has as many; write the platform by hand");
  }
  return out;
}

}  // namespace rehearse::platforms
