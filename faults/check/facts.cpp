// SPDX-License-Identifier: Apache-2.0
#include "faults/check/facts.hpp"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "base/proto/options.pb.h"
#include "base/text.hpp"
#include "sim/nccl/networks.hpp"
#include "sim/scenario/environment.hpp"
#include "sim/timers/settings.hpp"

namespace rehearse::faults {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

Value scalar_text(const Message& message, const FieldDescriptor& field) {
  const auto& r = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return r.GetBool(message, &field) ? "true" : "false";
    case FieldDescriptor::CPPTYPE_UINT32:
      return std::to_string(r.GetUInt32(message, &field));
    case FieldDescriptor::CPPTYPE_INT64: {
      const auto value = static_cast<double>(r.GetInt64(message, &field));
      return number_text(field.options().GetExtension(pb::unit) == pb::NANOSECONDS ? value / 1e9
                                                                                   : value);
    }
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return number_text(r.GetDouble(message, &field));
    case FieldDescriptor::CPPTYPE_ENUM:
      return enum_word(*field.enum_type(), r.GetEnumValue(message, &field));
    case FieldDescriptor::CPPTYPE_STRING:
      return r.GetString(message, &field);
    default:
      return std::nullopt;
  }
}

// Fields that are set, as facts.
void add_fields(const Message& message, const std::string& prefix, FactMap& out) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->is_repeated()) {
      const bool numbers = field->cpp_type() == FieldDescriptor::CPPTYPE_UINT32;
      if ((!numbers && field->cpp_type() != FieldDescriptor::CPPTYPE_STRING) || field->is_map())
        continue;
      std::string joined;
      for (int i = 0; i < message.GetReflection()->FieldSize(message, field); ++i) {
        const auto& r = *message.GetReflection();
        joined +=
            (i > 0 ? "," : "") + (numbers ? std::to_string(r.GetRepeatedUInt32(message, field, i))
                                          : r.GetRepeatedString(message, field, i));
      }
      out[prefix + field->name()] = joined;
    } else if (const Value text = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE
                                      ? std::nullopt
                                      : scalar_text(message, *field)) {
      out[prefix + field->name()] = *text;
    }
  }
}

std::string joined_words(const auto& words) {
  return fmt::format("{}", fmt::join(words.begin(), words.end(), ", "));
}

FactMap job_facts(const pb::Scenario& document, uint32_t elsewhere) {
  const pb::Launch& launch = document.launch();
  FactMap out;
  const auto put = [&](const char* name, const std::string& value) {
    if (!value.empty() && value != "0") out[name] = value;
  };
  if (launch.framework() != pb::FRAMEWORK_UNSPECIFIED) {
    out["framework"] = enum_word(*pb::Framework_descriptor(), launch.framework());
  }
  if (launch.launcher() != pb::LAUNCHER_UNSPECIFIED) {
    out["launcher"] = enum_word(*pb::Launcher_descriptor(), launch.launcher());
  }
  out["backend"] = enum_word(*pb::Backend_descriptor(), launch.backend());
  put("framework_version", launch.framework_version());
  put("nccl_version", launch.nccl_version());
  put("world_size", std::to_string(launch.world_size()));
  const auto started = std::count_if(launch.ranks().begin(), launch.ranks().end(),
                                     [](const pb::RankLaunch& rank) { return !rank.absent(); });
  put("ranks", std::to_string(static_cast<uint64_t>(started) + elsewhere));
  put("master_addr", launch.master_addr());
  put("master_port", std::to_string(launch.master_port()));
  const pb::Platform& platform = document.platform();
  put("nodes", std::to_string(platform.nodes_size()));
  std::set<uint32_t> used;
  for (const pb::RankLaunch& rank : launch.ranks()) used.insert(rank.node());
  out["multi_node"] =
      used.size() > 1 || (used.empty() && platform.nodes_size() > 1) ? "true" : "false";
  if (platform.fabric().kind() != pb::FABRIC_KIND_UNSPECIFIED) {
    out["fabric.kind"] = enum_word(*pb::FabricKind_descriptor(), platform.fabric().kind());
    out["fabric.ecmp"] = platform.fabric().ecmp() ? "true" : "false";
  }
  if (platform.storage_size() > 0) put("storage.write", number_text(platform.storage(0).write()));
  add_fields(document.trace().synth(), "layout.", out);
  add_fields(launch.training(), "training.", out);
  add_fields(launch.training().checkpoint(), "checkpoint.", out);
  return out;
}

