# SPDX-License-Identifier: BSD-3-Clause
# Compiler floor and flags. Baseline x86-64 everywhere; instruction sets are chosen at run time, never by -march=native.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(RYLE_OPTIMIZE "-O2 -g1" CACHE STRING "optimisation and debug flags of release builds")
set(CMAKE_CXX_FLAGS_RELEASE "${RYLE_OPTIMIZE}")

add_library(ryle_flags INTERFACE)
target_compile_options(ryle_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wnon-virtual-dtor -fno-math-errno
  -fstack-protector-strong>)
# g++ 12 takes the deliberate _mm512_undefined_*() of its own headers for a mistake (GCC bug 105593).
target_compile_options(ryle_flags INTERFACE
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-maybe-uninitialized -Wno-uninitialized>)
target_include_directories(ryle_flags INTERFACE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR})
# g++ sweeps its memory from 128 MB on; grouped sources pass that in seconds. A gigabyte a job saves a tenth of the time.
target_compile_options(ryle_flags INTERFACE
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-expand=300;--param=ggc-min-heapsize=524288>)
if(RYLE_WERROR)
  target_compile_options(ryle_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()
if(RYLE_SANITIZE)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${RYLE_SANITIZE}>
                      $<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize-recover=all>
                      $<$<COMPILE_LANGUAGE:CXX>:-fno-omit-frame-pointer>)
  # Containers check their indices: a negative one ends the test.
  add_compile_definitions($<$<COMPILE_LANGUAGE:CXX>:_GLIBCXX_ASSERTIONS>)
  add_link_options(-fsanitize=${RYLE_SANITIZE})
elseif(CMAKE_BUILD_TYPE STREQUAL "Release")
  target_compile_options(ryle_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-D_FORTIFY_SOURCE=2>)
endif()

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()

# CUDA is found, never required.
set(RYLE_HAVE_CUDA OFF)
if(NOT RYLE_CUDA STREQUAL "off")
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
      set(CMAKE_CUDA_ARCHITECTURES 80-real 90a-real 90-virtual)
    endif()
    enable_language(CUDA)
    # CMake 3.25 (Debian 12) does not know the C++20 dialect of nvcc >= 12 yet and would refuse the standard.
    if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
      set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
    endif()
    set(CMAKE_CUDA_STANDARD 20)
    set(CMAKE_CUDA_STANDARD_REQUIRED ON)
    set(CMAKE_CUDA_EXTENSIONS OFF)
    set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
    # 554: a conversion of a view to itself is never called; -lineinfo costs nothing and names the line of a fault.
    target_compile_options(ryle_flags INTERFACE
      $<$<COMPILE_LANGUAGE:CUDA>:-diag-suppress=554 -lineinfo>)
    set(RYLE_HAVE_CUDA ON)
  elseif(RYLE_CUDA STREQUAL "on")
    message(FATAL_ERROR "RYLE_CUDA=on, but no nvcc was found")
  endif()
endif()
