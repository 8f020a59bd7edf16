# SPDX-License-Identifier: BSD-3-Clause
# ryle_simt_sources(FILE... KERNELS FOLDER...)
#   Files of a test that compile kernels for the host (tests/support/simt). Pragmas in kernels are the device compiler's, and a
#   defect planted in a .cuh of the folders is planted in the test that includes it.
function(ryle_simt_sources)
  cmake_parse_arguments(A "" "" "KERNELS" ${ARGN})
  set_source_files_properties(${A_UNPARSED_ARGUMENTS} PROPERTIES COMPILE_OPTIONS "-Wno-unknown-pragmas")
  foreach(folder ${A_KERNELS})
    file(GLOB kernels CONFIGURE_DEPENDS ${folder}/*.cuh)
    foreach(kernel ${kernels})
      ryle_carries_mutant(${kernel} carries)
      if(carries)
        set_source_files_properties(${A_UNPARSED_ARGUMENTS} PROPERTIES COMPILE_FLAGS
          "-URYLE_MUTANT -DRYLE_MUTANT=${RYLE_MUTANT} -Wno-error")
      endif()
    endforeach()
  endforeach()
endfunction()
