# Installs the embedded queue: one static library and the few headers that <lightq/queue.hpp> includes. It is a
# separate package below the architecture's library directory, and needs only a threads library. find_package(lightq
# COMPONENTS log) finds it, and so does pkg-config (lightq-log).
set_target_properties(lightq_log PROPERTIES EXPORT_NAME log)

install(TARGETS lightq_log EXPORT lightq-log-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT log)
foreach(folder base impl/base)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/lightq/${folder}/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/lightq/${folder}
          COMPONENT log FILES_MATCHING PATTERN "*.hpp")
endforeach()
foreach(header queue queue_options version)
  install(FILES ${PROJECT_SOURCE_DIR}/include/lightq/${header}.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/lightq COMPONENT log)
endforeach()
lightq_install_library(log)
