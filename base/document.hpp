// SPDX-License-Identifier: Apache-2.0
// YAML documents onto protobuf messages and back, in one place, by reflection.
//
//   keys      field names; `-` and `_` are the same letter. An unknown key is an error that names the
//             nearest right one, a (required) key that is not there is one too. Enum values are written
//             in kebab-case ("rail-optimised").
//   scalars   checked against the field's type, unit and bounds (base/proto/options.proto).
//   maps      YAML mappings, merged by key. Repeated fields: sequences, or a single element; a list
//             replaces the list that was there.
//   null      (nothing after the key) puts a field back to its default.
//   shorthand a scalar where a message is expected sets the message's (shorthand) field.
//   like      a message with a `like` field starts from what the Catalogue returns for it; keys
//             written beside `like` override it, a list replaces the inherited list. `like` itself is
//             left empty then. Without a Catalogue it is a string as any other.
//
// Every error carries file:line:column. Input is bounded: size, depth and aliases (limits below).
// JSON is a subset of YAML and reads too. Pure functions; messages are the caller's.
#pragma once

#include <google/protobuf/message.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace rehearse {

constexpr size_t kMaxDocumentBytes = 16u << 20;
constexpr int kMaxDocumentDepth = 64;

// Resolves `like: id` for messages of the given type (already complete, itself without `like`).
// Returns kMissingInput with the nearest known ids when there is no such entry.
using Catalogue = std::function<Result<std::unique_ptr<google::protobuf::Message>>(
    const google::protobuf::Descriptor& type, std::string_view id)>;

// Reads `text` into `message` (merged over its present content). `name` is the file name used in
// places.
[[nodiscard]] Result<void> read_document(std::string_view text, const std::string& name,
                                         google::protobuf::Message& message,
                                         const Catalogue& catalogue = {});
// The same from a file; kMissingInput when it cannot be opened.
[[nodiscard]] Result<void> read_document_file(const std::string& path,
                                              google::protobuf::Message& message,
                                              const Catalogue& catalogue = {});

// The *.yaml files of a folder, by name; kMissingInput when it cannot be read.
[[nodiscard]] Result<std::vector<std::filesystem::path>> yaml_files(
    const std::filesystem::path& folder);

// Assigns one value by path: `nodes[1].nics[*].bandwidth=100Gbps`.
//   name          a field;  name.key      an entry of a map field (the key is the rest of the path)
//   name[3]       index from 0;  name[8-15]  inclusive range;  name[*]  all;  name[0,2,4-6] several
//   name[text]    the element whose key field (option `key`, default "name") equals text
//   name[f=text]  the elements whose field f equals text
// An index past the end, an empty selection and an unknown name are errors; `where` is the path
// with the offending part marked (nodes[1].>>nicz<<.bandwidth). The value is parsed as in a
// document: a mapping is merged into the message, a list replaces; text for a string needs no
// quotes. On error the message is unchanged. Returns how many fields were set.
[[nodiscard]] Result<int> set_path(google::protobuf::Message& message, std::string_view path,
                                   std::string_view value, const Catalogue& catalogue = {});

// The value at a path as a document writes it; one line each when the path selects several.
[[nodiscard]] Result<std::string> get_path(const google::protobuf::Message& message,
                                           std::string_view path);

// The fields a path goes through, from the message down, the last one being what it names; of a map the map alone.
[[nodiscard]] Result<std::vector<const google::protobuf::FieldDescriptor*>> fields_of_path(
    const google::protobuf::Message& message, std::string_view path);

// The path with another selection of a list that is not within another list (`list`: its name from the message down,
// "platform.nodes"). `choose` is given what is selected now, ascending, and returns what is to be instead; it is written
// as indices and ranges. Nothing returned: the path stays as it is written; nothing selected: the result is empty.
// Paths that do not go through the list come back as they are.
using Selected = std::vector<uint32_t>;
[[nodiscard]] Result<std::string> reselect(
    const google::protobuf::Message& message, std::string_view path, std::string_view list,
    const std::function<std::optional<Selected>(const Selected&)>& choose);

// kBadInput with the first field, here or below, that has to be given and is not (options required, required_unless):
// for messages that were not read from a document, which says so with its place.
[[nodiscard]] Result<void> check_required(const google::protobuf::Message& message,
                                          const std::string& where);

// The message as YAML in field order, default values left out, quantities with units. Reading it
// gives an equal message (numbers must be finite, enums known and specified, bytes UTF-8).
[[nodiscard]] std::string write_document(const google::protobuf::Message& message);

// The same on one line, keys as people write them: "slow-rank: {rank: 3, slowdown: 2}"; with several keys at the top
// "{...}" around them. A message of which only the (shorthand) field is set is that value alone.
[[nodiscard]] std::string write_line(const google::protobuf::Message& message);

// The message as JSON: snake_case keys in field order, 64-bit integers as numbers, enums in
// kebab-case, unset scalar fields included as their default unless they are `optional` or messages.
[[nodiscard]] nlohmann::ordered_json to_json(const google::protobuf::Message& message);
// The reverse of to_json (unknown keys are an error).
[[nodiscard]] Result<void> from_json(const nlohmann::ordered_json& json,
                                     google::protobuf::Message& message, const std::string& name);

}  // namespace rehearse
