# run(COMMAND ARGUMENT…): runs the command. Sets `output` to its output. If the command fails, stops with that
# output.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT code EQUAL 0)
    list(JOIN ARGN " " line)
    message(FATAL_ERROR "failed (${code}): ${line}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()
