// SPDX-License-Identifier: Apache-2.0
#include "validation/pairs/reading.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <regex>

#include "base/document.hpp"
#include "base/install.hpp"
#include "base/text.hpp"
#include "sim/nccl/variables.hpp"

namespace rehearse::validation {
namespace {

constexpr uint32_t kMostNodes = 4096;
constexpr int64_t kAssumedBytes = int64_t{1} << 30;

// Lower case, one blank for everything that is neither letter nor digit, blanks at both ends: " acs in vm ".
std::string plain(const std::string& text) {
  std::string out = " ";
  for (const char c : lower_case(text)) {
    const bool keep = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (keep) out += c;
    if (!keep && out.back() != ' ') out += ' ';
  }
  return out.back() == ' ' ? out : out + ' ';
}

bool holds(const std::string& plain_text, const std::string& phrase) {
  return plain_text.find(plain(phrase)) != std::string::npos;
}

template <typename Words>
bool holds_all(const std::string& plain_text, const Words& words) {
  return std::all_of(words.begin(), words.end(),
                     [&](const std::string& word) { return holds(plain_text, word); });
}

// The first number that a pattern finds; 0: none.
uint32_t number_in(const std::string& text, const std::string& pattern) {
  std::smatch found;
  if (!std::regex_search(text, found, std::regex(pattern))) return 0;
  const std::string digits = found[1].str();
  uint32_t value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

struct Machine {
  std::string platform;
  std::string word;    // that names it
  bool whole = false;  // the word is of the machine, not of its GPUs
  pb::Node node;
  uint32_t nodes = 0;
  uint32_t gpus = 0;  // per node
};

// "1 GB", "512MB", "8GiB", "@1638400 B"; not "GB/s".
int64_t size_in(const std::string& text) {
  static const std::regex size(R"((\d+(?:\.\d+)?)\s*(k|m|g)i?b\b(?!\s*/))", std::regex::icase);
  static const std::regex plain_bytes(R"(@\s*(\d{1,15})\s*(?:B|bytes?)\b(?!\s*/))");
  std::smatch found;
  if (!std::regex_search(text, found, size)) {
    return std::regex_search(text, found, plain_bytes) ? std::stoll(found[1].str()) : 0;
  }
  double value = 0;
  const std::string digits = found[1].str();
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const char unit = static_cast<char>(std::tolower(static_cast<unsigned char>(found[2].str()[0])));
  // Benchmarks say MB and mean 2^20.
  const double factor = unit == 'k' ? 1 << 10 : unit == 'm' ? 1 << 20 : 1 << 30;
  return value * factor < 1e15 ? static_cast<int64_t>(value * factor) : 0;
}

std::string collective_in(const std::string& text) {
  static const std::vector<std::pair<const char*, const char*>> kNames = {
      {"all_reduce", "all_?-?reduce"},         {"sendrecv", "send_?-?recv"},
      {"all_to_all", "all_?-?to_?-?all"},      {"all_gather", "all_?-?gather"},
      {"reduce_scatter", "reduce_?-?scatter"}, {"broadcast", "broadcast"}};
  for (const auto& [name, pattern] : kNames) {
    if (std::regex_search(text, std::regex(pattern, std::regex::icase))) return name;
  }
  return "";
}

// Ports that are left when `keep` of `all` are there, spread over the node; the others as a list of indices.
std::string taken_away(uint32_t keep, uint32_t all) {
  std::vector<uint32_t> away;
  for (uint32_t i = 0; i < all; ++i) {
    if (i * keep % all >= keep) away.push_back(i);
  }
  return format_ranks(away);
}

bool alike(const pb::PairState& a, const pb::PairState& b) {
  const auto sorted = [](const auto& map) {
    return std::map<std::string, std::string>(map.begin(), map.end());
  };
  return a.nccl_version() == b.nccl_version() && sorted(a.env()) == sorted(b.env()) &&
         sorted(a.set()) == sorted(b.set());
}

// "4 x": how many of what follows.
const char* const kTimes = R"(\b(\d+)\s*x?\s*(?:nvidia |aws |azure |dgx )?)";

}  // namespace

Result<PairReader> PairReader::shipped_words() {
  RH_TRY(const auto file, shipped("validation/figures/pair_words.yaml"));
  RH_TRY(const auto folder, shipped("platforms/catalogue"));
  pb::PairWords words;
  if (auto read = read_document_file(file.string(), words); !read) {
    return tl::unexpected(read.error());
  }
  return PairReader(std::move(words), platforms::PlatformCatalogue(folder));
}

namespace {

class OnePair {
 public:
  OnePair(const PublishedPair& pair, const pb::PairWords& words,
          const platforms::PlatformCatalogue& catalogue)
      : pair_(pair), words_(words), catalogue_(catalogue) {}

