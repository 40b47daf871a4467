// SPDX-License-Identifier: Apache-2.0
#include "cli/report/html_table.hpp"

#include <fmt/format.h>

#include "cli/report/html.hpp"

namespace rehearse::cli {
namespace {

const char* class_of(Cells cells) {
  return cells == Cells::kFigures ? " class=\"n\""
         : cells == Cells::kNames ? " class=\"name\""
                                  : "";
}

}  // namespace

void HtmlTable::add(const std::vector<std::string>& cells, const std::string& row_class) {
  rows_ += fmt::format("<tr role=\"row\"{}>",
                       row_class.empty() ? "" : fmt::format(" class=\"{}\"", row_class));
  for (size_t i = 0; i < columns_.size(); ++i) {
    const std::string cell = i < cells.size() ? cells[i] : "";
    // A cell without anything is no line of its own on a phone.
    rows_ +=
        fmt::format("<td role=\"cell\"{} data-label=\"{}\">{}</td>", class_of(columns_[i].cells),
                    text(columns_[i].title), cell.empty() ? "" : "<div>" + cell + "</div>");
  }
  rows_ += "</tr>\n";
}

std::string HtmlTable::html() const {
  std::string out =
      fmt::format("<div class=\"scroll\"><table role=\"table\"{}><thead><tr role=\"row\">",
                  class_.empty() ? "" : fmt::format(" class=\"{}\"", class_));
  for (const HtmlColumn& column : columns_) {
    out += fmt::format("<th role=\"columnheader\" scope=\"col\"{}>{}</th>",
                       column.cells == Cells::kFigures ? " class=\"n\"" : "", text(column.title));
  }
  return out + "</tr></thead><tbody>\n" + rows_ + "</tbody></table></div>\n";
}

}  // namespace rehearse::cli
