// SPDX-License-Identifier: Apache-2.0
#include "base/environment.hpp"

#include <algorithm>
#include <cctype>

#include "base/text.hpp"

namespace rehearse {
namespace {

std::string_view without_spaces(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0)
    text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0)
    text.remove_suffix(1);
  return text;
}

// Skips `export` or `declare -x`; returns what follows.
std::string_view after_export(std::string_view line) {
  for (std::string_view word : {"export ", "declare -x ", "setenv "}) {
    if (line.starts_with(word)) return without_spaces(line.substr(word.size()));
  }
  return line;
}

std::string in_shell_quotes(const std::string& value) {
  const bool plain = std::all_of(value.begin(), value.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("_-.,:/^=+@%").find(c) != std::string_view::npos;
  });
  if (plain) return value;
  std::string out = "'";
  for (char c : value) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

}  // namespace

bool is_environment_name(std::string_view name) {
  return !name.empty() && std::isdigit(static_cast<unsigned char>(name.front())) == 0 &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
         });
}

std::vector<VariableLine> read_environment(std::string_view text) {
  std::vector<VariableLine> out;
  size_t number = 0;
  for (const std::string& raw : split(text, '\n')) {
    ++number;
    const std::string_view line = after_export(without_spaces(raw));
    const size_t equals = line.find('=');
    if (equals == line.npos || !is_environment_name(line.substr(0, equals))) continue;
    std::string_view value = line.substr(equals + 1);
    if (value.size() >= 2 && (value.front() == '"' || value.front() == '\'') &&
        value.back() == value.front()) {
      value = value.substr(1, value.size() - 2);
    }
    std::string plain;
    // `declare -x` and `export -p` put a backslash before quotes.
    for (size_t i = 0; i < value.size(); ++i) {
      if (value[i] == '\\' && i + 1 < value.size() && (value[i + 1] == '"' || value[i + 1] == '\\'))
        ++i;
      plain += value[i];
    }
    out.push_back({std::string(line.substr(0, equals)), std::move(plain), number});
  }
  return out;
}

std::vector<std::string> shell_words(std::string_view line,
                                     const std::map<std::string, std::string>& known) {
  std::vector<std::string> words;
  std::string word;
  bool inside = false;  // of a word
  char quote = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote == 0 && c == '#' && !inside) break;
    if (quote == 0 && (std::isspace(static_cast<unsigned char>(c)) != 0 || c == ';')) {
      if (inside) words.push_back(std::move(word));
      word.clear();
      inside = false;
      continue;
    }
    inside = true;
    if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
    } else if (quote != 0 && c == quote) {
      quote = 0;
    } else if (c == '$' && quote != '\'') {
      const bool braces = i + 1 < line.size() && line[i + 1] == '{';
      size_t end = i + (braces ? 2 : 1);
      const size_t begin = end;
      while (end < line.size() &&
             (std::isalnum(static_cast<unsigned char>(line[end])) != 0 || line[end] == '_'))
        ++end;
      const auto at = known.find(std::string(line.substr(begin, end - begin)));
      const bool closed = !braces || (end < line.size() && line[end] == '}');
      if (at == known.end() || !closed) {
        word += c;
      } else {
        word += at->second;
        i = end - (braces ? 0 : 1);
      }
    } else {
      word += c;
    }
  }
  if (inside) words.push_back(std::move(word));
  return words;
}

std::string with_variable(const std::string& text, const std::string& name,
                          const std::string& value, bool exports) {
  std::vector<std::string> lines = split(text, '\n');
  const bool ends = !lines.empty() && lines.back().empty();
  if (ends) lines.pop_back();
  std::vector<std::string> out;
  bool done = false;
  for (const std::string& line : lines) {
    const std::string_view plain = without_spaces(line);
    const std::string_view rest = after_export(plain);
    if (!rest.starts_with(name + "=")) {
      out.push_back(line);
      continue;
    }
    done = true;
    if (value.empty()) continue;
    const std::string lead(plain.substr(0, plain.size() - rest.size()));
    out.push_back(lead + name + "=" + (exports || !lead.empty() ? in_shell_quotes(value) : value));
  }
  if (!done && !value.empty()) {
    size_t at = out.size();
    if (exports) {
      at = 0;
      while (at < out.size() && out[at].starts_with("#")) ++at;
    }
    out.insert(
        out.begin() + static_cast<std::ptrdiff_t>(at),
        (exports ? "export " : "") + name + "=" + (exports ? in_shell_quotes(value) : value));
  }
  std::string joined;
  for (const std::string& line : out) joined += line + '\n';
  if (!ends && !joined.empty()) joined.pop_back();
  return joined;
}

}  // namespace rehearse
