// SPDX-License-Identifier: Apache-2.0
// Subjects that come from tables: variables, requirements of versions, what backends can do.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <set>

#include "base/text.hpp"
#include "faults/check/subjects.hpp"
#include "sim/nccl/settings.hpp"
#include "sim/nccl/variables.hpp"

namespace rehearse::faults {
namespace {

const pb::KnownVariable* known_variable(const pb::CheckTables& tables, std::string_view name) {
  for (const pb::KnownVariable& row : tables.variables()) {
    if (row.name() == name) return &row;
  }
  return nullptr;
}

// Prefixes whose variables are read by one program only, so that an unknown name is a slip.
constexpr std::string_view kOwned[] = {"NCCL_",   "TORCH_NCCL_",   "HOROVOD_", "GLOO_",
                                       "MASTER_", "TORCHELASTIC_", "TF_CO"};

// The known variable that was probably meant.
std::string meant_by(const std::string& name, const std::set<std::string>& known) {
  std::string best;
  size_t least = std::max<size_t>(1, name.size() / 8) + 1;
  for (const std::string& candidate : known) {
    const size_t slips = edit_distance(name, candidate);
    if (slips < least) {
      least = slips;
      best = candidate;
    }
  }
  return best;
}

// Version of the library that reads the variable.
std::string reader_version(const Facts& facts, const Place& place, const std::string& reader) {
  const bool torch = reader == "torch" || reader == "torchrun";
  return facts.get(place, torch ? "version.pytorch" : "version." + reader).value_or("");
}

void put(FactMap& out, const char* name, const std::string& value) {
  if (!value.empty()) out[name] = value;
}

// Empty when only the name matters.
FactMap facts_of(const pb::KnownVariable& row) {
  FactMap out{{"variable.known", "true"},
              {"variable.may_differ", row.may_differ() ? "true" : "false"}};
  put(out, "variable.reader", row.reader());
  put(out, "variable.use", row.use());
  put(out, "variable.at_least", row.at_least());
  put(out, "variable.at_most", row.at_most());
  put(out, "variable.values",
      fmt::format("{}", fmt::join(row.values().begin(), row.values().end(), ",")));
  put(out, "variable.replaced_by", row.replaced_by());
  put(out, "variable.replaced_since", row.replaced_since());
  put(out, "variable.since", row.since());
  put(out, "variable.until", row.until());
  return out;
}

// A value that its reader does not understand.
struct ValueSlip {
  std::string word;     // of it
  std::string meant;    // the whole value as it was probably meant; "": not known
  std::string allowed;  // what it may be
};

bool is_word(const std::string& text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; });
}

// Of numbers nobody knows which was meant.
ValueSlip slip_of(const std::string& value, const std::vector<std::string>& known) {
  std::vector<std::string> words;
  std::copy_if(known.begin(), known.end(), std::back_inserter(words), is_word);
  return {value, is_word(value) ? nearest(value, words) : "",
          fmt::format("one of {}", fmt::join(known, ", "))};
}

// NCCL_ALGO and NCCL_PROTO, as NCCL reads them today.
std::optional<ValueSlip> slip_in_selection(const std::string& name, const std::string& value) {
  const auto refused = sim::refused_selection({{name, value}}, sim::NcclVersion{});
  if (!refused) return std::nullopt;
  ValueSlip out{refused->slip.token, "", "names of the library's documentation"};
  if (!refused->slip.nearest.empty()) {
    out.meant = value;
    out.meant.replace(value.find(out.word), out.word.size(), refused->slip.nearest);
  }
  return out;
}

std::optional<ValueSlip> slip_in(const pb::KnownVariable* row, const std::string& name,
                                 const std::string& value) {
  const sim::Variable* modelled = sim::find_variable(name);
  if (value.empty()) return std::nullopt;
  if (modelled != nullptr && modelled->form == sim::Form::kSelection) {
    return slip_in_selection(name, value);
  }
  if (row == nullptr || (row->values().empty() && row->words().empty())) return std::nullopt;
  const bool open = row->values().empty();
  const auto& listed = open ? row->words() : row->values();
  const std::vector<std::string> known(listed.begin(), listed.end());
  const bool understood = std::any_of(known.begin(), known.end(), [&](const std::string& each) {
    return row->exact() ? each == value : lower_case(each) == lower_case(value);
  });
  if (understood) return std::nullopt;
  ValueSlip slip = slip_of(value, known);
  // A name that nobody listed may be a plugin's.
  if (open && (slip.meant.empty() || edit_distance(value, slip.meant) > 1)) return std::nullopt;
  return slip;
}

void put_slip(FactMap& out, const pb::KnownVariable* row, const std::string& name,
              const std::string& value) {
  const auto slip = slip_in(row, name, value);
  if (!slip) return;
  out["variable.slip"] = slip->word;
  put(out, "variable.meant", slip->meant);
  out["variable.remedy"] = slip->meant.empty()
                               ? fmt::format("use {}, or unset it", slip->allowed)
                               : fmt::format("write {}={}, or unset it", name, slip->meant);
  if (sim::leaves_nothing({{name, value}})) out["variable.leaves"] = "nothing";
}

