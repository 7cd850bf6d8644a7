# Installs the client into a new prefix, and builds the example project in three ways: with find_package, with
# add_subdirectory and with pkg-config. In each way it runs programs that are header-only and programs with separate
# compilation. Run with cmake -P. Requires: SOURCE_DIR, WORK_DIR, CXX and GENERATOR.
cmake_minimum_required(VERSION 3.25)

include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)

file(REMOVE_RECURSE ${WORK_DIR})
set(configure ${CMAKE_COMMAND} -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${CXX})
set(example ${SOURCE_DIR}/tests/package/example)

# 1. find_package, with a prefix that was moved after the installation: the package must not depend on its
# path.
run(${configure} -S ${SOURCE_DIR} -B ${WORK_DIR}/lightq -DLIGHTQ_BUILD_BROKER=OFF -DLIGHTQ_BUILD_TESTS=OFF
    -DLIGHTQ_BUILD_BENCH=OFF -DCMAKE_INSTALL_PREFIX=${WORK_DIR}/first)
run(${CMAKE_COMMAND} --build ${WORK_DIR}/lightq)
run(${CMAKE_COMMAND} --install ${WORK_DIR}/lightq)
file(RENAME ${WORK_DIR}/first ${WORK_DIR}/prefix)
run(${configure} -S ${example} -B ${WORK_DIR}/found -DCMAKE_PREFIX_PATH=${WORK_DIR}/prefix)
run(${CMAKE_COMMAND} --build ${WORK_DIR}/found --target light headers_only separate)
run(${WORK_DIR}/found/light)
run(${WORK_DIR}/found/headers_only)
run(${WORK_DIR}/found/separate)

# An incompatible version is refused.
execute_process(COMMAND ${configure} -S ${example} -B ${WORK_DIR}/refused -DCMAKE_PREFIX_PATH=${WORK_DIR}/prefix
                        -DLIGHTQ_VERSION=99.0
                RESULT_VARIABLE code OUTPUT_QUIET ERROR_QUIET)
if(code EQUAL 0)
  message(FATAL_ERROR "find_package(lightq 99.0) succeeded")
endif()

# 2. add_subdirectory.
run(${configure} -S ${example} -B ${WORK_DIR}/inside -DLIGHTQ_SOURCE_DIR=${SOURCE_DIR})
run(${CMAKE_COMMAND} --build ${WORK_DIR}/inside --target light precompiled)
run(${WORK_DIR}/inside/light)
run(${WORK_DIR}/inside/precompiled)

# 3. pkg-config and the compiler alone.
find_program(pkg_config pkg-config REQUIRED)
set(ENV{PKG_CONFIG_PATH} ${WORK_DIR}/prefix/share/pkgconfig)
run(${pkg_config} --cflags --libs lightq)
separate_arguments(flags UNIX_COMMAND "${output}")
run(${CXX} -std=c++20 ${example}/example.cpp -o ${WORK_DIR}/bare ${flags})
run(${WORK_DIR}/bare)
run(${CXX} -std=c++20 -DLIGHTQ_SEPARATE_COMPILATION ${example}/example.cpp ${WORK_DIR}/prefix/include/lightq/source.cpp
    -o ${WORK_DIR}/separate ${flags})
run(${WORK_DIR}/separate)
file(REMOVE_RECURSE ${WORK_DIR})
