# Installs the C library. The component c_runtime has the files that programs need to run, c those to compile them: the
# header, the link for the linker, and files for CMake (find_package(lightq COMPONENTS c)) and pkg-config (lightq-c).
install(TARGETS lightq_c EXPORT lightq-c-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT c_runtime
        NAMELINK_COMPONENT c)
install(FILES ${PROJECT_SOURCE_DIR}/include/lightq/lightq.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/lightq COMPONENT c)
lightq_install_library(c)
