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

bool is_device(std::string_view word) {
  return word.starts_with("GPU") && word.size() > 3 &&
         word.find_first_not_of("0123456789", 3) == std::string_view::npos;
}

// Words between blanks, each with the column (from 0) that it begins at.
struct Word {
  std::string text;
  size_t column = 0;
};
std::vector<Word> words_in(const std::string& line) {
  std::vector<Word> out;
  for (size_t at = line.find_first_not_of(" \t"); at != std::string::npos;) {
    const size_t end = std::min(line.find_first_of(" \t", at), line.size());
    out.push_back({line.substr(at, end - at), at});
    at = line.find_first_not_of(" \t", end);
  }
  return out;
}

bool names_affinity(const Word& word) { return word.text == "CPU" || word.text == "NUMA"; }

// The line of column names: it begins with a GPU that is not in the row of itself, and all devices
// are numbered.
bool is_header(const std::vector<Word>& words) {
  if (words.empty() || !is_device(words[0].text) || (words.size() > 1 && words[1].text == "X")) {
    return false;
  }
  const auto last = std::find_if(words.begin(), words.end(), names_affinity);
  return std::all_of(words.begin(), last, [](const Word& word) {
    return word.text.find_first_of("0123456789") != std::string::npos;
  });
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
  // Tabs that went through a terminal are blanks, and nothing but the names of the last columns has
  // blanks in it.
  void header(const std::string& line) {
    const std::vector<Word> words = words_in(line);
    if (!is_header(words)) return;
    for (const Word& word : words) {
      if (names_affinity(word)) break;
      columns_.push_back(word.text);
    }
    has_affinity_ = line.find("CPU Affinity") != std::string::npos;
    has_numa_ = line.find("NUMA Affinity") != std::string::npos;
    has_memory_numa_ = line.find("GPU NUMA ID") != std::string::npos;
    if (columns_.size() > kMaxColumns) columns_.clear();
  }

  [[nodiscard]] Result<SmiCell> cell(const std::string& text, const std::string& place) const {
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

  // What stands behind the cells: the processors, then the NUMA domain. Either may be empty, which
  // only tabs can show.
  static std::vector<std::string> cells_behind(std::string_view rest) {
    std::vector<std::string> cells;
    if (rest.find('\t') != std::string_view::npos) {
      for (const std::string& cell : split(rest.substr(rest.find('\t') + 1), '\t')) {
        cells.push_back(trim(cell));
      }
    } else {
      for (const Word& word : words_in(std::string(rest))) cells.push_back(word.text);
    }
    return cells;
  }

  [[nodiscard]] int numa_of(std::string_view rest) const {
    if (!has_numa_) return -1;
    const std::vector<std::string> cells = cells_behind(rest);
    const size_t at = has_affinity_ ? 1 : 0;
    int numa = -1;
    if (at < cells.size()) {
      std::from_chars(cells[at].data(), cells[at].data() + cells[at].size(), numa);
    }
    return numa < -1 || numa > 63 ? -1 : numa;
  }

  [[nodiscard]] std::string processors_of(std::string_view rest) const {
    const std::vector<std::string> cells = cells_behind(rest);
    return has_affinity_ && !cells.empty() && cells[0] != "N/A" ? cells[0] : std::string();
  }

  // Behind the NUMA domain of its processors: that of its own memory, or N/A.
  [[nodiscard]] bool is_coherent(std::string_view rest) const {
    const std::vector<Word> words = words_in(std::string(rest));
    if (!has_memory_numa_ || words.size() < 3) return false;
    const std::string& id = words.back().text;
    return id.find_first_not_of("0123456789") == std::string::npos;
  }

  Result<void> body(const std::string& line, size_t number) {
    const std::vector<Word> words = words_in(line);
    if (!words.empty() && devices_.size() < columns_.size() &&
        words[0].text == columns_[devices_.size()]) {
      SmiDevice device;
      device.name = words[0].text;
      device.gpu = is_device(device.name);
      device.place = fmt::format("{}:{}:1", file_.name, number);
      if (words.size() <= columns_.size()) {
        return bad_input(fmt::format("{} cells for {} columns", words.size() - 1, columns_.size()),
                         device.place, "the table was cut; run nvidia-smi topo -m again");
      }
      for (size_t i = 1; i <= columns_.size(); ++i) {
        RH_TRY(const SmiCell read, cell(words[i].text, fmt::format("{}:{}:{}", file_.name, number,
                                                                   words[i].column + 1)));
        device.row.push_back(read);
      }
      const Word& last = words[columns_.size()];
      const std::string_view rest = std::string_view(line).substr(last.column + last.text.size());
      device.numa = numa_of(rest);
      device.processors = processors_of(rest);
      device.coherent = device.gpu && is_coherent(rest);
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
  bool has_affinity_ = false, has_numa_ = false, has_memory_numa_ = false;
  std::vector<SmiDevice> devices_;
  std::map<std::string, std::string> legend_;
};

}  // namespace

bool has_smi_table(std::string_view text) {
  bool header = false;
  for (const std::string& raw : split(text, '\n')) {
    const std::vector<Word> words = words_in(plain(raw));
    if (header && words.size() > 1 && is_device(words[0].text) && words[1].text == "X") return true;
    header = header || is_header(words);
  }
  return false;
}

Result<std::vector<SmiDevice>> read_smi_table(const ImportText& file) { return Table(file).read(); }

}  // namespace rehearse::platforms
