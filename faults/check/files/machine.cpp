// SPDX-License-Identifier: Apache-2.0
#include "faults/check/files/machine.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <regex>

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
  std::vector<pb::Interface> out;
  bool infiniband = false;
  for (const std::string& line : short_lines(text)) {
    std::smatch found;
    if (std::regex_search(line, found, head)) {
      pb::Interface& interface = out.emplace_back();
      const std::string flags = "," + found[2].str() + ",";
      interface.set_name(found[1].str());
      interface.set_mtu(number_of<uint32_t>(found[3].str()));
      const bool up = flags.find(",UP,") != flags.npos &&
                      found[4].str().find("state DOWN") == std::string::npos;
      interface.set_down(!up || flags.find("NO-CARRIER") != flags.npos);
      infiniband = interface.name().starts_with("ib");
      interface.set_kind(
          kind_by_name(interface.name(), infiniband, flags.find(",LOOPBACK,") != flags.npos));
    } else if (!out.empty() && line.find("link/infiniband") != line.npos) {
      out.back().set_kind(pb::IPOIB);
    } else if (!out.empty() && std::regex_search(line, found, address)) {
      // Link-local addresses lead nowhere else.
      if (!found[1].str().starts_with("fe80")) out.back().add_addresses(found[1].str());
    }
  }
  return out;
}

std::vector<pb::Nic> read_ibstat(std::string_view text) {
  static const std::regex head(R"(^CA '([^']+)')");
  static const std::regex field(R"(^\s+(State|Rate|Link layer): (.+)$)");
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
      if (found[1] == "State") nic.set_down(!found[2].str().starts_with("Active"));
      if (found[1] == "Link layer" && found[2].str().starts_with("Ethernet"))
        nic.set_kind(pb::ROCE);
      if (found[1] == "Rate") nic.set_bandwidth(number_of<double>(found[2].str()) * 1e9 / 8);
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

}  // namespace rehearse::faults
