# Installs the C library. The component c_runtime is what programs need to run, c what they need to be compiled: the
# header, the link for the linker, and files for CMake (find_package(lightq COMPONENTS c)) and pkg-config (lightq-c).
set(LIGHTQ_C_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/lightq-c)
set(LIGHTQ_C_PC_DIR ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

install(TARGETS lightq_c EXPORT lightq-c-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT c_runtime
        NAMELINK_COMPONENT c)
install(FILES ${PROJECT_SOURCE_DIR}/include/lightq/lightq.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/lightq COMPONENT c)
install(EXPORT lightq-c-targets NAMESPACE lightq:: DESTINATION ${LIGHTQ_C_PACKAGE_DIR} COMPONENT c)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/lightq-c-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_SOURCE_DIR}/cmake/lightq-c-config.cmake ${PROJECT_BINARY_DIR}/lightq-c-config-version.cmake
        DESTINATION ${LIGHTQ_C_PACKAGE_DIR} COMPONENT c)
# The package that names the components, for installations of this one alone.
install(FILES ${PROJECT_BINARY_DIR}/lightq-config.cmake ${PROJECT_BINARY_DIR}/lightq-config-version.cmake
        DESTINATION ${LIGHTQ_PACKAGE_DIR} COMPONENT c)

file(RELATIVE_PATH LIGHTQ_C_PC_PREFIX /${LIGHTQ_C_PC_DIR} /)
string(REGEX REPLACE "/$" "" LIGHTQ_C_PC_PREFIX "${LIGHTQ_C_PC_PREFIX}")
configure_file(${PROJECT_SOURCE_DIR}/cmake/lightq-c.pc.in ${PROJECT_BINARY_DIR}/lightq-c.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/lightq-c.pc DESTINATION ${LIGHTQ_C_PC_DIR} COMPONENT c)