bool differs_between_ranks(const Facts& facts, const std::string& name) {
  const auto value = [&](size_t rank) {
    const auto at = facts.environment(rank).find(name);
    return sim::meaning_of(name, at == facts.environment(rank).end() ? "" : at->second);
  };
  for (size_t r = 1; r < facts.ranks(); ++r) {
    if (value(r) != value(0)) return true;
  }
  return false;
}

}  // namespace

void list_variables(const Facts& facts, const pb::CheckTables& tables, const Emit& emit) {
  std::set<std::string> known, seen;
  for (const pb::KnownVariable& row : tables.variables()) known.insert(row.name());
  for (const sim::Variable& row : sim::nccl_variables()) known.insert(std::string(row.name));
  for (size_t r = 0; r < facts.ranks(); ++r) {
    for (const auto& [name, value] : facts.environment(r)) seen.insert(name);
  }
  std::map<std::string, FactMap> shared;  // by variable
  for (const std::string& name : seen) {
    FactMap out;
    const sim::Variable* modelled = sim::find_variable(name);
    if (const pb::KnownVariable* row = known_variable(tables, name)) {
      out = facts_of(*row);
    } else if (modelled != nullptr) {
      out = {{"variable.known", "true"},
             {"variable.reader", "nccl"},
             {"variable.may_differ", modelled->per_node ? "true" : "false"}};
    } else if (std::any_of(std::begin(kOwned), std::end(kOwned),
                           [&](std::string_view prefix) { return name.starts_with(prefix); })) {
      out["variable.known"] = "false";
      put(out, "variable.nearest", meant_by(name, known));
    } else {
      const std::string near = meant_by(name, known);
      // Elsewhere only names that no other program would have: one slip away.
      if (near.empty() || edit_distance(name, near) > 1 || name.size() < 8) continue;
      out["variable.known"] = "false";
      out["variable.nearest"] = near;
    }
    out["variable.name"] = name;
    out["variable.differs"] = differs_between_ranks(facts, name) ? "true" : "false";
    shared[name] = std::move(out);
  }
  for (size_t r = 0; r < facts.ranks(); ++r) {
    const Place place{.node = facts.node_of(r), .rank = r};
    for (const auto& [name, value] : facts.environment(r)) {
      const auto at = shared.find(name);
      if (at == shared.end()) continue;
      FactMap extra = at->second;
      extra["variable.value"] = value;
      put_slip(extra, known_variable(tables, name), name, value);
      if (const auto reader = extra.find("variable.reader"); reader != extra.end()) {
        put(extra, "variable.reader_version", reader_version(facts, place, reader->second));
      }
      emit(place, std::move(extra));
    }
  }
}

void list_requirements(const Facts& facts, const pb::CheckTables& tables, const Emit& emit) {
  for (const pb::Requirement& row : tables.requirements()) {
    for (size_t n = 0; n < facts.nodes(); ++n) {
      const Place place{.node = n, .rank = {}};
      const Value have = facts.get(place, "version." + row.component());
      const Value found = facts.get(place, "version." + row.needs());
      if (!have || !found) continue;
      FactMap extra{{"row.component", row.component()},
                    {"row.needs", row.needs()},
                    {"row.have", *have},
                    {"row.found", *found}};
      put(extra, "row.from", row.from());
      put(extra, "row.below", row.below());
      put(extra, "row.at_least", row.at_least());
      put(extra, "row.under", row.under());
      put(extra, "row.category", row.category());
      put(extra, "row.otherwise", row.otherwise());
      put(extra, "row.source", row.source());
      std::string wanted = row.at_least().empty() ? "" : row.at_least() + " or newer";
      if (!row.under().empty())
        wanted += (wanted.empty() ? "" : ", ") + ("older than " + row.under());
      put(extra, "row.wanted", wanted);
      emit(place, std::move(extra));
    }
  }
}

void list_capabilities(const Facts& facts, const pb::CheckTables& tables, const Emit& emit) {
  const Value backend = facts.get({}, "backend");
  const auto has = [&](const char* list, const std::string& wanted) {
    const Value words = facts.get({}, list);
    if (!words) return false;
    const auto parts = split(*words, ',');
    return std::find(parts.begin(), parts.end(), wanted) != parts.end();
  };
  for (const pb::Capability& row : tables.capabilities()) {
    if (!backend || row.backend() != *backend) continue;
    if (!row.operation().empty() && !has("training.operations", row.operation())) continue;
    if (!row.data_type().empty() && !has("training.data_types", row.data_type())) continue;
    FactMap extra{{"row.backend", row.backend()}};
    put(extra, "row.operation", row.operation());
    put(extra, "row.data_type", row.data_type());
    put(extra, "row.below", row.below());
    put(extra, "row.source", row.source());
    put(extra, "row.version",
        facts.get({}, row.backend() == "nccl" ? "nccl_version" : "framework_version").value_or(""));
    extra["row.wanted"] = row.operation().empty()   ? row.data_type()
                          : row.data_type().empty() ? row.operation()
                                                    : row.operation() + " of " + row.data_type();
    emit({}, std::move(extra));
  }
}

}  // namespace rehearse::faults
