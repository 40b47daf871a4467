// SPDX-License-Identifier: Apache-2.0
#include "platforms/import/smi_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "base/text.hpp"

namespace rehearse::platforms {
namespace {

constexpr size_t kMaxColumns = 256;
constexpr size_t kMaxTableBytes = 4u << 20;

// Without terminal escape codes and carriage returns.
std::string plain(std::string_view line) {
  std::string out;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b' && i + 1 < line.size() && line[i + 1] == '[') {
      i += 2;
      while (i < line.size() && !(line[i] >= '@' && line[i] <= '~')) ++i;
    } else if (line[i] != '\r') {
      out += line[i];
    }
  }
  return out;
}

std::string trim(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(" \t") - first + 1));
}

bool is_device(const std::string& word) {
  return word.starts_with("GPU") && word.size() > 3 && word.find(' ') == std::string::npos;
}

class Table {
 public:
  explicit Table(const ImportText& file) : file_(file) {}

  Result<std::vector<SmiDevice>> read() {
    if (file_.text.size() > kMaxTableBytes) {
      return fail(Code::kLimit, "more text than nvidia-smi prints", file_.name,
                  "give the output of nvidia-smi topo -m alone");
    }
    size_t number = 0;
    for (const std::string& raw : split(file_.text, '\n')) {
      ++number;
      const std::string line = plain(raw);
      if (columns_.empty()) {
        header(line);
      } else if (auto ok = body(line, number); !ok) {
        return tl::unexpected(ok.error());
      }
    }
    if (columns_.empty()) {
      return bad_input("there is no line of column names (GPU0 GPU1 ...)", file_.name + ":1:1",
                       "give the output of nvidia-smi topo -m");
    }
    if (devices_.size() != columns_.size()) {
      return bad_input(fmt::format("{} rows for {} columns", devices_.size(), columns_.size()),
                       fmt::format("{}:{}:1", file_.name, number),
                       "the table was cut; run it again");
    }
    for (SmiDevice& each : devices_) {
      if (const auto name = legend_.find(each.name); name != legend_.end())
        each.name = name->second;
    }
    return std::move(devices_);
  }

 private:
  void header(const std::string& line) {
    std::vector<std::string> words;
    for (const std::string& cell : split(line, '\t')) words.push_back(trim(cell));
    if (words.size() < 2 || std::none_of(words.begin(), words.end(), is_device)) return;
    for (size_t i = 1; i < words.size(); ++i) {
      if (words[i] == "CPU Affinity") affinity_ = i;
      if (words[i] == "NUMA Affinity") numa_ = i;
      if (affinity_ == 0 && !words[i].empty()) columns_.push_back(words[i]);
    }
    if (columns_.size() > kMaxColumns) columns_.clear();
  }

  Result<SmiCell> cell(const std::string& text, const std::string& place) const {
    if (text == "X") return SmiCell{SmiWay::kSelf, 0};
    if (text.starts_with("NV")) {
      uint32_t links = 0;
      const char* last = text.data() + text.size();
      const auto [end, error] = std::from_chars(text.data() + 2, last, links);
      if (error == std::errc() && end == last && links >= 1 && links <= 64) {
        return SmiCell{SmiWay::kNvlink, links};
      }
    }
    static const std::map<std::string, SmiWay> kWays = {
        {"PIX", SmiWay::kPix},   {"PXB", SmiWay::kPxb}, {"PHB", SmiWay::kPhb},
        {"NODE", SmiWay::kNode}, {"SYS", SmiWay::kSys}, {"SOC", SmiWay::kSys}};
    if (const auto way = kWays.find(text); way != kWays.end()) return SmiCell{way->second, 0};
    return bad_input(fmt::format("{} is no kind of connection", in_quotes(text)), place,
                     "known are X, NV#, PIX, PXB, PHB, NODE and SYS");
  }

  Result<void> body(const std::string& line, size_t number) {
    const std::vector<std::string> cells = split(line, '\t');
    const std::string first = trim(cells[0]);
    if (devices_.size() < columns_.size() && first == columns_[devices_.size()]) {
      SmiDevice device;
      device.name = first;
      device.gpu = is_device(first);
      device.place = fmt::format("{}:{}:1", file_.name, number);
      if (cells.size() <= columns_.size()) {
        return bad_input(fmt::format("{} cells for {} columns", cells.size() - 1, columns_.size()),
                         device.place, "the table was cut; run nvidia-smi topo -m again");
      }
      size_t column = cells[0].size() + 2;
      for (size_t i = 0; i < columns_.size(); ++i) {
        RH_TRY(const SmiCell read,
               cell(trim(cells[i + 1]), fmt::format("{}:{}:{}", file_.name, number, column)));
        device.row.push_back(read);
        column += cells[i + 1].size() + 1;
      }
      if (numa_ > 0 && numa_ < cells.size()) {
        const std::string text = trim(cells[numa_]);
        std::from_chars(text.data(), text.data() + text.size(), device.numa);
        if (device.numa < -1 || device.numa > 63) device.numa = -1;
      }
      devices_.push_back(std::move(device));
      return {};
    }
    const std::string text = trim(line);
    const size_t colon = text.find(": ");
    if (text.starts_with("NIC") && colon != std::string::npos && colon < 8) {
      legend_[text.substr(0, colon)] = trim(text.substr(colon + 2));
    }
    return {};
  }

  const ImportText& file_;
  std::vector<std::string> columns_;
  size_t affinity_ = 0, numa_ = 0;
  std::vector<SmiDevice> devices_;
  std::map<std::string, std::string> legend_;
};

}  // namespace

Result<std::vector<SmiDevice>> read_smi_table(const ImportText& file) { return Table(file).read(); }

}  // namespace rehearse::platforms
