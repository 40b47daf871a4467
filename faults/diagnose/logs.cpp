// SPDX-License-Identifier: Apache-2.0
#include "faults/diagnose/logs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.hpp"
#include "faults/diagnose/recorders.hpp"
#include "faults/symptoms/classifier.hpp"
#include "faults/symptoms/crash_texts.hpp"
#include "sim/scenario/scenario.hpp"

namespace rehearse::faults {
namespace {

constexpr double kQuoted = 0.7;  // share of a quoted line's words that a warning must have

// What all logs together say.
struct Said {
  std::map<std::string, std::map<std::string, std::set<std::string>>>
      environment;  // name, value, hosts
  std::set<std::string> hosts, socket_hosts, ib_hosts;
  std::vector<std::pair<std::string, std::string>> warnings;  // host, text
  bool incomplete = false;                                    // a communicator that did not come up
  bool complete = false;                                      // one that did
  std::vector<PrintedError> printed;
};

Said read(std::span<const pb::NcclLog> logs) {
  Said out;
  for (const pb::NcclLog& log : logs) {
    for (const pb::NcclProcess& process : log.processes()) {
      out.hosts.insert(process.host());
      for (const auto& [name, value] : process.environment()) {
        out.environment[name][value].insert(process.host());
      }
      if (process.network() == "Socket") out.socket_hosts.insert(process.host());
      if (process.network() == "IB") out.ib_hosts.insert(process.host());
    }
    for (const pb::NcclWarning& warning : log.warnings()) {
      const int process = static_cast<int>(warning.process());
      out.warnings.emplace_back(process < log.processes_size() ? log.processes(process).host() : "",
                                warning.text());
    }
    for (const pb::NcclCommunicator& communicator : log.communicators()) {
      for (const pb::NcclRank& rank : communicator.ranks()) {
        out.incomplete = out.incomplete || (rank.init_started() && !rank.init_complete());
        out.complete = out.complete || rank.init_complete();
      }
    }
  }
  return out;
}

std::string hosts_in_words(const std::set<std::string>& hosts) {
  const std::vector<std::string> all(hosts.begin(), hosts.end());
  return join_words(all);
}

// Words of four letters and more, in lower case.
std::set<std::string> words_of(std::string_view text) {
  std::set<std::string> out;
  std::string word;
  for (const char c : lower_case(text) + " ") {
    if (std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_') {
      word += c;
      continue;
    }
    if (word.size() >= 4) out.insert(word);
    word.clear();
  }
  return out;
}

// What stands in double quotes.
std::vector<std::string> quoted(const std::string& text) {
  std::vector<std::string> out;
  size_t at = 0;
  while ((at = text.find('"', at)) != text.npos) {
    const size_t end = text.find('"', at + 1);
    if (end == text.npos) break;
    out.push_back(text.substr(at + 1, end - at - 1));
    at = end + 1;
  }
  return out;
}

// Settings of the fault that the processes read; 0 to 1.
double settings_shown(const pb::Fault& fault, const Said& said, pb::Cause& cause) {
  double shown = 0, wanted = 0;
  for (const pb::Patch& patch : fault.patch()) {
    for (const auto& [path, value] : sim::sorted_assignments(patch.set())) {
      const size_t at = path.find(".env.");
      if (at == path.npos || value.empty()) continue;
      const std::string name = path.substr(at + 5);
      if (!name.starts_with("NCCL_")) continue;
      ++wanted;
      const auto found = said.environment.find(name);
      if (found == said.environment.end()) continue;
      for (const auto& [read, hosts] : found->second) {
        const bool free = std::any_of(
            fault.parameters().begin(), fault.parameters().end(),
            [&, &given = value](const pb::Parameter& p) { return p.default_() == given; });
        if (read != value && !free) continue;
        // On some hosts only: a fault of nodes; on all: one of the job.
        const bool node = path.find(".ranks[") != path.npos;
        const bool everywhere = hosts.size() == said.hosts.size();
        const bool fits = said.hosts.size() < 2 || node != everywhere;
        shown += (read == value ? 1 : 0.8) * (fits ? 1 : 0.7);
        cause.add_evidence(fmt::format("NCCL read {}={} on {}", name, read, hosts_in_words(hosts)));
        for (const std::string& host : everywhere ? std::set<std::string>{} : hosts) {
          pb::Culprit& culprit = *cause.add_culprits();
          culprit.set_kind("node");
          culprit.set_why(host);
        }
        break;
      }
    }
  }
  return wanted > 0 ? shown / wanted : 0;
}

double warnings_quoted(const pb::Fault& fault, const Said& said, pb::Cause& cause) {
  double best = 0;
  for (const std::string& line : quoted(fault.in_logs())) {
    const auto wanted = words_of(line);
    if (wanted.size() < 2) continue;
    std::vector<std::pair<std::string, std::string>> lines = said.warnings;
    for (const PrintedError& error : said.printed) {
      lines.emplace_back(error.rank ? fmt::format("rank {}", *error.rank) : "", error.text);
    }
    for (const auto& [host, text] : lines) {
      const auto words = words_of(text);
      const auto there = std::count_if(wanted.begin(), wanted.end(), [&](const std::string& word) {
        return words.count(word) > 0;
      });
      const double share = static_cast<double>(there) / static_cast<double>(wanted.size());
      if (share < kQuoted || share <= best) continue;
      best = share;
      cause.add_evidence(fmt::format("{} says: {}", host.empty() ? "a process" : host, text));
      pb::Culprit& culprit = *cause.add_culprits();
      culprit.set_kind(host.starts_with("rank ") ? "rank" : "node");
      if (culprit.kind() == "rank")
        culprit.set_rank(static_cast<uint32_t>(std::stoul(host.substr(5))));
      culprit.set_why(host);
    }
  }
  return best;
}

pb::Symptom symptom_of(const Said& said) {
  pb::Symptom out;
  std::string id(kHealthy);
  if (!said.warnings.empty()) {
    const std::string& text = said.warnings.front().second;
    const CrashText* row = match_crash_text(text);
    id = said.incomplete && row ? std::string(category_in(*row, pb::BOOTSTRAP))
         : said.incomplete      ? "B1"
                                : "D1.1";
    out.add_reasons("NCCL warns: " + text);
  } else if (!said.printed.empty()) {
    const PrintedError& first = said.printed.front();
    const pb::Phase phase = said.complete ? pb::TRAINING : pb::RENDEZVOUS;
    const CrashText* row = match_crash_text(first.text);
    const std::string_view known = row ? category_in(*row, phase) : "";
    id = !known.empty() ? std::string(known) : said.complete ? "D1.12" : "B1";
    out.add_reasons(fmt::format(
        "{} says: {}", first.rank ? fmt::format("rank {}", *first.rank) : "a rank", first.text));
  } else if (!said.socket_hosts.empty() &&
             (!said.ib_hosts.empty() || said.environment.count("NCCL_IB_DISABLE") > 0)) {
    id = "B3";
    out.add_reasons(fmt::format("{} use sockets", hosts_in_words(said.socket_hosts)));
  }
  out.set_id(id);
  out.set_label(std::string(symptom_label(id)));
  return out;
}

pb::Diagnosis diagnose_said(const Said& said, const FaultCatalogue& catalogue) {
  pb::Diagnosis diagnosis;
  diagnosis.set_schema("rehearse.diagnosis/1");
  *diagnosis.mutable_symptom() = symptom_of(said);
  std::vector<pb::Cause> causes;
  for (const auto& entry : catalogue.entries()) {
    pb::Cause cause;
    const double settings = settings_shown(entry->fault, said, cause);
    const double warned = warnings_quoted(entry->fault, said, cause);
    const double score = std::max(0.8 * settings, 0.8 * warned) + 0.15 * std::min(settings, warned);
    if (score < 0.5) continue;
    cause.set_fault(entry->fault.id());
    cause.set_name(entry->fault.name());
    cause.set_use(entry->fault.id());
    cause.set_score(score);
    causes.push_back(std::move(cause));
  }
  std::stable_sort(causes.begin(), causes.end(),
                   [](const pb::Cause& a, const pb::Cause& b) { return a.score() > b.score(); });
  // A setting that slows a job down leaves nothing but itself in a log.
  if (!causes.empty() && diagnosis.symptom().id() == kHealthy) {
    diagnosis.mutable_symptom()->set_id("D2.2");
    diagnosis.mutable_symptom()->set_label(std::string(symptom_label("D2.2")));
    diagnosis.mutable_symptom()->add_reasons("settings that can slow a job down were read");
  }
  diagnosis.set_unknown(causes.empty() && diagnosis.symptom().id() != kHealthy);
  for (pb::Cause& cause : causes) *diagnosis.add_causes() = std::move(cause);
  return diagnosis;
}

}  // namespace

pb::Diagnosis diagnose_by_rules(const JobLogs& logs, const FaultCatalogue& catalogue) {
  std::vector<pb::NcclLog> nccl;
  for (const JobLogs::OfRank& one : logs.nccl) nccl.push_back(one.log);
  Said said = read(nccl);
  said.printed = logs.printed;
  pb::Diagnosis by_logs = diagnose_said(said, catalogue);
  if (logs.recorders.empty()) return by_logs;
  pb::Diagnosis out = diagnose_recorders(logs.recorders, catalogue);
  if (out.symptom().id() == kHealthy) return by_logs;
  for (const std::string& reason : by_logs.symptom().reasons()) {
    out.mutable_symptom()->add_reasons(reason);
  }
  // A cause that the dumps name too gets what the logs say for it.
  for (pb::Cause& cause : *by_logs.mutable_causes()) {
    const auto same =
        std::find_if(out.mutable_causes()->begin(), out.mutable_causes()->end(),
                     [&](const pb::Cause& other) { return other.fault() == cause.fault(); });
    if (same == out.mutable_causes()->end()) {
      *out.add_causes() = std::move(cause);
      continue;
    }
    same->set_score(std::max(same->score(), cause.score()) + 0.1);
    for (const std::string& text : cause.evidence()) same->add_evidence(text);
  }
  std::stable_sort(out.mutable_causes()->begin(), out.mutable_causes()->end(),
                   [](const pb::Cause& a, const pb::Cause& b) { return a.score() > b.score(); });
  return out;
}

}  // namespace rehearse::faults