FactMap node_facts(const pb::Scenario& document, int index) {
  const pb::Node& node = document.platform().nodes(index);
  const pb::Launch& launch = document.launch();
  FactMap out;
  const auto number = [&](const char* name, double value) {
    if (value > 0) out[name] = number_text(value);
  };
  out["node"] = std::to_string(index);
  out["node.name"] = node.name().empty() ? fmt::format("node {}", index) : node.name();
  number("node.gpus", node.gpus_size());
  number("node.ranks",
         static_cast<double>(std::count_if(launch.ranks().begin(), launch.ranks().end(),
                                           [&](const pb::RankLaunch& rank) {
                                             return rank.node() == static_cast<uint32_t>(index);
                                           })));
  int up = 0, rdma = 0, cores = 0;
  for (const pb::Nic& nic : node.nics()) {
    up += nic.down() ? 0 : 1;
    rdma += nic.down() || nic.kind() == pb::ETHERNET ? 0 : 1;
  }
  for (const pb::NumaDomain& numa : node.numa()) cores += static_cast<int>(numa.cores());
  if (node.nics_size() > 0) {
    out["node.nics"] = std::to_string(node.nics_size());
    out["node.nics_up"] = std::to_string(up);
    out["node.rdma"] = std::to_string(rdma);
  }
  number("node.cores", cores);
  number("node.shm", static_cast<double>(node.shm()));
  number("node.memory", static_cast<double>(node.memory()));
  number("node.locked_memory", static_cast<double>(node.locked_memory()));
  number("node.open_files", node.open_files());
  out["node.virtual"] = node.virtual_machine() ? "true" : "false";
  out["node.acs"] = node.acs() ? "true" : "false";
  out["node.iommu"] = node.iommu() ? "true" : "false";
  if (node.missing_paths_size() > 0) out["node.missing_paths"] = joined_words(node.missing_paths());
  if (node.missing_packages_size() > 0)
    out["node.missing_packages"] = joined_words(node.missing_packages());
  if (!launch.nccl_version().empty()) out["version.nccl"] = launch.nccl_version();
  if (launch.framework() != pb::FRAMEWORK_UNSPECIFIED && !launch.framework_version().empty()) {
    out["version." + enum_word(*pb::Framework_descriptor(), launch.framework())] =
        launch.framework_version();
  }
  for (const auto& [name, version] : node.versions()) {
    if (!version.empty()) out["version." + lower_case(name)] = version;
  }
  return out;
}

const char* word_of(sim::NetworkLibrary library) {
  switch (library) {
    case sim::NetworkLibrary::kAny:
      return "any";
    case sim::NetworkLibrary::kIb:
      return "ib";
    case sim::NetworkLibrary::kSocket:
      return "socket";
    case sim::NetworkLibrary::kLibfabric:
      return "libfabric";
    case sim::NetworkLibrary::kUnknown:
      break;
  }
  return "unknown";
}

constexpr std::string_view kNames[] = {"framework",
                                       "framework_version",
                                       "launcher",
                                       "backend",
                                       "nccl_version",
                                       "world_size",
                                       "ranks",
                                       "nodes",
                                       "multi_node",
                                       "master_addr",
                                       "master_port",
                                       "timeout",
                                       "fabric.kind",
                                       "fabric.ecmp",
                                       "storage.write",
                                       "node",
                                       "node.name",
                                       "node.gpus",
                                       "node.ranks",
                                       "node.nics",
                                       "node.nics_up",
                                       "node.rdma",
                                       "node.shm",
                                       "node.memory",
                                       "node.locked_memory",
                                       "node.open_files",
                                       "node.virtual",
                                       "node.acs",
                                       "node.iommu",
                                       "node.cores",
                                       "node.missing_paths",
                                       "node.missing_packages",
                                       "rank",
                                       "local_rank",
                                       "computes_wrong",
                                       "gpu",
                                       "gpu.model",
                                       "gpu.memory",
                                       "gpu.capability",
                                       "net.asked",
                                       "net.verbs_off",
                                       "true",
                                       "false"};

bool has_field(const google::protobuf::Descriptor& type, std::string_view name) {
  return type.FindFieldByName(std::string(name)) != nullptr;
}

}  // namespace

std::string enum_word(const google::protobuf::EnumDescriptor& type, int value) {
  const auto* found = type.FindValueByNumber(value);
  std::string out = found == nullptr ? "" : lower_case(found->name());
  std::replace(out.begin(), out.end(), '_', '-');
  return out;
}

