// SPDX-License-Identifier: Apache-2.0
#include "faults/check/files/machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <charconv>
#include <regex>

#include "base/environment.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "platforms/import/smi_table.hpp"

namespace rehearse::faults {
namespace {

// Patterns are matched against single lines; longer ones are not of these programs.
constexpr size_t kLongestLine = 1000;

template <typename T>
T number_of(const std::string& text) {
  T value{};
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

pb::InterfaceKind kind_by_name(const std::string& name, bool infiniband, bool loopback) {
  if (loopback) return pb::LOOPBACK;
  if (infiniband) return pb::IPOIB;
  for (const char* bridge : {"docker", "br-", "virbr", "cni", "flannel", "veth", "cali", "lxc"}) {
    if (name.starts_with(bridge)) return pb::BRIDGE;
  }
  return pb::LAN;
}

std::vector<std::string> short_lines(std::string_view text) {
  std::vector<std::string> out;
  for (std::string& line : split(text, '\n')) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.size() <= kLongestLine) out.push_back(std::move(line));
  }
  return out;
}

// Of an interface, as ip and ifconfig list them: UP,BROADCAST,RUNNING.
class Flags {
 public:
  explicit Flags(const std::string& listed) : text_("," + listed + ",") {}
  [[nodiscard]] bool has(const std::string& flag) const {
    return text_.find("," + flag + ",") != text_.npos;
  }

 private:
  std::string text_;
};

// In the order in which they are named first.
struct Interfaces {
  std::vector<pb::Interface> all;
  size_t current = 0;  // the one that was opened last

  pb::Interface& open(const std::string& name, bool loopback) {
    const auto at =
        std::find_if(all.begin(), all.end(), [&](const auto& each) { return each.name() == name; });
    current = static_cast<size_t>(at - all.begin());
    if (at != all.end()) return *at;
    pb::Interface& fresh = all.emplace_back();
    fresh.set_name(name);
    fresh.set_kind(kind_by_name(name, name.starts_with("ib"), loopback));
    return fresh;
  }

  pb::Interface& open(const std::string& name, const Flags& flags, const std::string& mtu) {
    pb::Interface& interface = open(name, flags.has("LOOPBACK"));
    interface.set_mtu(number_of<uint32_t>(mtu));
    return interface;
  }

  // To the current one. Link-local addresses lead nowhere else.
  void add(const std::string& address) {
    if (!all.empty() && !address.starts_with("fe80")) all[current].add_addresses(address);
  }
};

// A line of `ip -o addr` or `ip -br addr`.
void read_short_line(const std::string& line, Interfaces& out) {
  static const std::regex one(R"(^\d+: ([^:@ ]+)(?:@\S*)?\s+inet6? ([0-9a-fA-F:.]+/\d+))");
  static const std::regex brief(R"(^([^:@\s]+)(?:@\S*)?\s+(UP|DOWN|UNKNOWN)\b(.*)$)");
  std::smatch found;
  if (std::regex_search(line, found, one)) {
    out.open(found[1].str(), found[1] == "lo");
    out.add(found[2].str());
  } else if (std::regex_search(line, found, brief)) {
    out.open(found[1].str(), found[1] == "lo").set_down(found[2] == "DOWN");
    for (const std::string& word : split(found[3].str(), ' ')) {
      if (word.find('/') != word.npos) out.add(word);
    }
  }
}

// 24 of 255.255.255.0.
int bits_of(const std::string& mask) {
  int bits = 0;
  for (const std::string& part : split(mask, '.')) {
    bits += std::popcount(number_of<uint8_t>(part));
  }
  return bits;
}

// Names of packages as the tables of the check have them.
std::string component_of(std::string name) {
  for (char& c : name)
    c = c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (name == "torch") return "pytorch";
  if (name.starts_with("nvidia-nccl")) return "nccl";
  if (name.starts_with("nvidia-cudnn")) return "cudnn";
  if (name.starts_with("nvidia-cuda-runtime")) return "cuda";
  if (name == "tensorflow-gpu") return "tensorflow";
  for (const char* known :
       {"tensorflow", "horovod", "keras", "numpy", "protobuf", "deepspeed", "transformers"}) {
    if (name == known) return name;
  }
  return {};
}

}  // namespace

