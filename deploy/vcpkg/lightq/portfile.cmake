# Installs the client from the tree around this port: vcpkg install lightq --overlay-ports=TREE/deploy/vcpkg
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set(VCPKG_BUILD_TYPE release)  # there is no library to build

vcpkg_cmake_configure(SOURCE_PATH "${SOURCE_PATH}" OPTIONS -DLIGHTQ_BUILD_BROKER=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH share/cmake/lightq)
vcpkg_fixup_pkgconfig()
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
