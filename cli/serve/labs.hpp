// SPDX-License-Identifier: Apache-2.0
// Labs of `rehearse learn` in the browser: a working folder per lab below FOLDER, whose files are
// read and written here and judged by the command itself. Safe to call from any thread.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/error.hpp"
#include "cli/serve/queries.hpp"

namespace rehearse::serve {

class Labs {
 public:
  Labs(Queries& queries, std::filesystem::path folder)
      : queries_(queries), folder_(std::move(folder)) {}

  // rehearse.labs/1 and rehearse.lab/1.
  [[nodiscard]] Result<std::string> list();
  [[nodiscard]] Result<std::string> show(const std::string& id);
  // rehearse.lab-files/1: the texts of the working folder; `started` is false without one.
  [[nodiscard]] Result<nlohmann::ordered_json> files(const std::string& id) const;
  // Makes the working folder anew; `seed` says where the fault is put.
  [[nodiscard]] Result<std::string> start(const std::string& id, uint32_t seed);
  // Replaces files of the folder that are the student's to change: {"job.yaml": TEXT, ...}.
  [[nodiscard]] Result<void> write(const std::string& id,
                                   const nlohmann::ordered_json& files) const;
  // What the job does now, and hint, check or solution of the lab.
  [[nodiscard]] Result<std::string> run(const std::string& id);
  [[nodiscard]] Result<std::string> ask(const std::string& word, const std::string& id);

 private:
  [[nodiscard]] Result<std::filesystem::path> started(const std::string& id) const;
  Queries& queries_;
  std::filesystem::path folder_;
};

}  // namespace rehearse::serve
