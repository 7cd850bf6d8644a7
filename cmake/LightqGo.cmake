# Finds Go for the client's tests and benchmarks. Sets LIGHTQ_GO to the program, LIGHTQ_GO_IS_NEW to true if the client's
# 1.19 or a newer version was found, and LIGHTQ_GO_ENVIRONMENT to a list NAME=VALUE: nothing is downloaded, and compiled
# packages stay in the build directory.
find_program(LIGHTQ_GO NAMES go PATHS /usr/local/go/bin)
set(LIGHTQ_GO_ENVIRONMENT "GOCACHE=${PROJECT_BINARY_DIR}/go_cache;GOPROXY=off;GOFLAGS=;GOWORK=off;GOTOOLCHAIN=local")
set(LIGHTQ_GO_IS_NEW FALSE)
if(LIGHTQ_GO)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env ${LIGHTQ_GO_ENVIRONMENT} ${LIGHTQ_GO} env GOVERSION
                  OUTPUT_VARIABLE go_version OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  string(REGEX MATCH "[0-9]+\\.[0-9]+" go_version "${go_version}")
  if(go_version VERSION_GREATER_EQUAL 1.19)
    set(LIGHTQ_GO_IS_NEW TRUE)
  endif()
endif()
