# Rules for `cmake --install`. The client has headers, one source file and no library, so its package is in the
# architecture-independent directory, and its version file ignores the word size.
include(CMakePackageConfigHelpers)
set(LIGHTQ_PACKAGE_DIR ${CMAKE_INSTALL_DATADIR}/cmake/lightq)
set(LIGHTQ_PC_DIR ${CMAKE_INSTALL_DATADIR}/pkgconfig)
file(RELATIVE_PATH LIGHTQ_PC_PREFIX /${LIGHTQ_PC_DIR} /)
string(REGEX REPLACE "/$" "" LIGHTQ_PC_PREFIX "${LIGHTQ_PC_PREFIX}")

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/lightq DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT client
        FILES_MATCHING PATTERN "*.hpp")
install(FILES ${PROJECT_SOURCE_DIR}/src/compiled/source.cpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/lightq COMPONENT client)
install(TARGETS lightq_client lightq_separate EXPORT lightq-targets)
install(EXPORT lightq-targets NAMESPACE lightq:: DESTINATION ${LIGHTQ_PACKAGE_DIR} COMPONENT client)

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/lightq-config.cmake.in
  ${PROJECT_BINARY_DIR}/lightq-config.cmake INSTALL_DESTINATION ${LIGHTQ_PACKAGE_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/lightq-config-version.cmake
  COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES ${PROJECT_BINARY_DIR}/lightq-config.cmake ${PROJECT_BINARY_DIR}/lightq-config-version.cmake
        DESTINATION ${LIGHTQ_PACKAGE_DIR} COMPONENT client)

configure_file(${PROJECT_SOURCE_DIR}/cmake/lightq.pc.in ${PROJECT_BINARY_DIR}/lightq.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/lightq.pc DESTINATION ${LIGHTQ_PC_DIR} COMPONENT client)

if(TARGET lightq)
  install(TARGETS lightq RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
  if(NOT CMAKE_CROSSCOMPILING)  # the program itself writes its manual pages and completions
    set(LIGHTQ_MANUAL ${PROJECT_BINARY_DIR}/manual)
    add_custom_command(OUTPUT ${LIGHTQ_MANUAL}/man1/lightq.1 ${LIGHTQ_MANUAL}/lightq.bash ${LIGHTQ_MANUAL}/_lightq
                              ${LIGHTQ_MANUAL}/lightq.fish
      COMMAND lightq man --output-dir ${LIGHTQ_MANUAL}/man1
      COMMAND lightq completion bash > ${LIGHTQ_MANUAL}/lightq.bash
      COMMAND lightq completion zsh > ${LIGHTQ_MANUAL}/_lightq
      COMMAND lightq completion fish > ${LIGHTQ_MANUAL}/lightq.fish
      DEPENDS lightq COMMENT "Writing manual pages and completions" VERBATIM)
    add_custom_target(lightq_manual ALL DEPENDS ${LIGHTQ_MANUAL}/man1/lightq.1)
    install(DIRECTORY ${LIGHTQ_MANUAL}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT program)
    install(FILES ${LIGHTQ_MANUAL}/lightq.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
            RENAME lightq COMPONENT program)
    install(FILES ${LIGHTQ_MANUAL}/_lightq DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions COMPONENT program)
    install(FILES ${LIGHTQ_MANUAL}/lightq.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d
            COMPONENT program)
  endif()
endif()

# lightq_install_library(NAME): installs the package of a library of this architecture, with the component NAME: its
# targets lightq-NAME-targets, and files for find_package(lightq COMPONENTS NAME) and for pkg-config (lightq-NAME).
function(lightq_install_library name)
  set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/lightq-${name})
  install(EXPORT lightq-${name}-targets NAMESPACE lightq:: DESTINATION ${package_dir} COMPONENT ${name})
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/lightq-${name}-config-version.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${PROJECT_SOURCE_DIR}/cmake/lightq-${name}-config.cmake ${PROJECT_BINARY_DIR}/lightq-${name}-config-version.cmake
          DESTINATION ${package_dir} COMPONENT ${name})
  # The package that names the components, for installations of this one alone.
  install(FILES ${PROJECT_BINARY_DIR}/lightq-config.cmake ${PROJECT_BINARY_DIR}/lightq-config-version.cmake
          DESTINATION ${LIGHTQ_PACKAGE_DIR} COMPONENT ${name})
  set(pc_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
  file(RELATIVE_PATH LIGHTQ_PC_PREFIX /${pc_dir} /)
  string(REGEX REPLACE "/$" "" LIGHTQ_PC_PREFIX "${LIGHTQ_PC_PREFIX}")
  configure_file(${PROJECT_SOURCE_DIR}/cmake/lightq-${name}.pc.in ${PROJECT_BINARY_DIR}/lightq-${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/lightq-${name}.pc DESTINATION ${pc_dir} COMPONENT ${name})
endfunction()

if(TARGET lightq_log)
  include(${PROJECT_SOURCE_DIR}/cmake/LightqInstallLog.cmake)
endif()
if(TARGET lightq_c)
  include(${PROJECT_SOURCE_DIR}/cmake/LightqInstallC.cmake)
endif()
if(TARGET lightq_broker)
  include(${PROJECT_SOURCE_DIR}/cmake/LightqInstallBroker.cmake)
endif()
