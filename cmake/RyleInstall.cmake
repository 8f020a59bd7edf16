# SPDX-License-Identifier: BSD-3-Clause
# What `cmake --install` puts in place: the command (component runtime), headers with a shared and a static library of all
# engines (dev), the documents (doc). examples/cpp is built against the result by tests/install.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(engines channelize correlate image beamform search grid)
set(parts core device math telescope)
list(TRANSFORM engines PREPEND engine_ OUTPUT_VARIABLE engine_parts)
set(objects)
foreach(part ${parts} ${engine_parts})
  get_target_property(kind ryle_${part} TYPE)
  if(NOT kind STREQUAL "INTERFACE_LIBRARY")
    list(APPEND objects $<TARGET_OBJECTS:ryle_${part}>)
  endif()
endforeach()

add_library(ryle_shared SHARED ${objects})
add_library(ryle_static STATIC ${objects})
set_target_properties(ryle_shared PROPERTIES EXPORT_NAME ryle SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
                      VERSION ${PROJECT_VERSION})
foreach(library ryle_shared ryle_static)
  set_target_properties(${library} PROPERTIES OUTPUT_NAME ryle LINKER_LANGUAGE CXX)
  target_link_libraries(${library} PRIVATE TBB::tbb fmt::fmt PkgConfig::ERFA PkgConfig::PUGIXML Threads::Threads $<BUILD_INTERFACE:ryle_toml>
                        $<INSTALL_INTERFACE:${TOMLPLUSPLUS_LIBRARY}>)
  if(RYLE_HAVE_CUDA)
    set_target_properties(${library} PROPERTIES CUDA_RESOLVE_DEVICE_SYMBOLS ON)
    target_link_libraries(${library} PRIVATE ${CMAKE_DL_LIBS} rt)
  endif()
  target_compile_features(${library} INTERFACE cxx_std_20)
  target_include_directories(${library} INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endforeach()
set_target_properties(ryle_static PROPERTIES EXPORT_NAME static)

install(TARGETS ryle RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT runtime)
# Man pages and completions: the program writes them from the options it has.
set(manual ${PROJECT_BINARY_DIR}/manual)
install(CODE "execute_process(COMMAND $<TARGET_FILE:ryle> manual ${manual} COMMAND_ERROR_IS_FATAL ANY)" COMPONENT runtime)
install(DIRECTORY ${manual}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT runtime)
install(FILES ${manual}/ryle.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME ryle COMPONENT runtime)
install(FILES ${manual}/_ryle DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions COMPONENT runtime)
install(FILES ${manual}/ryle.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT runtime)
install(TARGETS ryle_shared ryle_static EXPORT RyleTargets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev)
install(EXPORT RyleTargets NAMESPACE Ryle:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Ryle COMPONENT dev)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/RyleConfig.cmake.in ${PROJECT_BINARY_DIR}/RyleConfig.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Ryle)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/RyleConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/RyleConfig.cmake ${PROJECT_BINARY_DIR}/RyleConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Ryle COMPONENT dev)
configure_file(${PROJECT_SOURCE_DIR}/cmake/ryle.pc.in ${PROJECT_BINARY_DIR}/ryle.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/ryle.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)
# Public headers: code of one back-end and of one instruction set stays private to its engine.
foreach(part core device math simd telescope engine)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/src/ryle/${part} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/ryle COMPONENT dev
          FILES_MATCHING PATTERN "*.hpp" PATTERN "cpu" EXCLUDE PATTERN "cuda" EXCLUDE PATTERN "*.inc.hpp" EXCLUDE)
endforeach()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT doc)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT doc)
install(FILES ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT doc)