  Result<pb::PairModel> read() {
    if (!pair_.gain()) return unsaid("one of its two figures is no number");
    static const std::regex training(R"(step|epoch|img|image|token|sample|iter)",
                                     std::regex::icase);
    if (std::regex_search(pair_.metric, training)) {
      return unsaid("it is a training job whose model is not described as one");
    }
    if (auto found = machine(); !found) return tl::unexpected(found.error());
    ports();
    call();
    version();
    mechanisms();
    variables();
    algorithm();
    if (alike(model_.before(), model_.after())) {
      return unsaid("what was wrong is none of the mechanisms that can be read from words");
    }
    return model_;
  }

 private:
  [[nodiscard]] tl::unexpected<Error> unsaid(const std::string& what) const {
    return fail(Code::kBadInput, what, pair_.id,
                "write down how to predict it in a fault_pairs.yaml beside the pairs (as "
                "validation/figures/fault_pairs.yaml)");
  }
  void assume(const std::string& what) { model_.add_assumptions(what); }
  void set_both(const std::string& path, const std::string& value) {
    (*model_.mutable_before()->mutable_set())[path] = value;
    (*model_.mutable_after()->mutable_set())[path] = value;
  }

  Result<void> machine() {
    const std::string text = plain(pair_.hardware);
    for (const pb::MachineWords& words : words_.machines()) {
      if (!holds_all(text, words.words())) continue;
      machine_.platform = words.platform();
      machine_.word = words.words(0);
      machine_.whole = words.whole();
      break;
    }
    if (machine_.platform.empty()) {
      return unsaid("its hardware is not stated, or no platform of the catalogue has it");
    }
    RH_TRY(pb::Platform platform, catalogue_.platform(machine_.platform));
    if (auto done = platforms::expand(platform, machine_.platform); !done) {
      return tl::unexpected(done.error());
    }
    machine_.node = platform.nodes(0);
    const auto most = static_cast<uint32_t>(machine_.node.gpus_size());
    machine_.nodes =
        number_in(text, R"(\b(\d+) (?:nodes?|hosts?|servers?|machines?|instances?|vms?)\b)");
    const uint32_t times = number_in(text, kTimes + machine_.word + R"(\b)");
    if (machine_.nodes == 0 && machine_.whole) machine_.nodes = times;
    if (machine_.nodes == 0 && times > 0 && times <= most) machine_.nodes = 1;
    if (machine_.nodes == 0 || machine_.nodes > kMostNodes) {
      return unsaid("the number of nodes is not stated");
    }
    machine_.gpus = machine_.whole || times == 0 || times > most ? most : times;
    if (machine_.nodes * machine_.gpus < 2) return unsaid("it is of a single GPU");
    if (times == 0) assume("all GPUs of a node are in use");
    model_.set_platform(machine_.platform);
    model_.set_nodes(machine_.nodes);
    model_.set_gpus_per_node(machine_.gpus);
    assume(fmt::format("\"{}\" is {}", pair_.hardware, machine_.platform));
    return {};
  }

