# SPDX-License-Identifier: Apache-2.0
# rehearse_embed(target function FILES NAME=PATH|PATH...): puts files into the binary. `target` then defines
#   std::span<const EmbeddedFile> rehearse::function();     (base/embedded.hpp)
# in the order written. NAME is what the file is called there, by default its name without folders. Files of
# others (/usr/share/...) come from their Debian package at build time and are never committed.
function(rehearse_embed target function)
  cmake_parse_arguments(E "" "" "FILES" ${ARGN})
  set(out ${CMAKE_CURRENT_BINARY_DIR}/${function}.cpp)
  set(paths)
  set(symbols)
  set(rows)
  set(number 0)
  foreach(file ${E_FILES})
    if(file MATCHES "^([^=]+)=(.+)$")
      set(name ${CMAKE_MATCH_1})
      set(path ${CMAKE_MATCH_2})
    else()
      cmake_path(GET file FILENAME name)
      set(path ${file})
    endif()
    cmake_path(ABSOLUTE_PATH path BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
    if(NOT EXISTS ${path})
      message(FATAL_ERROR "${path}, to be embedded, is missing: ./dev setup installs the packages of base/packages.txt")
    endif()
    set(symbol rehearse_${function}_${number})
    string(APPEND symbols "asm(\".pushsection .rodata\\n${symbol}:\\n.incbin \\\"${path}\\\"\\n${symbol}_end:\\n.byte 0\\n"
                          ".popsection\\n\");\nextern \"C\" __attribute__((visibility(\"hidden\"))) const char "
                          "${symbol}[], ${symbol}_end[];\n")
    string(APPEND rows "      {\"${name}\", {${symbol}, static_cast<size_t>(${symbol}_end - ${symbol})}},\n")
    list(APPEND paths ${path})
    math(EXPR number "${number} + 1")
  endforeach()
  file(CONFIGURE OUTPUT ${out} @ONLY CONTENT "// Made by base/cmake/embed.cmake.
#include <span>

#include \"base/embedded.hpp\"

@symbols@
namespace rehearse {
std::span<const EmbeddedFile> @function@();
std::span<const EmbeddedFile> @function@() {
  static const EmbeddedFile files[] = {
@rows@  };
  return files;
}
}  // namespace rehearse
")
  set_source_files_properties(${out} PROPERTIES OBJECT_DEPENDS "${paths}" SKIP_UNITY_BUILD_INCLUSION ON
                              SKIP_PRECOMPILE_HEADERS ON)
  target_sources(${target} PRIVATE ${out})
endfunction()
