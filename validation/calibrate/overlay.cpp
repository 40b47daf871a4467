// SPDX-License-Identifier: Apache-2.0
#include "validation/calibrate/overlay.hpp"

#include <fmt/format.h>
#include <google/protobuf/message.h>

#include <cmath>
#include <string_view>

#include "base/random.hpp"

namespace rehearse::validation {
namespace {

std::string full_path(size_t parameter) {
  return std::string("platform.efficiency.") + parameters()[parameter].path;
}

// A field of Efficiency by its path ("nvlink_hop.simple"), in the unit of the parameter; 0: not stated.
double stated_value(const google::protobuf::Message& stated, const Parameter& parameter) {
  const google::protobuf::Message* at = &stated;
  const std::string_view path = parameter.path;
  const size_t dot = path.find('.');
  const auto field = [&](std::string_view name) {
    return at->GetDescriptor()->FindFieldByName(std::string(name));
  };
  if (dot != std::string_view::npos) {
    at = &at->GetReflection()->GetMessage(*at, field(path.substr(0, dot)));
  }
  const auto* last = field(dot == std::string_view::npos ? path : path.substr(dot + 1));
  if (last->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_INT64) {
    return static_cast<double>(at->GetReflection()->GetInt64(*at, last)) * 1e-3;
  }
  return at->GetReflection()->GetDouble(*at, last);
}

}  // namespace

const char* name_of(Standing standing) {
  switch (standing) {
    case Standing::kFitted:
      return "fitted";
    case Standing::kConditional:
      return "conditional";
    case Standing::kAtBound:
      return "at-bound";
    case Standing::kUndetermined:
      return "undetermined";
    case Standing::kUnused:
      return "unused";
  }
  return "unused";
}

pb::Patch overlay(const Fit& fit, const OverlaySource& source) {
  pb::Patch patch;
  pb::Calibration& calibration = *patch.mutable_calibration();
  calibration.set_platform(source.platform);
  for (const std::string& file : source.evidence) calibration.add_evidence(file);
  calibration.set_observations(static_cast<uint32_t>(fit.observations));
  calibration.set_scatter(std::stod(fmt::format("{:.4g}", fit.scatter)));
  std::vector<size_t> stated;
  for (const FittedParameter& one : fit.parameters) {
    if (one.standing == Standing::kUnused) continue;
    stated.push_back(one.parameter);
    const std::string path = full_path(one.parameter);
    const std::string value = written(one.parameter, one.value);
    if (one.standing != Standing::kUndetermined) (*patch.mutable_set())[path] = value;
    pb::CalibratedParameter& row = *calibration.add_parameters();
    row.set_path(path);
    row.set_what(parameters()[one.parameter].what);
    row.set_value(value);
    row.set_low(written(one.parameter, one.low));
    row.set_high(written(one.parameter, one.high));
    row.set_prior(written(one.parameter, parameters()[one.parameter].prior));
    row.set_standing(name_of(one.standing));
  }
  for (uint32_t k = 0; k < source.draws; ++k) {
    const Point point = draw(fit, source.seed, k);
    pb::ParameterDraw& row = *calibration.add_draws();
    for (const size_t parameter : stated) {
      row.add_values(written(parameter, value_at(point, parameter)));
    }
  }
  return patch;
}

Result<std::vector<pb::Patch>> draws_of(const pb::Calibration& calibration, uint32_t count) {
  if (count > static_cast<uint32_t>(calibration.draws_size())) {
    return fail(Code::kUsage,
                fmt::format("the calibration holds {} draws", calibration.draws_size()), "--draws",
                fmt::format("ask for fewer, or calibrate with --draws {}", count));
  }
  std::vector<pb::Patch> out;
  for (uint32_t k = 0; k < count; ++k) {
    const pb::ParameterDraw& row = calibration.draws(static_cast<int>(k));
    if (row.values_size() != calibration.parameters_size()) {
      return fail(Code::kBadInput, fmt::format("draw {} has not a value per parameter", k),
                  "calibration", "calibrate again");
    }
    pb::Patch patch;
    for (int i = 0; i < row.values_size(); ++i) {
      (*patch.mutable_set())[calibration.parameters(i).path()] = row.values(i);
    }
    out.push_back(std::move(patch));
  }
  return out;
}

std::vector<pb::Patch> prior_draws(const pb::Efficiency& stated, uint64_t seed, uint32_t count) {
  std::vector<pb::Patch> out;
  std::vector<double> centre;  // logarithm of what is stated over the prior
  for (size_t i = 0; i < parameters().size(); ++i) {
    const double value = stated_value(stated, parameters()[i]);
    centre.push_back(value > 0 ? std::log(value / parameters()[i].prior) : 0);
  }
  for (uint32_t k = 0; k < count; ++k) {
    Random random(seed, "prior draw", k);
    Point point(parameters().size(), 0);
    pb::Patch patch;
    for (size_t i = 0; i < point.size(); ++i) {
      point[i] = centre[i] + parameters()[i].spread * random.normal();
      (*patch.mutable_set())[full_path(i)] = written(i, value_at(point, i));
    }
    out.push_back(std::move(patch));
  }
  return out;
}

}  // namespace rehearse::validation