  void ports() {
    if (machine_.nodes < 2 || machine_.node.nics_size() == 0) return;
    const std::string text = plain(pair_.hardware);
    const auto all = static_cast<uint32_t>(machine_.node.nics_size());
    // "8x400g", "8x cx 6 100g", "2x hdr200", "efa 100g".
    const uint32_t rate = number_in(text, R"(\b(?:\d+x)?(\d+)(?:g|gbps|gbe|gbit)\b)");
    std::string written = rate > 0 && rate <= 1600 ? fmt::format("{}Gbps", rate) : "";
    for (const pb::PortWords& port : words_.ports()) {
      if (!written.empty() || !holds_all(text, port.words())) continue;
      written = port.rate();
    }
    if (!written.empty()) set_both("nodes[*].nics[*].bandwidth", written);
    static const char* const kPorts =
        R"(\b(\d+) ?x ?(?:\d+g|mlx5|ib|cx|connectx|hdr|edr|ndr|fdr|xdr|qdr|roce|efa|nics?|ports?|infiniband))";
    const uint32_t count = number_in(text, kPorts);
    if (count > 0 && count < all) {
      set_both(fmt::format("nodes[*].nics[{}].down", taken_away(count, all)), "true");
    } else if (count > all) {
      assume(fmt::format("{} ports per node, as the platform has", all));
    }
  }

  void call() {
    model_.set_collective(collective_in(pair_.metric + " " + pair_.symptom + " " + pair_.cause));
    if (model_.collective().empty()) {
      model_.set_collective("all_reduce");
      assume("the collective is not stated, an all-reduce");
    }
    int64_t bytes = size_in(pair_.metric);
    if (bytes == 0) bytes = size_in(pair_.symptom);
    if (bytes == 0) {
      bytes = kAssumedBytes;
      assume("the size is not stated, 1 GiB");
    }
    model_.set_bytes(bytes);
  }

  void version() {
    std::smatch found;
    static const std::regex version(R"((2\.\d{1,2}(?:\.\d{1,2})?))");
    if (!std::regex_search(pair_.nccl, found, version)) return;
    model_.mutable_before()->set_nccl_version(found[1].str());
    model_.mutable_after()->set_nccl_version(found[1].str());
  }

  void mechanisms() {
    const std::string text = plain(pair_.fault_class + " " + pair_.cause);
    for (const pb::MechanismWords& mechanism : words_.mechanisms()) {
      const bool in_effect =
          std::any_of(mechanism.phrases().begin(), mechanism.phrases().end(),
                      [&](const std::string& phrase) { return holds(text, phrase); });
      if (!in_effect) continue;
      model_.mutable_before()->MergeFrom(mechanism.before());
      model_.mutable_after()->MergeFrom(mechanism.after());
    }
    degraded_ports(plain(pair_.cause));
  }

  // "3 ports trained to 100g", "1 port now ethernet", "2 nics down": from the last port on.
  void degraded_ports(const std::string& text) {
    static const std::regex slow(
        R"((\d+) (?:ports?|nics?|rails?|links?) [a-z ]*?(?:(\d+) ?g(?:b|bps|bit)?\b|(down|dead|lost|missing|ethernet)))");
    // "only one of two virtual NICs configured": the others are not used.
    static const std::regex some(
        R"(\b(one|1|two|2|four|4) of (?:the )?(two|2|four|4|eight|8) [a-z ]*?(?:ports?|nics?|hcas?|adapters?|rails?)\b)");
    static const std::map<std::string, uint32_t> kNumbers = {
        {"one", 1}, {"1", 1}, {"two", 2}, {"2", 2}, {"four", 4}, {"4", 4}, {"eight", 8}, {"8", 8}};
    auto left = static_cast<uint32_t>(machine_.node.nics_size());
    if (machine_.nodes < 2) return;
    std::smatch part;
    if (std::regex_search(text, part, some)) {
      const uint32_t keep = kNumbers.at(part[1].str()), of = kNumbers.at(part[2].str());
      if (keep < of && of == left) {
        (*model_.mutable_before()
              ->mutable_set())[fmt::format("nodes[*].nics[{}].down", taken_away(keep, of))] =
            "true";
        return;
      }
    }
    for (std::sregex_iterator at(text.begin(), text.end(), slow), end; at != end; ++at) {
      const uint32_t count = number_in((*at)[1].str(), R"((\d+))");
      if (count == 0 || count >= left) continue;
      const std::string which = fmt::format("nodes[*].nics[{}-{}].", left - count, left - 1);
      left -= count;
      auto& set = *model_.mutable_before()->mutable_set();
      if ((*at)[2].matched) {
        set[which + "bandwidth"] = (*at)[2].str() + "Gbps";
      } else {
        set[which + "down"] = "true";
      }
    }
  }

