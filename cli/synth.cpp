// SPDX-License-Identifier: Apache-2.0
// `rehearse synth`: a trace from a model and a parallel layout. Its options are
// the fields of pb::Synth.
#include "traces/synth/synth.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "base/document.hpp"
#include "base/install.hpp"
#include "base/proto/options.pb.h"
#include "base/units.hpp"
#include "cli/context.hpp"
#include "cli/verbs.hpp"
#include "platforms/model/catalogue.hpp"

namespace rehearse::cli {
namespace {
namespace po = boost::program_options;
using Field = google::protobuf::FieldDescriptor;
using Json = nlohmann::ordered_json;

const std::vector<std::string>& models() {
  static const std::vector<std::string> list = {"gpt", "moe", "resnet50", "dlrm"};
  return list;
}

std::vector<const Field*> fields() {
  std::vector<const Field*> list;
  const auto* type = pb::Synth::descriptor();
  for (int i = 0; i < type->field_count(); ++i) {
    if (type->field(i)->name() != "model") list.push_back(type->field(i));
  }
  return list;
}

std::string option_name(const Field& field) {
  std::string name = field.name();
  std::ranges::replace(name, '_', '-');
  return name;
}

const char* value_name(const Field& field) {
  switch (field.options().GetExtension(pb::unit)) {
    case pb::BYTES:
      return "SIZE";
    case pb::NANOSECONDS:
      return "TIME";
    default:
      return field.cpp_type() == Field::CPPTYPE_STRING ? "NAME" : "N";
  }
}

// The value of one field as it is written in documents; "" when it is not set.
std::string written(const pb::Synth& options, const Field& field) {
  pb::Synth only;
  std::vector<const Field*> all = fields();
  only.CopyFrom(options);
  only.clear_model();
  for (const Field* other : all) {
    if (other != &field) only.GetReflection()->ClearField(&only, other);
  }
  const std::string text = write_document(only);
  const size_t colon = text.find(": ");
  return colon == text.npos ? "" : text.substr(colon + 2, text.find('\n') - colon - 2);
}

// "24", or "gpt 24, dlrm 8" where models differ.
std::string defaults_of(const Field& field) {
  std::vector<std::string> each;
  bool differ = false;
  std::string first;
  // Some options belong to one framework.
  const bool horovod = field.name() == "fusion" || field.name() == "cycle";
  for (const std::string& model : models()) {
    pb::Synth options;
    options.set_model(horovod ? "resnet50" : model);
    if (horovod) options.set_framework("horovod");
    const auto complete = synth::complete(options);
    if (!complete) continue;
    const std::string value = written(*complete, field);
    if (value.empty()) {
      differ = true;
      continue;
    }
    if (first.empty()) first = value;
    differ = differ || value != first;
    each.push_back(fmt::format("{} {}", model, value));
  }
  return differ ? fmt::format("{}", fmt::join(each, ", ")) : first;
}

void add_options(po::options_description& options) {
  for (const Field* field : fields()) {
    std::string what = field->options().GetExtension(pb::help);
    if (const std::string value = defaults_of(*field); !value.empty()) {
      what += fmt::format(" (default {})", value);
    }
    options.add_options()(option_name(*field).c_str(),
                          po::value<std::string>()->value_name(value_name(*field)), what.c_str());
  }
}

Result<pb::Synth> options_of(const Context& context) {
  pb::Synth options;
  options.set_model(context.inputs().front());
  for (const Field* field : fields()) {
    const std::string name = option_name(*field);
    if (!context.has(name)) continue;
    auto done = set_path(options, field->name(), context.get<std::string>(name));
    if (!done) {
      Error error = std::move(done).error();
      error.code = Code::kUsage;
      error.where = "--" + name;
      return tl::unexpected(std::move(error));
    }
  }
  return synth::complete(options);
}

Result<int> run_synth(Context& context) {
  const auto file = context.output();
  if (!file) {
    return fail(Code::kUsage, "-o is missing: the .rtrace file to write", "synth",
                "rehearse synth --help");
  }
  RH_TRY(const pb::Synth options, options_of(context));
  RH_TRY(const auto folder, shipped("platforms/catalogue"));
  RH_TRY(const pb::Gpu gpu, platforms::PlatformCatalogue(folder).gpu(options.gpu()));
  const int threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  RH_TRY(const uint64_t operations,
         synth::synthesize_to(*file, options, gpu, {context.overwrite(), threads},
                              context.reporter()));
  const uint64_t ranks = uint64_t{options.dp()} * options.tp() * options.pp();
  if (context.json()) {
    return exit_code(context.print_stdout(Json{{"schema", "rehearse.synth/1"},
                                               {"output", *file},
                                               {"ranks", ranks},
                                               {"operations", operations},
                                               {"options", to_json(options)}}));
  }
  context.reporter().note(fmt::format("{}: {} ranks, {} operations, synthetic", *file,
                                      format_count(ranks), format_count(operations)));
  return 0;
}

}  // namespace

Verb synth_verb() {
  Verb verb;
  verb.name = "synth";
  verb.summary = "make a trace from a model and a parallel layout";
  verb.details =
      "Kernel times come from the GPU's data sheet with seeded "
      "jitter; host calls, streams, event "
      "waits and "
      "communicators are as the framework makes them. The trace is "
      "marked synthetic and keeps its "
      "options.";
  verb.positionals = {{"MODEL", "what is trained", Count::kOne, models()}};
  verb.options = add_options;
  verb.writes = Writes::kTrace;
  verb.examples = {
      {"./rehearse synth resnet50 --dp 16 -o resnet.rtrace", "data-parallel ResNet-50 on 16 GPUs"},
      {"./rehearse synth gpt --layers 8 --hidden 1024 --tp 4 --pp "
       "2 --dp 2 -o gpt.rtrace",
       "a small GPT with tensor, pipeline and data parallelism"}};
  verb.run = run_synth;
  return verb;
}

}  // namespace rehearse::cli
