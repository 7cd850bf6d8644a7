# Installs the broker's libraries from BINARY_DIR into a new prefix, moves the prefix, and builds and runs the
# embedding example against it. Run with cmake -P. Requires: SOURCE_DIR, BINARY_DIR, WORK_DIR, CXX, GENERATOR
# and SANITIZE.
cmake_minimum_required(VERSION 3.25)

include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)

file(REMOVE_RECURSE ${WORK_DIR})
foreach(component client log broker)
  run(${CMAKE_COMMAND} --install ${BINARY_DIR} --prefix ${WORK_DIR}/first --component ${component})
endforeach()
file(RENAME ${WORK_DIR}/first ${WORK_DIR}/prefix)
file(COPY ${SOURCE_DIR}/examples/embedded_broker.cpp DESTINATION ${WORK_DIR}/program)
file(COPY_FILE ${SOURCE_DIR}/tests/package/embedding/CMakeLists.txt ${WORK_DIR}/program/CMakeLists.txt)
set(configure ${CMAKE_COMMAND} -G ${GENERATOR} -S ${WORK_DIR}/program -DCMAKE_CXX_COMPILER=${CXX})
if(SANITIZE)
  list(APPEND configure -DCMAKE_CXX_FLAGS=-fsanitize=${SANITIZE})
endif()
run(${configure} -B ${WORK_DIR}/found -DCMAKE_PREFIX_PATH=${WORK_DIR}/prefix)
run(${CMAKE_COMMAND} --build ${WORK_DIR}/found)
run(${WORK_DIR}/found/embedded_broker)

# A project that adds LightQ as a subdirectory gets the broker if it asks for it. This only configures,
# because building everything again would test no more.
run(${configure} -B ${WORK_DIR}/inside -DLIGHTQ_SOURCE_DIR=${SOURCE_DIR} -DLIGHTQ_BUILD_BROKER=ON)
file(REMOVE_RECURSE ${WORK_DIR})