  // A variable as people write it, with or without NCCL_ or NCCL_IB_ before it; "": none that is known.
  static std::string variable(const std::string& name) {
    for (const char* prefix : {"", "NCCL_", "NCCL_IB_"}) {
      if (sim::find_variable(prefix + name) != nullptr) return prefix + name;
    }
    return "";
  }

  void variables() {
    static const std::regex setting(
        R"-((remove |unset |without |drop )?([A-Z][A-Z0-9_]{2,})=([^\s,;()"']+)(\s+default)?)-");
    const auto read = [&](const std::string& text, pb::PairState& state) {
      for (std::sregex_iterator at(text.begin(), text.end(), setting), end; at != end; ++at) {
        const std::string name = variable((*at)[2].str());
        if (name.empty() || (*at)[1].matched || (*at)[4].matched) continue;
        (*state.mutable_env())[name] = (*at)[3].str();
      }
    };
    read(pair_.fault_class + " " + pair_.cause, *model_.mutable_before());
    read(pair_.fix, *model_.mutable_after());
    // "12 channels": as many and no others.
    const auto channels = [](const std::string& text, pb::PairState& state) {
      const uint32_t many = number_in(text, R"(\b(\d+) channels\b)");
      if (many == 0 || many > 64) return;
      for (const char* name : {"NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS"}) {
        state.mutable_env()->try_emplace(name, std::to_string(many));
      }
    };
    channels(plain(pair_.cause), *model_.mutable_before());
    channels(plain(pair_.fix), *model_.mutable_after());
    read(pair_.hardware + " " + pair_.metric, *model_.mutable_before());
    read(pair_.hardware + " " + pair_.metric, *model_.mutable_after());
  }

  // An algorithm that the metric names is in force before and after; one that is all of the fix, after it.
  void algorithm() {
    static const std::vector<std::pair<const char*, const char*>> kNames = {
        {"nvlstree", "NVLSTree"}, {"nvls", "NVLS"}, {"ring", "Ring"}, {"tree", "Tree"}};
    const auto named = [&](const std::string& text) -> std::string {
      for (const auto& [word, name] : kNames) {
        if (holds(plain(text), word)) return name;
      }
      return "";
    };
    auto& before = *model_.mutable_before()->mutable_env();
    auto& after = *model_.mutable_after()->mutable_env();
    std::string name = named(pair_.metric);
    if (name.empty()) name = named(pair_.symptom);
    if (!name.empty()) {
      before.try_emplace("NCCL_ALGO", name);
      after.try_emplace("NCCL_ALGO", name);
    }
    if (pair_.fix.size() < 12 && !named(pair_.fix).empty()) after["NCCL_ALGO"] = named(pair_.fix);
  }

  const PublishedPair& pair_;
  const pb::PairWords& words_;
  const platforms::PlatformCatalogue& catalogue_;
  Machine machine_;
  pb::PairModel model_;
};

}  // namespace

Result<pb::PairModel> PairReader::read(const PublishedPair& pair) const {
  return OnePair(pair, words_, catalogue_).read();
}

}  // namespace rehearse::validation
