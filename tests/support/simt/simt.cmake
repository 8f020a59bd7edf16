# SPDX-License-Identifier: BSD-3-Clause
# ryle_simt_sources(FILE...)
#   Files of a test that compile kernels for the host (tests/support/simt). Pragmas in kernels are the device compiler's.
function(ryle_simt_sources)
  set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS "-Wno-unknown-pragmas")
endfunction()
