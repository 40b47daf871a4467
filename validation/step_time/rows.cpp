// SPDX-License-Identifier: Apache-2.0
#include "validation/step_time/rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/install.hpp"
#include "platforms/model/catalogue.hpp"
#include "traces/import/csv/lines.hpp"

namespace rehearse::validation {
namespace {

namespace fs = std::filesystem;

// A row by the names of its columns.
class PublishedRow {
 public:
  PublishedRow(const std::map<std::string, size_t>& columns, std::vector<std::string> fields)
      : columns_(&columns), fields_(std::move(fields)) {}

  [[nodiscard]] std::string text(const std::string& column) const {
    const auto at = columns_->find(column);
    return at == columns_->end() || at->second >= fields_.size() ? "" : fields_[at->second];
  }
  // 0 when there is none.
  [[nodiscard]] double number(const std::string& column) const {
    const std::string field = text(column);
    double value = 0;
    const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
    return error == std::errc{} && end == field.data() + field.size() ? value : 0;
  }
  [[nodiscard]] double or_one(const std::string& column) const {
    return std::max(1.0, number(column));
  }

 private:
  const std::map<std::string, size_t>* columns_;
  std::vector<std::string> fields_;
};

struct PublishedTable {
  std::map<std::string, size_t> columns;
  std::vector<std::vector<std::string>> rows;
};

Result<PublishedTable> read_published(const fs::path& file) {
  RH_TRY(traces::Source source, traces::Source::open(file, {}));
  traces::csv::Lines lines(source, ',');
  PublishedTable out;
  while (true) {
    RH_TRY(const auto next, lines.next());
    if (next != traces::csv::Lines::Next::kLine) break;
    std::vector<std::string> fields(
        lines.fields().begin(),
        lines.fields().begin() + static_cast<std::ptrdiff_t>(lines.count()));
    if (out.columns.empty()) {
      for (size_t i = 0; i < fields.size(); ++i) out.columns[fields[i]] = i;
    } else {
      out.rows.push_back(std::move(fields));
    }
  }
  if (out.rows.empty()) return fail(Code::kBadInput, "it has no rows", file.string(), "");
  return out;
}

// Rates of the data sheet.
Result<void> fill_gpu(const std::string& id, TransformerJob& job) {
  RH_TRY(const auto folder, shipped("platforms/catalogue"));
  RH_TRY(const pb::Gpu gpu, platforms::PlatformCatalogue(folder).gpu(id));
  job.peak = gpu.flops().bf16();
  job.fp8_peak = gpu.flops().fp8();
  job.memory_bandwidth = gpu.memory_bandwidth();
  return {};
}

struct ModelShape {
  double layers, hidden, layer_parameters, vocabulary;
};

// MPT: llm-foundry's scripts/train/yamls/pretrain; a layer has 12 h^2 parameters.
const std::map<std::string, ModelShape>& mpt() {
  const auto plain = [](double layers, double hidden) {
    return ModelShape{layers, hidden, 12 * hidden * hidden, 50368};
  };
  static const std::map<std::string, ModelShape> kModels = {
      {"125m", plain(12, 768)}, {"350m", plain(24, 1024)}, {"760m", plain(24, 1536)},
      {"1b", plain(24, 2048)},  {"3b", plain(32, 2560)},   {"7b", plain(32, 4096)},
      {"13b", plain(40, 5120)}, {"30b", plain(48, 7168)},  {"70b", plain(80, 8192)}};
  return kModels;
}

// Llama 3.1 (Dubey et al. 2024, table 3): grouped queries with 8 key and value heads, a gated MLP.
const std::map<std::string, ModelShape>& llama() {
  const auto grouped = [](double layers, double hidden, double ffn, double heads) {
    const double keys = 2 * 8 / heads;
    return ModelShape{layers, hidden, hidden * hidden * (2 + keys) + 3 * hidden * ffn, 128256};
  };
  static const std::map<std::string, ModelShape> kModels = {
      {"Llama 3.1 8B", grouped(32, 4096, 14336, 32)},
      {"Llama 3.1 70B", grouped(80, 8192, 28672, 64)},
      {"Llama 3.1 405B", grouped(126, 16384, 53248, 128)}};
  return kModels;
}

void set_shape(const ModelShape& shape, TransformerJob& job) {
  job.layers = shape.layers;
  job.hidden = shape.hidden;
  job.layer_parameters = shape.layer_parameters;
  job.vocabulary = shape.vocabulary;
}

// The number after a word in "FSDP 4, TP 8, PP 8, CP 2"; 1 without it.
double degree(const std::string& parallelism, const std::string& word) {
  const size_t at = parallelism.find(word + " ");
  if (at == std::string::npos) return 1;
  double value = 1;
  const char* const begin = parallelism.data() + at + word.size() + 1;
  std::from_chars(begin, parallelism.data() + parallelism.size(), value);
  return std::max(1.0, value);
}

std::string divisible(const PublishedRow& row, double replicas) {
  const double sequences = row.number("global-batch-size") / row.or_one("micro-batch-size");
  return replicas >= 1 && sequences / replicas >= 1 ? "" : "the layout does not fit 8 GPUs";
}

}  // namespace

Result<PublishedSteps> llm_foundry_steps(const fs::path& file) {
  RH_TRY(const PublishedTable table, read_published(file));
  PublishedSteps out;
  const std::map<std::string, std::string> gpus = {
      {"h100_80gb", "h100-sxm5"}, {"a100_80gb", "a100-sxm4-80gb"}, {"a100_40gb", "a100-sxm4-40gb"}};
  for (const auto& fields : table.rows) {
    const PublishedRow row(table.columns, fields);
    const auto shape = mpt().find(row.text("model"));
    const auto gpu = gpus.find(row.text("gpu"));
    if (shape == mpt().end() || gpu == gpus.end() || row.number("step_s_derived") <= 0) {
      ++out.left_out["model, GPU or step time is not stated"];
      continue;
    }
    if (row.text("activation_cpuoffload") == "True") {
      ++out.left_out["activations are moved to the host"];
      continue;
    }
    PublishedStep step;
    set_shape(shape->second, step.job);
    if (auto done = fill_gpu(gpu->second, step.job); !done) return tl::unexpected(done.error());
    step.job.sequence = row.number("seqlen_t");
    step.job.micro_batch = row.or_one("microbatchsize");
    step.job.micro_batches = row.or_one("gradaccum");
    step.job.dp = row.or_one("n_gpus");
    step.job.fsdp = true;
    step.job.network = 25e9;  // 1600 Gbit/s per node, as the tables of A100 say
    step.job.fp8 = row.text("precision") == "amp_fp8";
    if (row.text("activation_checkpointing") == "True") step.job.recompute = Recompute::kFull;
    step.model = row.text("model");
    step.gpu = gpu->second + (step.job.fp8 ? " fp8" : " bf16");
    step.seconds = row.number("step_s_derived");
    step.what = fmt::format("MPT {}, {} tokens, {} x {}", step.model, row.text("seqlen_t"),
                            row.text("n_gpus"), step.gpu);
    step.source = "measured/" + file.filename().string();
    out.steps.push_back(std::move(step));
  }
  out.assumptions.push_back("25 GB/s per GPU between nodes (1600 Gbit/s per node) also on H100");
  return out;
}

Result<PublishedSteps> torchtitan_steps(const fs::path& file) {
  RH_TRY(const PublishedTable table, read_published(file));
  PublishedSteps out;
  for (const auto& fields : table.rows) {
    const PublishedRow row(table.columns, fields);
    const auto shape = llama().find(row.text("model"));
    if (row.number("seq_len") <= 0 || row.number("step_s_derived") <= 0) {
      ++out.left_out["no sequence length"];
      continue;
    }
    if (shape == llama().end() || !row.text("gpu").starts_with("H100")) {
      ++out.left_out["model or GPU not known"];
      continue;
    }
    PublishedStep step;
    set_shape(shape->second, step.job);
    if (auto done = fill_gpu("h100-sxm5", step.job); !done) return tl::unexpected(done.error());
    const std::string parallelism = row.text("parallelism");
    step.job.sequence = row.number("seq_len");
    step.job.tp = degree(parallelism, "TP");
    step.job.pp = degree(parallelism, "PP");
    step.job.cp = degree(parallelism, "CP");
    step.job.dp = degree(parallelism, "FSDP");
    step.job.fsdp = true;
    step.job.network = 50e9;
    // A pipeline takes the sequences of its batch one by one.
    step.job.micro_batches = step.job.pp > 1 ? row.or_one("local_batch") : 1;
    step.job.micro_batch = step.job.pp > 1 ? 1 : row.or_one("local_batch");
    if (row.text("technique").starts_with("Interleaved")) step.job.chunks = 2;
    if (row.text("activation_checkpointing") == "full") step.job.recompute = Recompute::kFull;
    step.job.fp8 = row.text("technique").find("Float8") != std::string::npos;
    step.model = row.text("model");
    step.gpu = std::string("h100-sxm5") + (step.job.fp8 ? " fp8" : " bf16");
    step.seconds = row.number("step_s_derived");
    step.family = "torchtitan";
    step.memory = row.number("memory_gib") * (1 << 30);
    step.what = fmt::format("{}, {} tokens, {}, {} GPUs", step.model, row.text("seq_len"),
                            parallelism, row.text("n_gpus"));
    step.source = "measured/" + file.filename().string();
    out.steps.push_back(std::move(step));
  }
  out.assumptions.push_back(
      "a pipeline's micro-batch is one sequence; 400 Gbit/s per GPU between nodes");
  return out;
}

Result<PublishedSteps> megatron_steps(const fs::path& file) {
  RH_TRY(const PublishedTable table, read_published(file));
  PublishedSteps out;
  const double gpus = 8;
  for (const auto& fields : table.rows) {
    const PublishedRow row(table.columns, fields);
    const std::string hardware = row.text("hardware"), name = row.text("case");
    const std::string family = name.substr(0, name.find('/'));
    if (family != "gpt" && family != "bert") {
      ++out.left_out["not a dense transformer of one stack"];
      continue;
    }
    if (hardware != "A100" && hardware != "H100") {
      ++out.left_out["the GPU is not stated"];
      continue;
    }
    if (row.number("num-layers") <= 0 || row.number("hidden-size") <= 0 ||
        row.number("seq-length") <= 0 || row.number("global-batch-size") <= 0 ||
        row.number("micro-batch-size") <= 0 || row.number("median_after_warmup_s") <= 0) {
      ++out.left_out["shape or batch is not stated"];
      continue;
    }
    if (row.number("num-experts") > 1 || row.text("use-torch-fsdp2") == "true" ||
        row.text("use-megatron-fsdp") == "true") {
      ++out.left_out["experts or FSDP"];
      continue;
    }
    PublishedStep step;
    step.job.layers = row.number("num-layers");
    step.job.hidden = row.number("hidden-size");
    step.job.layer_parameters = 12 * step.job.hidden * step.job.hidden;
    step.job.vocabulary = 51200;
    step.job.sequence = row.number("seq-length");
    step.job.tp = row.or_one("tensor-model-parallel-size");
    step.job.pp = row.or_one("pipeline-model-parallel-size");
    step.job.cp = row.or_one("context-parallel-size");
    step.job.dp = gpus / (step.job.tp * step.job.pp * step.job.cp);
    if (const std::string why = divisible(row, step.job.dp); !why.empty()) {
      ++out.left_out[why];
      continue;
    }
    step.job.micro_batch = row.number("micro-batch-size");
    step.job.micro_batches = row.number("global-batch-size") / (step.job.micro_batch * step.job.dp);
    const double chunk = row.number("num-layers-per-virtual-pipeline-stage");
    if (chunk > 0) step.job.chunks = std::max(1.0, step.job.layers / step.job.pp / chunk);
    if (row.text("recompute-granularity") == "full") step.job.recompute = Recompute::kFull;
    const std::string gpu = hardware == "H100" ? "h100-sxm5" : "a100-sxm4-80gb";
    if (auto done = fill_gpu(gpu, step.job); !done) return tl::unexpected(done.error());
    step.gpu = gpu + " bf16";
    step.family =
        fmt::format("{} on {}, {} layers of {}, {} tokens, {} of {} sequences", family, hardware,
                    row.text("num-layers"), row.text("hidden-size"), row.text("seq-length"),
                    row.text("micro-batch-size"), row.text("global-batch-size"));
    step.model =
        fmt::format("tp {} pp {} cp {} chunks {}{}", step.job.tp, step.job.pp, step.job.cp,
                    step.job.chunks, step.job.recompute == Recompute::kFull ? ", recompute" : "");
    step.what = step.family + ": " + step.model;
    step.seconds = row.number("median_after_warmup_s");
    step.source = "measured/" + file.filename().string();
    out.steps.push_back(std::move(step));
  }
  out.assumptions.push_back("8 GPUs, which the configurations do not state");
  return out;
}

}  // namespace rehearse::validation
