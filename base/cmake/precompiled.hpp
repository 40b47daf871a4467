// SPDX-License-Identifier: Apache-2.0
// Headers that nearly every file pays for; precompiled once per library. Files still include what they name.
#pragma once

#include <fmt/format.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <unordered_map>
#include <vector>
