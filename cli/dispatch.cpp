// SPDX-License-Identifier: Apache-2.0
#include "cli/dispatch.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <new>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/units.hpp"
#include "base/version.hpp"
#include "cli/config.hpp"
#include "cli/context.hpp"
#include "cli/help.hpp"
#include "cli/verbs.hpp"
#include "traces/inspect/text_table.hpp"

namespace rehearse::cli {
namespace {

bool wants_json(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (word == "--") return false;
    if (word == "--json") return true;
  }
  return false;
}

int report(const Error& error, bool json) {
  const Terminal terminal = Terminal::of(STDERR_FILENO, Colour::kAuto);
  const std::string where = error.where.empty() ? "" : error.where + ": ";
  // Names from files must not reach the terminal as they are.
  fmt::print(stderr, "{} {}\n", terminal.styled(Style::kRed, "rehearse:"),
             traces::printable(where + error.what));
  if (!error.fix.empty()) fmt::print(stderr, "  fix: {}\n", traces::printable(error.fix));
  if (json) {
    const nlohmann::ordered_json document = {{"schema", "rehearse.error/1"},
                                             {"error",
                                              {{"code", name_of(error.code)},
                                               {"what", error.what},
                                               {"where", error.where},
                                               {"fix", error.fix}}}};
    const auto replace = nlohmann::ordered_json::error_handler_t::replace;
    (void)write_stdout(document.dump(2, ' ', false, replace) + "\n");
  }
  return static_cast<int>(error.code);
}

// Allocations beyond --max-memory fail, here and in the processes that are started.
Result<void> limit_memory(const Context& context) {
  if (!context.has("max-memory")) return {};
  const auto most = parse_bytes(context.get<std::string>("max-memory"));
  if (!most || *most <= 0) {
    return fail(Code::kUsage, "this is no amount of memory", "--max-memory", "write it as 8GiB");
  }
  rlimit limit{};
  (void)::getrlimit(RLIMIT_DATA, &limit);
  limit.rlim_cur = std::min(static_cast<rlim_t>(*most), limit.rlim_max);
  if (::setrlimit(RLIMIT_DATA, &limit) == 0) return {};
  return fail(Code::kIo, fmt::format("cannot limit memory: {}", std::strerror(errno)),
              "--max-memory", "leave it out");
}

Result<int> run(const std::vector<std::string>& words) {
  const auto put = [](const std::string& text) -> Result<int> {
    if (auto done = write_stdout(text); !done) return tl::unexpected(std::move(done).error());
    return 0;
  };
  const Terminal terminal = Terminal::of(STDOUT_FILENO, Colour::kAuto);
  if (words.empty()) {
    fmt::print(stderr, "{}", overview(Terminal::of(STDERR_FILENO, Colour::kAuto)));
    return static_cast<int>(Code::kUsage);
  }
  const std::string& first = words.front();
  if (first == "--help" || first == "-h") return put(overview(terminal));
  if (first == "--version") return put(fmt::format("rehearse {}\n", version()));
  if (first.starts_with("-")) {
    return fail(Code::kUsage, fmt::format("unknown option '{}' before the verb", first), "",
                "write the verb first: rehearse VERB [OPTION...]");
  }
  RH_TRY(const Verb* verb, known_verb(first));
  RH_TRY(Arguments arguments, parse_arguments(*verb, {words.begin() + 1, words.end()}));
  const bool help = arguments.options.count("help") > 0;
  if (help) return put(help_of(*verb, terminal));
  Context context(*verb, std::move(arguments));
  if (context.has("print-config")) return exit_code(print_config(context));
  if (auto set = limit_memory(context); !set) return tl::unexpected(std::move(set).error());
  // Refused before the work, not after it.
  std::error_code ec;
  if (const auto file = context.output(); file && context.overwrite() == Overwrite::kRefuse &&
                                          std::filesystem::is_regular_file(*file, ec)) {
    return fail(Code::kUsage, "the file exists already", *file,
                "choose another name or pass --force to replace it");
  }
  return verb->run(context);
}

Error internal(const char* what, const std::vector<std::string>& words) {
  return Error{Code::kInternal, fmt::format("a bug in rehearse {}: {}", version(), what),
               fmt::format("rehearse {}", fmt::join(words, " ")),
               "please report it with this line and the input"};
}

}  // namespace

int dispatch(const std::vector<std::string>& words) {
  const bool json = wants_json(words);
  try {
    auto result = run(words);
    return result ? *result : report(result.error(), json);
  } catch (const std::bad_alloc&) {
    return report(
        {Code::kLimit, "out of memory", "", "use a machine with more, or a smaller input"}, json);
  } catch (const std::filesystem::filesystem_error& e) {
    return report({Code::kIo, e.code().message(), e.path1().string(), "check the path"}, json);
  } catch (const std::system_error& e) {
    if (e.code() != std::errc::resource_unavailable_try_again) {
      return report(internal(e.what(), words), json);
    }
    return report({Code::kLimit, "the machine gives no more threads", "",
                   "end other programs, or raise the limits of processes and memory"},
                  json);
  } catch (const std::exception& e) {
    return report(internal(e.what(), words), json);
  } catch (...) {
    return report(internal("unknown exception", words), json);
  }
}

}  // namespace rehearse::cli
