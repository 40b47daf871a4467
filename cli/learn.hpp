// SPDX-License-Identifier: Apache-2.0
// The parts of `rehearse learn`, one function per word that follows it. `words` are those after that word.
#pragma once

#include <string>
#include <vector>

#include "cli/context.hpp"
#include "faults/lessons/lab_catalogue.hpp"

namespace rehearse::cli {

using LearnWords = std::vector<std::string>;

// The shipped labs and those in the folders of --labs.
[[nodiscard]] Result<faults::LabCatalogue> lab_catalogue(const Context& context);

// cli/learn_list.cpp: for everybody.
[[nodiscard]] Result<int> learn_list(Context& context, const LearnWords& words);
[[nodiscard]] Result<int> learn_show(Context& context, const LearnWords& words);
// cli/learn_work.cpp: for who works on a lab.
[[nodiscard]] Result<int> learn_start(Context& context, const LearnWords& words);
[[nodiscard]] Result<int> learn_hint(Context& context, const LearnWords& words);
[[nodiscard]] Result<int> learn_check(Context& context, const LearnWords& words);
[[nodiscard]] Result<int> learn_solution(Context& context, const LearnWords& words);
// cli/learn_teach.cpp: for teachers.
[[nodiscard]] Result<int> learn_grade(Context& context, const LearnWords& words);
[[nodiscard]] Result<int> learn_new(Context& context, const LearnWords& words);
[[nodiscard]] Result<int> learn_verify(Context& context, const LearnWords& words);

}  // namespace rehearse::cli