bool is_variable_name(std::string_view name) {
  return !name.empty() && std::isupper(static_cast<unsigned char>(name.front())) != 0 &&
         std::none_of(name.begin(), name.end(),
                      [](char c) { return c == '.' || c == '-' || c == ' '; });
}

Facts::Facts(const pb::Scenario& document, uint32_t elsewhere)
    : document_(&document), job_(job_facts(document, elsewhere)) {
  const pb::Launch& launch = document.launch();
  for (int n = 0; n < document.platform().nodes_size(); ++n)
    node_facts_.push_back(node_facts(document, n));
  std::map<uint32_t, uint32_t> seats;  // by node: ranks seen
  for (const pb::RankLaunch& rank : launch.ranks()) {
    const bool there = rank.node() < node_facts_.size();
    rank_node_.push_back(there ? rank.node() : node_facts_.size());
    FactMap facts;
    facts["rank"] = std::to_string(rank.rank());
    facts["gpu"] = std::to_string(rank.gpu());
    if (rank.computes_wrong()) facts["computes_wrong"] = "true";
    facts["local_rank"] = std::to_string(seats[rank.node()]++);
    const pb::Node* node =
        there ? &document.platform().nodes(static_cast<int>(rank.node())) : nullptr;
    if (node != nullptr && rank.gpu() < static_cast<uint32_t>(node->gpus_size())) {
      const pb::Gpu& gpu = node->gpus(static_cast<int>(rank.gpu()));
      if (!gpu.model().empty()) facts["gpu.model"] = gpu.model();
      if (gpu.memory() > 0) facts["gpu.memory"] = number_text(static_cast<double>(gpu.memory()));
      if (gpu.compute_capability() > 0)
        facts["gpu.capability"] = std::to_string(gpu.compute_capability());
    }
    rank_facts_.push_back(std::move(facts));
    const auto env = sim::environment_of(launch, rank);
    environments_.emplace_back(env.begin(), env.end());
    // Programs read either spelling of these.
    constexpr std::pair<const char*, const char*> kProxies[] = {{"http_proxy", "HTTP_PROXY"},
                                                                {"https_proxy", "HTTPS_PROXY"},
                                                                {"all_proxy", "ALL_PROXY"},
                                                                {"no_proxy", "NO_PROXY"}};
    for (const auto& [small, large] : kProxies) {
      const auto at = env.find(small);
      if (at != env.end()) environments_.back().emplace(large, at->second);
    }
    rank_facts_.back()["net.asked"] = word_of(sim::asked_network(env));
    rank_facts_.back()["net.verbs_off"] = sim::verbs_disabled(env) ? "true" : "false";
  }
  if (!environments_.empty() && launch.framework() == pb::PYTORCH) {
    Findings ignored;
    const auto timers =
        sim::timers_of(launch, sim::environment_of(launch, launch.ranks(0)), ignored);
    job_["timeout"] = number_text(static_cast<double>(timers.torch.timeout) / 1e9);
  }
}

Value Facts::shared_variable(const Place& place, std::string_view name) const {
  Value shared;
  bool first = true;
  for (size_t r = 0; r < environments_.size(); ++r) {
    if (place.node && rank_node_[r] != *place.node) continue;
    const auto at = environments_[r].find(name);
    const Value value = at == environments_[r].end() ? std::nullopt : Value(at->second);
    if (!first && value != shared) return std::nullopt;
    shared = value;
    first = false;
  }
  return shared;
}

Value Facts::get(const Place& place, std::string_view name) const {
  const auto find = [&](const FactMap& facts) -> Value {
    const auto at = facts.find(name);
    return at == facts.end() ? std::nullopt : Value(at->second);
  };
  if (is_variable_name(name)) {
    return place.rank ? find(environments_[*place.rank]) : shared_variable(place, name);
  }
  const size_t node =
      place.rank ? rank_node_[*place.rank] : place.node.value_or(node_facts_.size());
  Value out;
  if (place.rank) out = find(rank_facts_[*place.rank]);
  if (!out && node < node_facts_.size()) out = find(node_facts_[node]);
  return out ? out : find(job_);
}

bool Facts::is_known(std::string_view name) {
  if (is_variable_name(name) || name.starts_with("version.")) return true;
  if (std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames)) return true;
  const auto below = [&](std::string_view prefix, const google::protobuf::Descriptor& type) {
    return name.starts_with(prefix) && has_field(type, name.substr(prefix.size()));
  };
  return below("layout.", *pb::Synth::descriptor()) ||
         below("training.", *pb::Training::descriptor()) ||
         below("checkpoint.", *pb::Checkpointing::descriptor());
}

}  // namespace rehearse::faults
