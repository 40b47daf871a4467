# SPDX-License-Identifier: Apache-2.0
# rehearse_digest(target function FOLDERS folder...): `target` then defines
#   const char* rehearse::function();     (SHA-256, in hexadecimal)
# of names and contents of all sources and data below these folders of the project. What is kept from one run to the
# next is kept under it, so that another program does not take it for its own. Made anew when one of them changes, by
# this same file as a script.
if(CMAKE_SCRIPT_MODE_FILE)
  cmake_minimum_required(VERSION 3.25)
  set(all)
  set(read "${OUT}:")
  foreach(folder ${FOLDERS})
    file(GLOB_RECURSE found LIST_DIRECTORIES true ${ROOT}/${folder}/*)
    string(APPEND read " ${ROOT}/${folder}")
    list(SORT found)
    foreach(path ${found})
      if(IS_DIRECTORY ${path})
        string(APPEND read " ${path}") # it changes with what is in it
      elseif(path MATCHES "\\.(cpp|hpp|proto|yaml)$")
        string(APPEND read " ${path}")
        file(SHA256 ${path} one)
        file(RELATIVE_PATH name ${ROOT} ${path})
        string(APPEND all "${name} ${one}\n")
      endif()
    endforeach()
  endforeach()
  string(SHA256 digest "${all}")
  file(WRITE ${OUT}.d "${read}\n")
  file(CONFIGURE OUTPUT ${OUT} @ONLY CONTENT "// Made by base/cmake/digest.cmake.
namespace rehearse {
const char* ${FUNCTION}();
const char* ${FUNCTION}() { return \"${digest}\"; }
}  // namespace rehearse
")
  return()
endif()

set(rehearse_digest_script ${CMAKE_CURRENT_LIST_FILE})
function(rehearse_digest target function)
  cmake_parse_arguments(D "" "" "FOLDERS" ${ARGN})
  set(out ${CMAKE_CURRENT_BINARY_DIR}/${function}.cpp)
  add_custom_command(OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR} -DOUT=${out} -DFUNCTION=${function}
            "-DFOLDERS=${D_FOLDERS}" -P ${rehearse_digest_script}
    DEPENDS ${rehearse_digest_script}
    DEPFILE ${out}.d
    VERBATIM COMMENT "")
  set_source_files_properties(${out} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON SKIP_PRECOMPILE_HEADERS ON)
  target_sources(${target} PRIVATE ${out})
endfunction()
