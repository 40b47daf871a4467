// SPDX-License-Identifier: Apache-2.0
// Completion scripts for three shells from the table of verbs.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/context.hpp"
#include "cli/help.hpp"
#include "cli/verbs.hpp"

namespace rehearse::cli {
namespace {

std::vector<OptionRow> all_rows(const Verb& verb) {
  auto options = own_options(verb);
  options.add(common_options());
  return rows_of(options);
}

std::vector<std::string> names_of_verbs() {
  std::vector<std::string> names;
  for (const Verb& verb : verbs()) names.push_back(verb.name);
  return names;
}

std::vector<std::string> choices_of(const Verb& verb) {
  std::vector<std::string> words;
  for (const Positional& p : verb.positionals) {
    words.insert(words.end(), p.choices.begin(), p.choices.end());
  }
  return words;
}

// For text between single quotes in every shell here.
std::string in_fish_quotes(std::string text) {
  for (size_t at = 0; (at = text.find('\'', at)) != std::string::npos; at += 4) {
    text.replace(at, 1, "'\\''");
  }
  return "'" + text + "'";
}

// zsh reads brackets and colons in descriptions.
std::string zsh_text(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

}  // namespace

std::string bash_completion() {
  std::string out =
      "# bash completion of rehearse; made by `rehearse completion bash`\n"
      "_rehearse() {\n"
      "  local cur=${COMP_WORDS[COMP_CWORD]} verb= options= words= i\n"
      "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
      "    [[ ${COMP_WORDS[i]} == -* ]] || { verb=${COMP_WORDS[i]}; break; }\n"
      "  done\n"
      "  case $verb in\n";
  out += fmt::format("    '') words='{}' options='--help --version' ;;\n",
                     fmt::join(names_of_verbs(), " "));
  for (const Verb& verb : verbs()) {
    std::vector<std::string> options;
    for (const OptionRow& row : all_rows(verb)) options.push_back("--" + row.long_name);
    out += fmt::format("    {}) words='{}' options='{}' ;;\n", verb.name,
                       fmt::join(choices_of(verb), " "), fmt::join(options, " "));
  }
  out +=
      "  esac\n"
      "  if [[ $cur == -* ]]; then\n"
      "    mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$cur\")\n"
      "  else\n"
      "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
      "    [ -z \"$verb\" ] || mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- "
      "\"$cur\")\n"
      "  fi\n"
      "}\n"
      "complete -o filenames -F _rehearse rehearse ./rehearse\n";
  return out;
}

std::string zsh_completion() {
  std::string out =
      "#compdef rehearse\n"
      "# zsh completion of rehearse; made by `rehearse completion zsh`\n"
      "_rehearse() {\n"
      "  local -a verbs\n"
      "  verbs=(\n";
  for (const Verb& verb : verbs()) {
    out += "    " + in_fish_quotes(zsh_text(verb.name) + ":" + zsh_text(verb.summary)) + "\n";
  }
  out +=
      "  )\n"
      "  if (( CURRENT == 2 )); then\n"
      "    _describe verb verbs\n"
      "    return\n"
      "  fi\n"
      "  local verb=$words[2]\n"
      "  shift words\n"
      "  (( CURRENT-- ))\n"
      "  case $verb in\n";
  for (const Verb& verb : verbs()) {
    out += fmt::format("    {})\n      _arguments", verb.name);
    for (const OptionRow& row : all_rows(verb)) {
      std::string spec = fmt::format("*--{}{}[{}]", row.long_name, row.value.empty() ? "" : "=",
                                     zsh_text(row.what));
      if (!row.value.empty()) spec += fmt::format(":{}:_files", row.value);
      out += " \\\n        " + in_fish_quotes(spec);
    }
    const auto words = choices_of(verb);
    out += " \\\n        " + in_fish_quotes(words.empty()
                                        ? "*:argument:_files"
                                        : fmt::format("*:argument:({})", fmt::join(words, " ")));
    out += "\n      ;;\n";
  }
  out += "  esac\n}\n_rehearse \"$@\"\n";
  return out;
}

std::string fish_completion() {
  std::string out =
      "# fish completion of rehearse; made by `rehearse completion fish`\n"
      "complete -c rehearse -n __fish_use_subcommand -f -l help -d 'show help'\n"
      "complete -c rehearse -n __fish_use_subcommand -f -l version -d 'show the version'\n";
  for (const Verb& verb : verbs()) {
    out += fmt::format("complete -c rehearse -n __fish_use_subcommand -f -a {} -d {}\n", verb.name,
                       in_fish_quotes(verb.summary));
    const std::string inside =
        fmt::format("complete -c rehearse -n '__fish_seen_subcommand_from {}'", verb.name);
    for (const OptionRow& row : all_rows(verb)) {
      out += fmt::format("{} -l {}{}{} -d {}\n", inside, row.long_name,
                         row.short_name.empty() ? "" : " -s " + row.short_name,
                         row.value.empty() ? "" : " -r", in_fish_quotes(row.what));
    }
    if (const auto words = choices_of(verb); !words.empty()) {
      out += fmt::format("{} -a '{}'\n", inside, fmt::join(words, " "));
    }
  }
  return out;
}

Verb completion_verb() {
  Verb verb;
  verb.name = "completion";
  verb.summary = "print a completion script for your shell";
  verb.details =
      "bash: `source <(rehearse completion bash)`; zsh: write it to a file _rehearse in $fpath; "
      "fish: to "
      "~/.config/fish/completions/rehearse.fish.";
  verb.positionals = {{"SHELL", "whose completion", Count::kOne, {"bash", "zsh", "fish"}}};
  verb.writes = Writes::kFile;
  verb.examples = {
      {"./rehearse completion bash -o rehearse.bash", "a file to source from .bashrc"}};
  verb.run = [](Context& context) -> Result<int> {
    const std::string& shell = context.inputs().front();
    const std::string script = shell == "bash"  ? bash_completion()
                               : shell == "zsh" ? zsh_completion()
                                                : fish_completion();
    Result<void> done;
    if (context.json()) {
      done = context.print(nlohmann::ordered_json{
          {"schema", "rehearse.completion/1"}, {"shell", shell}, {"script", script}});
    } else {
      done = context.print(std::string_view(script));
    }
    return exit_code(std::move(done));
  };
  return verb;
}

}  // namespace rehearse::cli
