# Installs the C library alone from BINARY_DIR into a new prefix and moves the prefix. Builds and runs a program in C
# against it with find_package and with pkg-config. No other package can be found meanwhile. Run with cmake -P.
# Requires: SOURCE_DIR, BINARY_DIR, WORK_DIR, CC and GENERATOR.
cmake_minimum_required(VERSION 3.25)

include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)

file(REMOVE_RECURSE ${WORK_DIR})
foreach(component c c_runtime)
  run(${CMAKE_COMMAND} --install ${BINARY_DIR} --prefix ${WORK_DIR}/first --component ${component})
endforeach()
file(RENAME ${WORK_DIR}/first ${WORK_DIR}/prefix)
set(program ${SOURCE_DIR}/tests/package/calling_c)
set(configure ${CMAKE_COMMAND} -G ${GENERATOR} -S ${program} -DCMAKE_C_COMPILER=${CC} -DCMAKE_PREFIX_PATH=${WORK_DIR}/prefix)

# 1. find_package.
foreach(package cppzmq ZeroMQ nlohmann_json OpenSSL PkgConfig)
  list(APPEND configure -DCMAKE_DISABLE_FIND_PACKAGE_${package}=ON)
endforeach()
run(${configure} -B ${WORK_DIR}/found)
run(${CMAKE_COMMAND} --build ${WORK_DIR}/found)
run(${WORK_DIR}/found/version)

# 2. pkg-config and the compiler alone, with a package path that has no other package.
find_program(pkg_config pkg-config REQUIRED)
file(GLOB_RECURSE described ${WORK_DIR}/prefix/lightq-c.pc)
cmake_path(GET described PARENT_PATH pc_dir)
set(ENV{PKG_CONFIG_LIBDIR} ${pc_dir})
set(ENV{PKG_CONFIG_PATH})
run(${pkg_config} --cflags --libs lightq-c)
separate_arguments(flags UNIX_COMMAND "${output}")
run(${CC} -std=c89 -pedantic -Wall -Wextra -Werror ${program}/version.c -o ${WORK_DIR}/bare ${flags})
cmake_path(GET pc_dir PARENT_PATH library_dir)
set(ENV{LD_LIBRARY_PATH} ${library_dir})
run(${WORK_DIR}/bare)
file(REMOVE_RECURSE ${WORK_DIR})
