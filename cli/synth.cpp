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
#include "traces/export/kineto.hpp"

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
  options.add_options()(
      "kineto", po::value<std::string>()->value_name("DIR"),
      "write PyTorch profiler files, one per rank, into DIR instead of a .rtrace");
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

// One Kineto file per rank; a rank is in memory at a time.
Result<uint64_t> write_kineto_folder(const std::filesystem::path& folder, const pb::Synth& options,
                                     const pb::Gpu& gpu, Context& context) {
  std::error_code ec;
  std::filesystem::create_directories(folder, ec);
  if (ec) {
    return fail(Code::kIo, "cannot create the folder: " + ec.message(), folder.string(),
                "name a folder that can be written");
  }
  RH_TRY(const auto generator, synth::Generator::create(options, gpu));
  const pb::TraceHeader header = generator.header();
  const traces::KinetoContext shared{header, generator.communicators(), generator.strings()};
  uint64_t operations = 0;
  for (traces::RankId rank = 0; rank < generator.ranks(); ++rank) {
    if (context.reporter().interrupted()) return fail(Code::kInterrupted, "interrupted", "synth");
    context.reporter().progress("ranks", rank, generator.ranks());
    const traces::RankTrace trace = generator.rank(rank);
    operations += trace.ops.size();
    auto written = traces::write_kineto(trace, shared, folder, traces::Compression::kNone,
                                        context.overwrite());
    if (!written) return tl::unexpected(std::move(written).error());
  }
  return operations;
}

Result<int> run_synth(Context& context) {
  const bool kineto = context.has("kineto");
  if (context.output().has_value() == kineto) {
    return fail(
        Code::kUsage,
        kineto ? "-o and --kineto exclude each other" : "-o is missing: the .rtrace file to write",
        "synth", "rehearse synth --help");
  }
  const std::string place = kineto ? context.get<std::string>("kineto") : *context.output();
  RH_TRY(const pb::Synth options, options_of(context));
  RH_TRY(const auto folder, shipped("platforms/catalogue"));
  RH_TRY(const pb::Gpu gpu, platforms::PlatformCatalogue(folder).gpu(options.gpu()));
  const int threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  RH_TRY(const uint64_t operations,
         kineto ? write_kineto_folder(place, options, gpu, context)
                : synth::synthesize_to(place, options, gpu, {context.overwrite(), threads},
                                       context.reporter()));
  const uint64_t ranks = uint64_t{options.dp()} * options.tp() * options.pp();
  if (context.json()) {
    return exit_code(context.print_stdout(Json{{"schema", "rehearse.synth/1"},
                                               {"output", place},
                                               {"ranks", ranks},
                                               {"operations", operations},
                                               {"options", to_json(options)}}));
  }
  context.reporter().note(fmt::format("{}: {} ranks, {} operations, synthetic", place,
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
       "a small GPT with tensor, pipeline and data parallelism"},
      {"./rehearse synth dlrm --dp 8 --kineto dlrm-traces", "as the PyTorch profiler writes it"}};
  verb.run = run_synth;
  return verb;
}

}  // namespace rehearse::cli
