# Suite `peers`: other brokers. A peer with a client library is built if that library is found.

add_executable(lightq_bench_peers peers/peers.cpp peers/peers_suite.cpp peers/peer_table.cpp peers/all_peers.cpp
  peers/run_children.cpp peers/stream_work.cpp peers/backlog_work.cpp peers/kill_work.cpp peers/idle_work.cpp
  peers/server_process.cpp peers/text_socket.cpp peers/lightq_peer.cpp peers/beanstalkd_peer.cpp peers/unbuilt_peer.cpp peers/zmq_proxy_peer.cpp
  peers/peers_self_check.cpp peers/faulty_server.cpp)
lightq_target(lightq_bench_peers)
target_link_libraries(lightq_bench_peers PRIVATE lightq_bench_support)
set_target_properties(lightq_bench_peers PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})

# lightq_peer(NAME HEADER LIBRARY file.cpp …): adds files if the header and the library are found.
function(lightq_peer name header library)
  find_path(LIGHTQ_PEER_${name}_HEADERS ${header})
  find_library(LIGHTQ_PEER_${name}_LIBRARY ${library})
  if(NOT LIGHTQ_PEER_${name}_HEADERS OR NOT LIGHTQ_PEER_${name}_LIBRARY)
    message(STATUS "Suite peers: no ${library}, so its peers are left out")
    return()
  endif()
  target_sources(lightq_bench_peers PRIVATE ${ARGN})
  target_compile_definitions(lightq_bench_peers PRIVATE LIGHTQ_PEER_${name})
  target_include_directories(lightq_bench_peers SYSTEM PRIVATE ${LIGHTQ_PEER_${name}_HEADERS})
  target_link_libraries(lightq_bench_peers PRIVATE ${LIGHTQ_PEER_${name}_LIBRARY})
endfunction()

lightq_peer(REDIS hiredis/hiredis.h hiredis
  peers/redis_connection.cpp peers/redis_server.cpp peers/redis_list_peer.cpp peers/redis_stream_peer.cpp)
lightq_peer(NATS nats/nats.h nats peers/nats_connection.cpp peers/nats_peer.cpp peers/jetstream_peer.cpp)
lightq_peer(RABBITMQ amqp.h rabbitmq
  peers/rabbitmq_connection.cpp peers/rabbitmq_server.cpp peers/rabbitmq_clients.cpp peers/rabbitmq_peers.cpp)
lightq_peer(KAFKA librdkafka/rdkafka.h rdkafka peers/kafka_clients.cpp peers/kafka_peer.cpp)

if(LIGHTQ_BUILD_TESTS)
  add_test(NAME bench_peers_selfcheck COMMAND lightq_bench_peers --self-check)
  set_tests_properties(bench_peers_selfcheck PROPERTIES TIMEOUT 120 COST 20 PROCESSORS 2 ENVIRONMENT LIGHTQ_NO_SUCH_SETTING=1)
  # The least of the peers: no library, and less than 3 MB of memory.
  find_program(LIGHTQ_PEER_BEANSTALKD beanstalkd)
  if(LIGHTQ_PEER_BEANSTALKD)
    add_test(NAME bench_peers_quick COMMAND lightq_bench_peers --quick --peer beanstalkd)
    set_tests_properties(bench_peers_quick PROPERTIES TIMEOUT 300 COST 50 PROCESSORS 2
                         ENVIRONMENT "TMPDIR=${PROJECT_BINARY_DIR}")
  endif()
endif()