std::vector<pb::Interface> read_ip_addr(std::string_view text) {
  static const std::regex head(R"(^\d+: ([^:@ ]+)(?:@[^:]*)?: <([A-Z0-9_,-]*)> mtu (\d+)(.*)$)");
  static const std::regex address(R"(^\s+inet6? ([0-9a-fA-F:.]+/\d+))");
  Interfaces out;
  for (const std::string& line : short_lines(text)) {
    std::smatch found;
    if (std::regex_search(line, found, head)) {
      const Flags flags(found[2].str());
      pb::Interface& interface = out.open(found[1].str(), flags, found[3].str());
      const bool up = flags.has("UP") && found[4].str().find("state DOWN") == std::string::npos;
      interface.set_down(!up || flags.has("NO-CARRIER"));
    } else if (!out.all.empty() && line.find("link/infiniband") != line.npos) {
      out.all[out.current].set_kind(pb::IPOIB);
    } else if (std::regex_search(line, found, address)) {
      out.add(found[1].str());
    } else {
      read_short_line(line, out);
    }
  }
  return std::move(out.all);
}

std::vector<pb::Interface> read_ifconfig(std::string_view text) {
  static const std::regex head(R"(^([^:\s]+): flags=\d+<([A-Z0-9_,-]*)>\s+mtu (\d+))");
  static const std::regex address(R"(^\s+inet ([0-9.]+)\s+netmask ([0-9.]+))");
  static const std::regex address6(R"(^\s+inet6 ([0-9a-fA-F:]+)\s+prefixlen (\d+))");
  Interfaces out;
  for (const std::string& line : short_lines(text)) {
    std::smatch found;
    if (std::regex_search(line, found, head)) {
      const Flags flags(found[2].str());
      out.open(found[1].str(), flags, found[3].str())
          .set_down(!flags.has("UP") || !flags.has("RUNNING"));
    } else if (std::regex_search(line, found, address)) {
      out.add(fmt::format("{}/{}", found[1].str(), bits_of(found[2].str())));
    } else if (std::regex_search(line, found, address6)) {
      out.add(fmt::format("{}/{}", found[1].str(), found[2].str()));
    }
  }
  return std::move(out.all);
}

std::vector<pb::Route> read_routes(std::string_view text) {
  std::vector<pb::Route> out;
  for (const std::string& line : short_lines(text)) {
    const std::vector<std::string> words = shell_words(line, {});
    const auto after = [&](const char* word) {
      const auto at = std::find(words.begin(), words.end(), word);
      return at == words.end() || at + 1 == words.end() ? std::string() : *(at + 1);
    };
    pb::Route route;
    if (!after("dev").empty()) {
      if (words[0].empty()) continue;  // a word in quotes
      // What is not reached is written as a route too: unreachable, blackhole, prohibit.
      if (std::isalpha(static_cast<unsigned char>(words[0].front())) != 0 && words[0] != "default")
        continue;
      route.set_destination(words[0]);
      route.set_via(after("via"));
      route.set_interface(after("dev"));
    } else if (words.size() >= 8 && words[0].find_first_not_of("0123456789.") == words[0].npos) {
      // Destination, gateway, mask, flags, ..., device.
      const int bits = bits_of(words[2]);
      route.set_destination(bits == 0 ? "default" : fmt::format("{}/{}", words[0], bits));
      if (words[1] != "0.0.0.0") route.set_via(words[1]);
      route.set_interface(words.back());
    } else {
      continue;
    }
    out.push_back(std::move(route));
  }
  return out;
}

std::vector<pb::Nic> read_ibstat(std::string_view text) {
  static const std::regex head(R"(^(?:CA '|Infiniband device '|hca_id:\s+)([^'\s]+))");
  static const std::regex field(
      R"(^\s+(State|state|Rate|rate|Link layer|link_layer|active_mtu):\s+(?:\d+: |PORT_)?(.+)$)");
  std::vector<pb::Nic> out;
  for (const std::string& line : short_lines(text)) {
    std::smatch found;
    if (std::regex_search(line, found, head)) {
      out.emplace_back().set_name(found[1].str());
      out.back().set_kind(pb::INFINIBAND);
      // ibstat does not say; only what is known to be wrong is reported.
      out.back().set_gpudirect(true);
    } else if (!out.empty() && std::regex_search(line, found, field)) {
      pb::Nic& nic = out.back();
      const std::string name = lower_case(found[1].str());
      const std::string value = lower_case(found[2].str());
      if (name == "state") nic.set_down(!value.starts_with("active"));
      if (name.starts_with("link") && value.starts_with("ethernet")) nic.set_kind(pb::ROCE);
      if (name == "rate") nic.set_bandwidth(number_of<double>(value) * 1e9 / 8);
      if (name == "active_mtu") nic.set_mtu(number_of<uint32_t>(value));
    }
  }
  return out;
}

