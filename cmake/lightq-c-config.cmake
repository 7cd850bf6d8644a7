include(${CMAKE_CURRENT_LIST_DIR}/lightq-c-targets.cmake)
