# SPDX-License-Identifier: Apache-2.0
# Libraries of others: installed by ./dev setup (apt), never fetched or committed.
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(Protobuf REQUIRED)
find_package(fmt REQUIRED)
find_package(tl-expected REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(Boost 1.74 REQUIRED COMPONENTS program_options)
find_package(zstd REQUIRED)
find_package(ZLIB REQUIRED)
pkg_check_modules(SIMGRID REQUIRED IMPORTED_TARGET simgrid)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
