# Makes the single header, and compiles the examples of the client against it, where no other header of LightQ can be
# found. Links and runs a program. Run with cmake -P. Requires: SOURCE_DIR, WORK_DIR, CXX and PYTHON.
cmake_minimum_required(VERSION 3.25)

include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)

file(REMOVE_RECURSE ${WORK_DIR})
run(${PYTHON} -B ${SOURCE_DIR}/scripts/single_header ${WORK_DIR}/include/lightq/lightq.hpp)
set(compile ${CXX} -std=c++20 -Wall -Wextra -Wpedantic -Werror -Wno-return-type -I ${WORK_DIR}/include)
# All in one source file, because the header takes most of the time. Their mains return nothing. The last one is the program.
set(source "")
foreach(example producer consumer readme_parts)
  string(APPEND source "#define main ${example}_main\n#include \"${SOURCE_DIR}/examples/${example}.cpp\"\n#undef main\n")
endforeach()
file(WRITE ${WORK_DIR}/program.cpp "${source}#include \"${SOURCE_DIR}/tests/package/example/example.cpp\"\n")
run(${compile} ${WORK_DIR}/program.cpp -o ${WORK_DIR}/program -lzmq -llz4 -lzstd -lssl -lcrypto)
run(${WORK_DIR}/program)

execute_process(COMMAND ${compile} -DLIGHTQ_SEPARATE_COMPILATION -Wfatal-errors -fsyntax-only ${SOURCE_DIR}/examples/producer.cpp
                RESULT_VARIABLE code ERROR_VARIABLE told)
if(code EQUAL 0 OR NOT told MATCHES "the single header is header-only")
  message(FATAL_ERROR "separate compilation of the single header answered ${code}: ${told}")
endif()
file(REMOVE_RECURSE ${WORK_DIR})
