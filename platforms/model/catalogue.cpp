// SPDX-License-Identifier: Apache-2.0
#include "platforms/model/catalogue.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "base/text.hpp"

namespace rehearse::platforms {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxLikes = 8;

// File names without .yaml, sorted.
Result<std::vector<std::string>> ids_in(const fs::path& folder) {
  std::error_code error;
  std::vector<std::string> ids;
  fs::directory_iterator files(folder, error);
  for (; !error && files != fs::directory_iterator(); files.increment(error)) {
    if (files->path().extension() == ".yaml") ids.push_back(files->path().stem().string());
  }
  if (error) {
    return fail(Code::kMissingInput, "cannot read the catalogue: " + error.message(),
                folder.string(), "set REHEARSE_HOME to the project's folder");
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

Result<std::string> file_of(const fs::path& folder, std::string_view id, const char* what) {
  RH_TRY(const std::vector<std::string> ids, ids_in(folder));
  if (std::binary_search(ids.begin(), ids.end(), id)) {
    return (folder / fmt::format("{}.yaml", id)).string();
  }
  const std::string close = nearest(id, ids);
  return fail(Code::kMissingInput, fmt::format("there is no {} '{}' in the catalogue", what, id),
              folder.string(),
              close.empty() ? fmt::format("known are {}", join_words(ids))
                            : fmt::format("did you mean '{}'?", close));
}

// Reads entries, following `like` from file to file.
class Reading {
 public:
  Reading(fs::path folder, int depth) : folder_(std::move(folder)), depth_(depth) {}

  [[nodiscard]] Result<pb::Platform> platform(std::string_view id) const {
    pb::Platform platform;
    RH_TRY(const std::string file, file_of(folder_, id, "platform"));
    if (auto ok = read(file, platform); !ok) return tl::unexpected(std::move(ok).error());
    if (platform.name().empty()) platform.set_name(std::string(id));
    platform.clear_like();
    return platform;
  }

  [[nodiscard]] Result<pb::Gpu> gpu(std::string_view id) const {
    pb::Gpu gpu;
    RH_TRY(const std::string file, file_of(folder_ / "gpus", id, "GPU"));
    if (auto ok = read(file, gpu); !ok) return tl::unexpected(std::move(ok).error());
    gpu.clear_like();
    return gpu;
  }

  [[nodiscard]] Result<pb::Node> node(std::string_view id) const {
    RH_TRY(pb::Platform entry, platform(id));
    if (entry.nodes().empty()) {
      return fail(Code::kBadInput, fmt::format("the catalogue entry '{}' has no nodes", id),
                  folder_.string(), "name another entry");
    }
    pb::Node node = std::move(*entry.mutable_nodes(0));
    node.clear_count();
    return node;
  }

  [[nodiscard]] Catalogue resolver() const {
    return
        [self = *this](const google::protobuf::Descriptor& type,
                       std::string_view id) -> Result<std::unique_ptr<google::protobuf::Message>> {
          if (&type == pb::Platform::descriptor()) return boxed(self.platform(id));
          if (&type == pb::Node::descriptor()) return boxed(self.node(id));
          if (&type == pb::Gpu::descriptor()) return boxed(self.gpu(id));
          return fail(Code::kBadInput,
                      fmt::format("the catalogue has no entries of type {}", type.name()),
                      std::string(id), "leave out like:");
        };
  }

 private:
  template <typename M>
  static Result<std::unique_ptr<google::protobuf::Message>> boxed(Result<M> entry) {
    if (!entry) return tl::unexpected(std::move(entry).error());
    return std::make_unique<M>(std::move(*entry));
  }

  Result<void> read(const std::string& file, google::protobuf::Message& message) const {
    if (depth_ >= kMaxLikes) {
      return fail(Code::kBadInput,
                  fmt::format("more than {} entries are like one another", kMaxLikes), file,
                  "break the circle of like:");
    }
    return read_document_file(file, message, Reading(folder_, depth_ + 1).resolver());
  }

  fs::path folder_;
  int depth_;
};

}  // namespace

PlatformCatalogue::PlatformCatalogue(fs::path folder) : folder_(std::move(folder)) {}

Result<std::vector<Entry>> PlatformCatalogue::list() const {
  RH_TRY(const std::vector<std::string> ids, ids_in(folder_));
  std::vector<Entry> entries;
  for (const std::string& id : ids) {
    RH_TRY(pb::Platform entry, platform(id));
    entries.push_back({id, entry.name(), entry.description()});
  }
  return entries;
}

Result<pb::Platform> PlatformCatalogue::platform(std::string_view id) const {
  return Reading(folder_, 0).platform(id);
}

Result<pb::Gpu> PlatformCatalogue::gpu(std::string_view id) const {
  return Reading(folder_, 0).gpu(id);
}

Result<std::vector<std::string>> PlatformCatalogue::gpus() const {
  return ids_in(folder_ / "gpus");
}

Catalogue PlatformCatalogue::resolver() const { return Reading(folder_, 0).resolver(); }

}  // namespace rehearse::platforms
