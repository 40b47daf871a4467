# SPDX-License-Identifier: Apache-2.0
# What every target of ours is compiled with.
option(REHEARSE_TESTS "Build the tests" OFF)
option(REHEARSE_WERROR "Treat warnings in our own code as errors" ON)
set(REHEARSE_SANITIZE "" CACHE STRING "Sanitizers, e.g. address,undefined")
option(REHEARSE_FUZZ "Build the fuzz targets (clang)" OFF)
set(REHEARSE_COVERAGE OFF CACHE BOOL "Instrument for gcovr")

add_library(rehearse_options INTERFACE)
add_library(rehearse::options ALIAS rehearse_options)
target_compile_features(rehearse_options INTERFACE cxx_std_20)
# -ffp-contract=off: the same bytes out of debug and release builds.
target_compile_options(rehearse_options INTERFACE
  -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wimplicit-fallthrough
  $<$<BOOL:${REHEARSE_WERROR}>:-Werror> -ffp-contract=off -fstack-protector-strong)
target_compile_definitions(rehearse_options INTERFACE
  $<$<CONFIG:Debug>:_GLIBCXX_ASSERTIONS> $<$<NOT:$<CONFIG:Debug>>:_FORTIFY_SOURCE=2>)
# The folder that was built in does not show in a release: the same sources give the same bytes anywhere.
set(REHEARSE_ANYWHERE "$<$<NOT:$<CONFIG:Debug>>:-ffile-prefix-map=${PROJECT_BINARY_DIR}=build;-ffile-prefix-map=${PROJECT_SOURCE_DIR}=.>")
target_compile_options(rehearse_options INTERFACE "${REHEARSE_ANYWHERE}")
if(REHEARSE_SANITIZE)
  # g++ 12 with sanitizers sees uninitialised members in std::function and std::regex that are not.
  target_compile_options(rehearse_options INTERFACE -fsanitize=${REHEARSE_SANITIZE}
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized> -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
  target_link_options(rehearse_options INTERFACE -fsanitize=${REHEARSE_SANITIZE})
endif()
if(REHEARSE_FUZZ)
  # The fuzzer sees which branches of our code an input reaches; each target links its own main.
  target_compile_options(rehearse_options INTERFACE -fsanitize=fuzzer-no-link)
  target_link_options(rehearse_options INTERFACE -fsanitize=fuzzer-no-link)
endif()
if(REHEARSE_COVERAGE)
  target_compile_options(rehearse_options INTERFACE --coverage -fprofile-update=atomic)
  target_link_options(rehearse_options INTERFACE --coverage)
endif()

# g++ looks for garbage whenever its heap has doubled; a compilation of ours fits into memory without.
add_compile_options($<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=1048576>)

find_program(CCACHE ccache)
if(CCACHE)
  # Precompiled headers are cached by what they hold, not by when they were written.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${CCACHE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-fpch-preprocess)
  endif()
endif()
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

# Several sources of a folder are compiled as one: reading the headers is most of the time of a build. Names in anonymous
# namespaces are therefore unique within a folder; the preset alone compiles each source alone.
option(REHEARSE_UNITY "Compile several sources of a folder as one" ON)

# rehearse_unity(target sources...): groups by folder, so that a new file moves only those that stand beside it.
function(rehearse_unity target)
  if(NOT REHEARSE_UNITY)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  foreach(source ${ARGN})
    cmake_path(GET source PARENT_PATH folder)
    string(MAKE_C_IDENTIFIER "in_${folder}" folder)
    if(NOT DEFINED ${folder})
      set(${folder} 0)
    endif()
    math(EXPR group "${${folder}} / 12")
    math(EXPR ${folder} "${${folder}} + 1")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${folder}_${group})
  endforeach()
  # A source's own types look like a header's when another file includes it.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endfunction()

# rehearse_room(name SOURCES... PROTOS... PUBLIC libs PRIVATE libs HEADERS...): one static library per folder. HEADERS are
# precompiled beside those of all rooms.
function(rehearse_room name)
  cmake_parse_arguments(ROOM "" "" "SOURCES;PROTOS;PUBLIC;PRIVATE;HEADERS" ${ARGN})
  add_library(rehearse_${name} STATIC ${ROOM_SOURCES})
  add_library(rehearse::${name} ALIAS rehearse_${name})
  target_include_directories(rehearse_${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(rehearse_${name} PUBLIC ${ROOM_PUBLIC} PRIVATE rehearse::options ${ROOM_PRIVATE})
  if(ROOM_PROTOS)
    rehearse_proto(rehearse_${name}_proto ${ROOM_PROTOS})
    target_link_libraries(rehearse_${name} PUBLIC rehearse_${name}_proto)
  endif()
  if(name STREQUAL "base") # the rooms are compiled alike: one precompiled header serves all of them
    target_precompile_headers(rehearse_base PRIVATE ${PROJECT_SOURCE_DIR}/base/cmake/precompiled.hpp)
  elseif(ROOM_HEADERS)
    target_precompile_headers(rehearse_${name} PRIVATE ${PROJECT_SOURCE_DIR}/base/cmake/precompiled.hpp ${ROOM_HEADERS})
  else()
    target_precompile_headers(rehearse_${name} REUSE_FROM rehearse_base)
  endif()
  rehearse_unity(rehearse_${name} ${ROOM_SOURCES})
endfunction()
