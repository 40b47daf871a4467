// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <boost/program_options/cmdline.hpp>
#include <boost/program_options/errors.hpp>
#include <boost/program_options/parsers.hpp>

#include "base/text.hpp"
#include "cli/context.hpp"

namespace rehearse::cli {
namespace po = boost::program_options;
namespace {

std::string help_line(const Verb& verb) { return fmt::format("rehearse {} --help", verb.name); }

std::vector<std::string> long_names(const po::options_description& options) {
  std::vector<std::string> names;
  for (const auto& option : options.options()) names.push_back("--" + option->long_name());
  return names;
}

tl::unexpected<Error> unknown_option(const Verb& verb, const po::options_description& options,
                                     const std::string& name) {
  const std::string word = name.substr(0, name.find('='));
  const std::string near = nearest(word, long_names(options));
  return fail(Code::kUsage, fmt::format("unknown option '{}'", word), verb.name,
              near.empty() ? help_line(verb) : fmt::format("did you mean {}?", near));
}

Result<void> check_positionals(const Verb& verb, const std::vector<std::string>& inputs) {
  size_t least = 0, most = 0;
  for (const Positional& p : verb.positionals) {
    least += p.count == Count::kOne || p.count == Count::kSome ? 1 : 0;
    most = p.count == Count::kAny || p.count == Count::kSome ? SIZE_MAX : most + (most < SIZE_MAX);
  }
  if (inputs.size() < least) {
    const Positional& missing =
        verb.positionals[std::min(inputs.size(), verb.positionals.size() - 1)];
    return fail(Code::kUsage, fmt::format("{} is missing: {}", missing.name, missing.what),
                verb.name, help_line(verb));
  }
  if (inputs.size() > most) {
    return fail(Code::kUsage, fmt::format("'{}' is one argument too many", inputs[most]), verb.name,
                help_line(verb));
  }
  for (size_t i = 0; i < inputs.size() && !verb.positionals.empty(); ++i) {
    const Positional& p = verb.positionals[std::min(i, verb.positionals.size() - 1)];
    if (p.choices.empty() || std::ranges::find(p.choices, inputs[i]) != p.choices.end()) continue;
    const std::string near = nearest(inputs[i], p.choices);
    return fail(Code::kUsage,
                fmt::format("{} '{}' is not one of {}", p.name, inputs[i], join_words(p.choices)),
                verb.name, near.empty() ? help_line(verb) : fmt::format("did you mean {}?", near));
  }
  return {};
}

}  // namespace

po::options_description own_options(const Verb& verb) {
  po::options_description options;
  if (verb.options) verb.options(options);
  if (verb.writes != Writes::kNothing) {
    const bool folder = verb.writes == Writes::kFolder;
    const char* what = folder ? "the folder to write into; made if it is not there"
                       : verb.writes == Writes::kTrace
                           ? "the .rtrace file to write; whole or not at all"
                           : "write to FILE instead of stdout; whole or not at all";
    options.add_options()("output,o",
                          po::value<std::string>()->value_name(folder ? "FOLDER" : "FILE"), what);
    options.add_options()("force",
                          folder ? "replace files that exist" : "replace FILE if it exists");
  }
  return options;
}

po::options_description common_options() {
  po::options_description options;
  auto add = options.add_options();
  add("json", "print one JSON document with a schema id");
  add("quiet,q", "no progress, notes or findings on stderr");
  add("verbose,v", "more notes and findings on stderr");
  add("color", po::value<std::string>()->value_name("WHEN")->default_value("auto"),
      "auto, always or never; NO_COLOR is honoured");
  add("max-memory", po::value<std::string>()->value_name("SIZE"),
      "most memory that a process of it may use, as 8GiB; beyond it ends with exit code 75");
  add("print-config", "show every setting with its origin and do nothing else");
  add("help,h", "show this help");
  return options;
}

Result<Arguments> parse_arguments(const Verb& verb, const std::vector<std::string>& words) {
  po::options_description options = own_options(verb);
  options.add(common_options());
  po::options_description all = options;
  all.add_options()("input", po::value<std::vector<std::string>>());
  po::positional_options_description positional;
  positional.add("input", -1);

  Arguments arguments;
  try {
    namespace style = po::command_line_style;
    auto parser = po::command_line_parser(words);
    const auto parsed = parser.options(all)
                            .positional(positional)
                            .style(style::unix_style & ~style::allow_guessing)
                            .run();
    for (const auto& option : parsed.options) {
      const std::string value = option.value.empty() ? "" : option.value.front();
      if (option.string_key == "input" && option.position_key < 0) {
        return unknown_option(verb, options, "--input");
      }
      if (option.string_key == "input") {
        arguments.inputs.insert(arguments.inputs.end(), option.value.begin(), option.value.end());
      } else {
        arguments.in_order.emplace_back(option.string_key, value);
      }
    }
    po::store(parsed, arguments.options);
    po::notify(arguments.options);
  } catch (const po::unknown_option& e) {
    return unknown_option(verb, options, e.get_option_name());
  } catch (const po::error& e) {
    return fail(Code::kUsage, e.what(), verb.name, help_line(verb));
  }
  if (arguments.options.count("help") > 0) return arguments;
  if (auto good = check_positionals(verb, arguments.inputs); !good) {
    return tl::unexpected(std::move(good).error());
  }
  const std::string color = arguments.options["color"].as<std::string>();
  if (color != "auto" && color != "always" && color != "never") {
    return fail(Code::kUsage, fmt::format("'{}' is not auto, always or never", color), "--color",
                help_line(verb));
  }
  return arguments;
}

}  // namespace rehearse::cli
