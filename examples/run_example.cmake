# Runs PROGRAM in an empty DIRECTORY, and removes the directory afterwards.
file(REMOVE_RECURSE ${DIRECTORY})
file(MAKE_DIRECTORY ${DIRECTORY})
execute_process(COMMAND ${PROGRAM} WORKING_DIRECTORY ${DIRECTORY} RESULT_VARIABLE result)
file(REMOVE_RECURSE ${DIRECTORY})
if(NOT result EQUAL 0)
  message(FATAL_ERROR "${PROGRAM} ended with ${result}")
endif()
