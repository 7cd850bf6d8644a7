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
endif()

if(TARGET lightq_log)
  include(${PROJECT_SOURCE_DIR}/cmake/LightqInstallLog.cmake)
endif()
if(TARGET lightq_broker)
  include(${PROJECT_SOURCE_DIR}/cmake/LightqInstallBroker.cmake)
endif()
