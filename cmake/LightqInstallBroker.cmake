# Installs the embeddable broker: static libraries and the few headers that its own header needs. It is a separate
# package below the architecture's library directory. find_package(lightq COMPONENTS broker) finds it. It needs the
# packages of the client and of the log.
set(LIGHTQ_BROKER_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/lightq-broker)
set_target_properties(lightq_broker PROPERTIES EXPORT_NAME broker)

install(TARGETS lightq_broker lightq_config lightq_http lightq_metrics lightq_control lightq_compiled lightq_session lightq_topic lightq_delayed lightq_delivery lightq_recurring lightq_at_rest
        EXPORT lightq-broker-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT broker)
install(EXPORT lightq-broker-targets NAMESPACE lightq:: DESTINATION ${LIGHTQ_BROKER_PACKAGE_DIR} COMPONENT broker)
foreach(header broker/broker broker/config broker/logging/logging base/log_sink control/templates/topic_templates)
  cmake_path(GET header PARENT_PATH room)
  install(FILES ${PROJECT_SOURCE_DIR}/src/${header}.hpp
          DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/lightq-broker/${room} COMPONENT broker)
endforeach()
write_basic_package_version_file(${PROJECT_BINARY_DIR}/lightq-broker-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_SOURCE_DIR}/cmake/lightq-broker-config.cmake
              ${PROJECT_BINARY_DIR}/lightq-broker-config-version.cmake
        DESTINATION ${LIGHTQ_BROKER_PACKAGE_DIR} COMPONENT broker)
