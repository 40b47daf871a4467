// SPDX-License-Identifier: Apache-2.0
#include "cli/context.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/units.hpp"
#include "cli/table.hpp"
#include "traces/inspect/text_table.hpp"

namespace rehearse::cli {
namespace {

Colour colour_of(const Arguments& arguments) {
  const std::string word = arguments.options["color"].as<std::string>();
  return word == "always" ? Colour::kAlways : word == "never" ? Colour::kNever : Colour::kAuto;
}

Talk talk_of(const Arguments& arguments) {
  if (arguments.options.count("quiet") > 0) return Talk::kQuiet;
  return arguments.options.count("verbose") > 0 ? Talk::kVerbose : Talk::kNormal;
}

// Bytes that are not UTF-8 (names from files) are replaced, not refused.
std::string dump(const nlohmann::ordered_json& document) {
  return document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace

Context::Context(const Verb& verb, Arguments arguments)
    : verb_(verb),
      arguments_(std::move(arguments)),
      terminal_(Terminal::of(STDOUT_FILENO, colour_of(arguments_))),
      reporter_(talk_of(arguments_)) {}

bool Context::has(const std::string& option) const {
  const auto& value = arguments_.options[option];
  return !value.empty() && !value.defaulted();
}

Result<int64_t> Context::number(const std::string& option, int64_t least, int64_t most) const {
  const std::string text = get<std::string>(option);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= least && value <= most) {
    return value;
  }
  return fail(Code::kUsage,
              fmt::format("'{}' is not a whole number from {} to {}", text, least, most),
              "--" + option, fmt::format("rehearse {} --help", verb_.name));
}

std::optional<std::string> Context::output() const {
  if (!has("output")) return std::nullopt;
  return get<std::string>("output");
}

Overwrite Context::overwrite() const {
  return has("force") ? Overwrite::kReplace : Overwrite::kRefuse;
}

Result<void> Context::put(std::string_view text) {
  if (const auto file = output()) return write_file(*file, text, overwrite());
  return put_stdout(text);
}

Result<void> Context::put_stdout(std::string_view text) {
  reporter_.clear();
  return write_stdout(text);
}

Result<void> Context::print(std::string_view text) { return put(without_controls(text)); }

Result<void> Context::print_stdout(std::string_view text) {
  return put_stdout(without_controls(text));
}

// JSON has its own way to write control characters.
Result<void> Context::print_stdout(const nlohmann::ordered_json& document) {
  return put_stdout(dump(document));
}

Result<void> Context::print(const nlohmann::ordered_json& document) { return put(dump(document)); }

void Context::show(const Findings& findings) {
  if (quiet()) return;
  reporter_.clear();
  for (const Finding& row : findings.rows()) {
    if (row.severity == Severity::kInfo && !verbose()) continue;
    const std::string line =
        fmt::format("{}: {} ({}), first at {}{}{}", name_of(row.severity), row.id,
                    format_count(row.count), row.first, row.advice.empty() ? "" : ": ", row.advice);
    // Other people's names have no colours of ours.
    fmt::print(stderr, "{}\n",
               traces::printable(fit(line, Terminal::of(2, Colour::kNever).width())));
  }
}

nlohmann::ordered_json findings_json(const Findings& findings) {
  auto rows = nlohmann::ordered_json::array();
  for (const Finding& row : findings.rows()) {
    rows.push_back({{"id", row.id},
                    {"severity", name_of(row.severity)},
                    {"count", row.count},
                    {"first", row.first},
                    {"advice", row.advice}});
  }
  return rows;
}

Result<int> exit_code(Result<void> done, int code) {
  if (!done) return tl::unexpected(std::move(done).error());
  return code;
}

Result<void> write_stdout(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) {
    return {};
  }
  return fail(Code::kIo, fmt::format("cannot write: {}", std::strerror(errno)), "stdout",
              "free some space or write somewhere else");
}

}  // namespace rehearse::cli
