// SPDX-License-Identifier: Apache-2.0
// A verb of the command line as data: help, completion, man page and the tests of the examples are
// all made from this one table (cli/verbs.cpp), so that they cannot disagree with what is parsed.
#pragma once

#include <boost/program_options/options_description.hpp>
#include <functional>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace rehearse::cli {

class Context;

// A command that runs as printed, from the project's folder, after the examples before it of its
// verb.
struct Example {
  std::string command;  // "./rehearse inspect small.rtrace"
  std::string what;     // what it shows
  int status = 0;       // exit code
};

enum class Count { kOne, kOptional, kAny, kSome };  // 1, 0-1, 0-n, 1-n

struct Positional {
  std::string name;  // "FILE"
  std::string what;
  Count count = Count::kOne;
  std::vector<std::string> choices;  // words accepted; empty: anything
};

// kFile: -o FILE and --force, for what else would go to stdout. kTrace: the same for a .rtrace, which
// never does. kFolder: -o FOLDER for several files.
enum class Writes { kNothing, kFile, kTrace, kFolder };

struct Verb {
  std::string name;
  std::string summary;  // one line
  std::string details;  // paragraphs for --help; may be empty
  std::vector<Positional> positionals;
  std::function<void(boost::program_options::options_description&)> options;  // may be empty
  Writes writes = Writes::kNothing;
  std::vector<Example> examples;
  // Returns the exit code of a run that went well (0, or 1 for findings).
  std::function<Result<int>(Context&)> run;
};

// All verbs in the order of the overview.
[[nodiscard]] const std::vector<Verb>& verbs();
// nullptr when there is none of that name.
[[nodiscard]] const Verb* find_verb(const std::string& name);

// Options of the verb itself, -o and --force where it writes; without the common ones.
[[nodiscard]] boost::program_options::options_description own_options(const Verb& verb);
// --help, --json, --quiet, -v, --color: the same on every verb.
[[nodiscard]] boost::program_options::options_description common_options();

}  // namespace rehearse::cli
