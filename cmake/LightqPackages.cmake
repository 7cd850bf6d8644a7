# Debian packages by CPack: `lightq` is the program as a service, `liblightq0` the C library, and `liblightq-dev` what
# programs in C and C++ need to be compiled: the header of the C library, the C++ client and the embedded queue.
# scripts/package builds them. The version of the packages is the project's: there is no Debian revision.
set(LIGHTQ_MAINTAINER "LightQ maintainers <lightq@example.org>" CACHE STRING
    "Maintainer of the Debian packages; the default is no address that receives mail")
set(LIGHTQ_DEPLOY ${PROJECT_SOURCE_DIR}/deploy)

# Only the package has these files: EXCLUDE_FROM_ALL keeps them out of `cmake --install`.
install(FILES ${LIGHTQ_DEPLOY}/systemd/lightq.service DESTINATION lib/systemd/system COMPONENT service EXCLUDE_FROM_ALL)
install(FILES ${LIGHTQ_DEPLOY}/lightq.toml DESTINATION /etc/lightq COMPONENT service EXCLUDE_FROM_ALL)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME lightq)
set(CPACK_PACKAGE_VENDOR LightQ)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")  # each package has its own
set(CPACK_PACKAGE_CONTACT "${LIGHTQ_MAINTAINER}")
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_SET_DESTDIR ON)  # else files of /etc would go to the machine's own
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/LightqStagePackages.cmake)
set(CPACK_POST_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/LightqRepackLibrary.cmake)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_COMPONENTS_ALL program service client log c c_runtime)
set(CPACK_COMPONENT_PROGRAM_GROUP server)
set(CPACK_COMPONENT_SERVICE_GROUP server)
set(CPACK_COMPONENT_CLIENT_GROUP development)
set(CPACK_COMPONENT_LOG_GROUP development)
set(CPACK_COMPONENT_C_GROUP development)
set(CPACK_COMPONENT_C_RUNTIME_GROUP library)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)

set(CPACK_DEBIAN_SERVER_PACKAGE_NAME lightq)
set(CPACK_DEBIAN_SERVER_PACKAGE_SECTION net)
set(CPACK_DEBIAN_SERVER_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_SERVER_PACKAGE_DEPENDS "adduser, tzdata, init-system-helpers (>= 1.54~)")
set(CPACK_DEBIAN_SERVER_PACKAGE_CONTROL_EXTRA ${LIGHTQ_DEPLOY}/debian/postinst ${LIGHTQ_DEPLOY}/debian/prerm
    ${LIGHTQ_DEPLOY}/debian/postrm ${LIGHTQ_DEPLOY}/debian/conffiles)
set(CPACK_DEBIAN_SERVER_DESCRIPTION "small, fast, durable message broker
LightQ moves messages between programs of one machine or a few. One process
serves topics on disk and topics in memory to consumer groups, with
acknowledgement, retries, delayed and recurring messages.

This package has the broker as a service of its own user, and the command
line with its manual pages and completions.")

set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME liblightq0)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_LIBRARY_DESCRIPTION "C client of the message broker LightQ
LightQ moves messages between programs of one machine or a few.

This package has the shared library for programs in C and in languages that
can call C. liblightq-dev has its header.")

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME liblightq-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
    "liblightq0 (= ${PROJECT_VERSION}), libzmq3-dev, cppzmq-dev, nlohmann-json3-dev (>= 3.11), liblz4-dev, libzstd-dev, libssl-dev (>= 3.0)")
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION "C and C++ clients and embedded queue of the message broker LightQ
LightQ moves messages between programs of one machine or a few.

This package has the header of the C client, the header-only C++ client, the
static library of the queue that a program embeds without a broker, and files
for CMake and pkg-config.")

include(CPack)
