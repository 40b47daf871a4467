# SPDX-License-Identifier: Apache-2.0
# rehearse_proto(target files...): C++ for .proto files whose imports are written from the project's root.
function(rehearse_proto target)
  set(out ${PROJECT_BINARY_DIR}/generated)
  set(sources)
  foreach(file ${ARGN})
    file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/${file})
    string(REGEX REPLACE "\\.proto$" "" stem ${path})
    add_custom_command(
      OUTPUT ${out}/${stem}.pb.cc ${out}/${stem}.pb.h
      COMMAND ${CMAKE_COMMAND} -E make_directory ${out}
      COMMAND protobuf::protoc -I${PROJECT_SOURCE_DIR} --cpp_out=${out} ${path}
      WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
      DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${file} VERBATIM)
    list(APPEND sources ${out}/${stem}.pb.cc ${out}/${stem}.pb.h)
  endforeach()
  add_library(${target} OBJECT ${sources})
  target_include_directories(${target} SYSTEM PUBLIC ${out})
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_link_libraries(${target} PUBLIC protobuf::libprotobuf)
  set_target_properties(${target} PROPERTIES UNITY_BUILD OFF) # each file has its own static tables
  target_compile_options(${target} PRIVATE "${REHEARSE_ANYWHERE}")
  if(REHEARSE_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${REHEARSE_SANITIZE})
  endif()
endfunction()
