# Installs the embedded queue alone from BINARY_DIR into a new prefix and moves the prefix. Builds and runs a
# program against it with find_package and with pkg-config. Packages that only the client or the broker needs
# cannot be found meanwhile. Run with cmake -P. Requires: SOURCE_DIR, BINARY_DIR, WORK_DIR, CXX, GENERATOR and
# SANITIZE.
cmake_minimum_required(VERSION 3.25)

include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)

file(REMOVE_RECURSE ${WORK_DIR})
run(${CMAKE_COMMAND} --install ${BINARY_DIR} --prefix ${WORK_DIR}/first --component log)
file(RENAME ${WORK_DIR}/first ${WORK_DIR}/prefix)
set(program ${SOURCE_DIR}/tests/package/queueing)
set(configure ${CMAKE_COMMAND} -G ${GENERATOR} -S ${program} -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_PREFIX_PATH=${WORK_DIR}/prefix)
set(sanitize)
if(SANITIZE)
  set(sanitize -fsanitize=${SANITIZE})
  list(APPEND configure -DCMAKE_CXX_FLAGS=${sanitize})
endif()

# 1. find_package.
foreach(package cppzmq ZeroMQ nlohmann_json OpenSSL spdlog tomlplusplus PkgConfig date)
  list(APPEND configure -DCMAKE_DISABLE_FIND_PACKAGE_${package}=ON)
endforeach()
run(${configure} -B ${WORK_DIR}/found)
run(${CMAKE_COMMAND} --build ${WORK_DIR}/found)
run(${CMAKE_COMMAND} -E chdir ${WORK_DIR} ${WORK_DIR}/found/queueing)

# Components that are not installed are not found.
foreach(component client broker)
  execute_process(COMMAND ${configure} -B ${WORK_DIR}/refused-${component} -DLIGHTQ_COMPONENT=${component}
                  RESULT_VARIABLE code OUTPUT_QUIET ERROR_VARIABLE told)
  if(code EQUAL 0 OR NOT told MATCHES "${component}")
    message(FATAL_ERROR "find_package(lightq COMPONENTS ${component}) without it answered ${code}: ${told}")
  endif()
endforeach()

# 2. pkg-config and the compiler alone, with a package path that has no other package.
find_program(pkg_config pkg-config REQUIRED)
file(GLOB_RECURSE described ${WORK_DIR}/prefix/lightq-log.pc)
cmake_path(GET described PARENT_PATH pc_dir)
set(ENV{PKG_CONFIG_LIBDIR} ${pc_dir})
set(ENV{PKG_CONFIG_PATH})
run(${pkg_config} --cflags --libs --static lightq-log)
if(output MATCHES "zmq|json|spdlog|toml|ssl|sodium")
  message(FATAL_ERROR "lightq-log asks for more than the queue: ${output}")
endif()
separate_arguments(flags UNIX_COMMAND "${output}")
run(${CXX} -std=c++20 ${sanitize} ${program}/queueing.cpp -o ${WORK_DIR}/bare ${flags})
file(REMOVE_RECURSE ${WORK_DIR}/queue)
run(${CMAKE_COMMAND} -E chdir ${WORK_DIR} ${WORK_DIR}/bare)
file(REMOVE_RECURSE ${WORK_DIR})
