// SPDX-License-Identifier: Apache-2.0
// What a verb gets: its parsed options, the terminal it talks to, and one way to put out a result.
// Data goes to stdout (or -o FILE, atomically); everything else goes to stderr.
#pragma once

#include <boost/program_options/variables_map.hpp>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "base/finding.hpp"
#include "cli/terminal.hpp"
#include "cli/verb.hpp"

namespace rehearse::cli {

// The command line of one verb, parsed.
struct Arguments {
  boost::program_options::variables_map options;
  std::vector<std::string> inputs;  // positional arguments in order
  // Every option with its value as written, in order ("set", "a=b"); switches have an empty value.
  std::vector<std::pair<std::string, std::string>> in_order;
};

// kUsage with the nearest option name when it makes no sense. `words` are those after the verb.
[[nodiscard]] Result<Arguments> parse_arguments(const Verb& verb,
                                                const std::vector<std::string>& words);

class Context {
 public:
  Context(const Verb& verb, Arguments arguments);

  [[nodiscard]] const Verb& verb() const { return verb_; }
  [[nodiscard]] const Arguments& arguments() const { return arguments_; }
  [[nodiscard]] const std::vector<std::string>& inputs() const { return arguments_.inputs; }
  // True when the option was written.
  [[nodiscard]] bool has(const std::string& option) const;
  // Value of an option that was written or has a default.
  template <typename T>
  [[nodiscard]] T get(const std::string& option) const {
    return arguments_.options[option].as<T>();
  }
  // The same as a whole number within bounds, or kUsage. The option is declared as text.
  [[nodiscard]] Result<int64_t> number(const std::string& option, int64_t least,
                                       int64_t most) const;
  [[nodiscard]] bool json() const { return has("json"); }
  [[nodiscard]] bool quiet() const { return has("quiet"); }
  [[nodiscard]] bool verbose() const { return has("verbose"); }

  [[nodiscard]] Reporter& reporter() { return reporter_; }
  // How stdout is to be written to: width and colour.
  [[nodiscard]] const Terminal& terminal() const { return terminal_; }

  // FILE of -o.
  [[nodiscard]] std::optional<std::string> output() const;
  [[nodiscard]] Overwrite overwrite() const;
  // Puts text out: to -o when given, else to stdout; without_controls (cli/terminal.hpp).
  [[nodiscard]] Result<void> print(std::string_view text);
  // A JSON document, indented by 2. `schema` should be its first key.
  [[nodiscard]] Result<void> print(const nlohmann::ordered_json& document);
  // The same, to stdout also when -o is given: for verbs that write something else there.
  [[nodiscard]] Result<void> print_stdout(std::string_view text);
  [[nodiscard]] Result<void> print_stdout(const nlohmann::ordered_json& document);
  // One line per finding on stderr, unless --quiet; information only with -v.
  void show(const Findings& findings);

 private:
  [[nodiscard]] Result<void> put(std::string_view bytes);
  [[nodiscard]] Result<void> put_stdout(std::string_view bytes);

  const Verb& verb_;
  Arguments arguments_;
  Terminal terminal_;
  TerminalReporter reporter_;
};

// {"id", "severity", "count", "first", "advice"} per row.
[[nodiscard]] nlohmann::ordered_json findings_json(const Findings& findings);

// The exit code of a verb whose last act was `done`.
[[nodiscard]] Result<int> exit_code(Result<void> done, int code = 0);

// All of `text` to stdout; kIo when it did not arrive.
[[nodiscard]] Result<void> write_stdout(std::string_view text);

}  // namespace rehearse::cli
