# Installs the embedded queue: one static library and the few headers that <lightq/queue.hpp> includes. It is a
# separate package below the architecture's library directory, and needs only a threads library. find_package(lightq
# COMPONENTS log) finds it, and so does pkg-config (lightq-log).
set(LIGHTQ_LOG_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/lightq-log)
set(LIGHTQ_LOG_PC_DIR ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
set_target_properties(lightq_log PROPERTIES EXPORT_NAME log)

install(TARGETS lightq_log EXPORT lightq-log-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT log)
install(EXPORT lightq-log-targets NAMESPACE lightq:: DESTINATION ${LIGHTQ_LOG_PACKAGE_DIR} COMPONENT log)
foreach(folder base impl/base)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/lightq/${folder}/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/lightq/${folder}
          COMPONENT log FILES_MATCHING PATTERN "*.hpp")
endforeach()
foreach(header queue queue_options version)
  install(FILES ${PROJECT_SOURCE_DIR}/include/lightq/${header}.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/lightq COMPONENT log)
endforeach()
write_basic_package_version_file(${PROJECT_BINARY_DIR}/lightq-log-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_SOURCE_DIR}/cmake/lightq-log-config.cmake ${PROJECT_BINARY_DIR}/lightq-log-config-version.cmake
        DESTINATION ${LIGHTQ_LOG_PACKAGE_DIR} COMPONENT log)
# The package that names the components, for installations of this one alone.
install(FILES ${PROJECT_BINARY_DIR}/lightq-config.cmake ${PROJECT_BINARY_DIR}/lightq-config-version.cmake
        DESTINATION ${LIGHTQ_PACKAGE_DIR} COMPONENT log)

file(RELATIVE_PATH LIGHTQ_LOG_PC_PREFIX /${LIGHTQ_LOG_PC_DIR} /)
string(REGEX REPLACE "/$" "" LIGHTQ_LOG_PC_PREFIX "${LIGHTQ_LOG_PC_PREFIX}")
configure_file(${PROJECT_SOURCE_DIR}/cmake/lightq-log.pc.in ${PROJECT_BINARY_DIR}/lightq-log.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/lightq-log.pc DESTINATION ${LIGHTQ_LOG_PC_DIR} COMPONENT log)