std::map<std::string, std::string> read_versions(std::string_view text) {
  static const std::regex package(
      R"(^\s*([A-Za-z][A-Za-z0-9_.-]*)(?:==|\s+)(\d[0-9A-Za-z.+]*)\s*$)");
  static const std::regex driver(R"(Driver Version:\s*([0-9.]+))");
  static const std::regex toolkit(R"(release (\d+\.\d+))");
  static const std::regex mpi(R"(\(Open MPI\) ([0-9.]+))");
  static const std::regex python(R"(^Python (\d+\.\d+\.\d+))");
  std::map<std::string, std::string> out;
  for (const std::string& line : short_lines(text)) {
    std::smatch found;
    if (std::regex_search(line, found, driver)) out["driver"] = found[1].str();
    if (std::regex_search(line, found, mpi)) out["openmpi"] = found[1].str();
    if (std::regex_search(line, found, python)) out["python"] = found[1].str();
    if (line.find("Cuda compilation tools") != line.npos &&
        std::regex_search(line, found, toolkit)) {
      out["cuda"] = found[1].str();
    }
    if (!std::regex_match(line, found, package)) continue;
    if (const std::string component = component_of(found[1].str()); !component.empty()) {
      out[component] = found[2].str();
    }
  }
  return out;
}

TopologyParts read_topology(const std::string& text, const std::string& name) {
  TopologyParts out;
  const auto table = platforms::read_smi_table({name, text});
  if (!table) return out;
  for (const platforms::SmiDevice& device : *table) {
    if (device.gpu) {
      ++out.gpus;
    } else {
      out.adapters.push_back(device.name);
    }
  }
  return out;
}

int64_t read_shm(std::string_view text) {
  for (const std::string& line : short_lines(text)) {
    if (!line.ends_with("/dev/shm")) continue;
    static const std::regex sizes(R"(^\S+\s+([0-9.]+)([KMGT]?))");
    std::smatch found;
    if (!std::regex_search(line, found, sizes)) continue;
    // Without -h the unit is 1 KiB.
    const std::string unit = found[2].str().empty() ? "Ki" : found[2].str() + "i";
    const auto bytes = parse_bytes(found[1].str() + unit + "B");
    if (bytes) return *bytes;
  }
  return 0;
}

void describe_node(FileKind kind, const std::string& text, const std::string& name,
                   pb::Node& node) {
  switch (kind) {
    case FileKind::kIpAddr:
      for (pb::Interface& each :
           text.find("flags=") == text.npos ? read_ip_addr(text) : read_ifconfig(text)) {
        *node.add_interfaces() = std::move(each);
      }
      break;
    case FileKind::kRoutes:
      for (pb::Route& each : read_routes(text)) *node.add_routes() = std::move(each);
      break;
    case FileKind::kIbstat:
      node.clear_nics();
      for (pb::Nic& each : read_ibstat(text)) *node.add_nics() = std::move(each);
      break;
    case FileKind::kTopology: {
      const TopologyParts parts = read_topology(text, name);
      for (uint32_t g = 0; g < parts.gpus; ++g) node.add_gpus()->set_name(fmt::format("gpu{}", g));
      if (node.nics_size() > 0) break;
      for (const std::string& adapter : parts.adapters) {
        pb::Nic& nic = *node.add_nics();
        nic.set_name(adapter);
        nic.set_gpudirect(true);
      }
      break;
    }
    case FileKind::kVersions:
      for (const auto& [package, version] : read_versions(text))
        (*node.mutable_versions())[package] = version;
      break;
    case FileKind::kSharedMemory:
      node.set_shm(read_shm(text));
      break;
    default:
      break;
  }
}

}  // namespace rehearse::faults
