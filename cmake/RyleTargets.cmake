# SPDX-License-Identifier: BSD-3-Clause
option(RYLE_GROUP_SOURCES "compile neighbouring files together: a build from nothing takes half the time" OFF)

# ryle_library(NAME [DEPENDS ryle libs...] [LINK third-party...] [SOURCES ...] [LIGHT])
#   One static library per folder: target ryle_NAME, sources = every .cpp of the folder (and .cu when CUDA is on).
#   DEPENDS are other folders (public edges, see docs/architecture and scripts/check_layers.py), LINK stays private. LIGHT:
#   nothing here runs once a voltage, so that -O1 does, which compiles in two thirds of the time.
function(ryle_library name)
  cmake_parse_arguments(A "LIGHT" "" "DEPENDS;LINK;SOURCES" ${ARGN})
  if(NOT A_SOURCES)
    file(GLOB A_SOURCES CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp ${CMAKE_CURRENT_SOURCE_DIR}/cpu/*.cpp
         ${CMAKE_CURRENT_SOURCE_DIR}/cuda/*.cpp)
    if(RYLE_HAVE_CUDA)
      file(GLOB cuda_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cu ${CMAKE_CURRENT_SOURCE_DIR}/cuda/*.cu)
      list(APPEND A_SOURCES ${cuda_sources})
    endif()
  endif()
  list(TRANSFORM A_DEPENDS PREPEND ryle_)
  if(A_SOURCES)
    add_library(ryle_${name} STATIC ${A_SOURCES})
    target_link_libraries(ryle_${name} PUBLIC ryle_flags ${A_DEPENDS} PRIVATE ${A_LINK})
    # What may change a value is a cast. Containers take an index of any integer type (docs/decisions/0021), of which clang would warn
    # under the same name.
    target_compile_options(ryle_${name} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wconversion>)
    if(RYLE_HAVE_CUDA)
      target_compile_definitions(ryle_${name} PRIVATE RYLE_HAVE_CUDA=1)
    endif()
    if(A_LIGHT)
      target_compile_options(ryle_${name} PRIVATE $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>>:-O1>)
    endif()
    # Files of instruction sets have options of their own and stay apart by themselves.
    if(RYLE_GROUP_SOURCES)
      set_target_properties(ryle_${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 24)
      # A group includes its files, which g++ takes for headers with unnamed namespaces.
      target_compile_options(ryle_${name} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
    endif()
  else()
    add_library(ryle_${name} INTERFACE)
    target_link_libraries(ryle_${name} INTERFACE ryle_flags ${A_DEPENDS} ${A_LINK})
  endif()
endfunction()

# ryle_test(NAME DEPENDS ryle libs... [LINK third-party...] [SOURCES ...] [LABELS ...] [SLOW tests...])
#   One GoogleTest executable test_NAME from every .cpp of the folder; each TEST becomes one ctest entry. SLOW ones get the
#   label slow: ./check leaves them to .ci/run.
function(ryle_test name)
  cmake_parse_arguments(A "" "TIMEOUT" "DEPENDS;LINK;SOURCES;LABELS;SLOW" ${ARGN})
  if(NOT A_SOURCES)
    file(GLOB A_SOURCES CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  endif()
  if(NOT A_SOURCES)
    return()
  endif()
  if(NOT A_TIMEOUT)
    set(A_TIMEOUT 120)
  endif()
  list(TRANSFORM A_DEPENDS PREPEND ryle_)
  add_executable(test_${name} ${A_SOURCES})
  target_link_libraries(test_${name} PRIVATE ryle_flags ${A_DEPENDS} ${A_LINK} ryle_test_main GTest::gtest GTest::gmock)
  target_include_directories(test_${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_definitions(test_${name} PRIVATE
    RYLE_SOURCE_DIR="${PROJECT_SOURCE_DIR}" RYLE_BINARY_DIR="${PROJECT_BINARY_DIR}")
  if(RYLE_GROUP_SOURCES)  # a build from nothing: tests compile a fifth faster so
    target_compile_options(test_${name} PRIVATE -O1)
  endif()
  list(JOIN A_SLOW ":" slow)
  gtest_discover_tests(test_${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60 TEST_PREFIX "${name}." TEST_FILTER "-${slow}"
    PROPERTIES TIMEOUT ${A_TIMEOUT} LABELS "${A_LABELS}")
  if(slow)
    gtest_discover_tests(test_${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60 TEST_PREFIX "${name}." TEST_FILTER "${slow}"
      TEST_LIST test_${name}_SLOW PROPERTIES TIMEOUT ${A_TIMEOUT} LABELS slow)
  endif()
endfunction()
