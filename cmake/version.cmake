# SPDX-License-Identifier: BSD-3-Clause
# Writes OUTPUT from INPUT with the version: the last tag vX.Y.Z, else FALLBACK, and the commit: "0.1.0+8a00d91", "-dirty"
# behind it where files were changed. Without git, or outside a checkout, FALLBACK alone. The file is touched when it changes.
set(RYLE_VERSION ${FALLBACK})
find_program(GIT git)
if(GIT AND EXISTS ${SOURCE}/.git)
  execute_process(COMMAND ${GIT} -C ${SOURCE} describe --tags --abbrev=0 --match v[0-9]* OUTPUT_VARIABLE tag
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE no_tag)
  if(no_tag EQUAL 0)
    string(REGEX REPLACE "^v" "" RYLE_VERSION ${tag})
  endif()
  execute_process(COMMAND ${GIT} -C ${SOURCE} describe --always --exclude=* --abbrev=7 --dirty OUTPUT_VARIABLE commit
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE no_commit)
  if(no_commit EQUAL 0)
    string(APPEND RYLE_VERSION "+${commit}")
  endif()
endif()
configure_file(${INPUT} ${OUTPUT} @ONLY)
