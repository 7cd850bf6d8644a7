# The program that runs streams with the broker and the client of its own build. ./scripts/bench delivery also adds this
# file to an older commit, so it uses only what bench/support has had for long.
add_executable(lightq_bench_stream stream.cpp)
lightq_target(lightq_bench_stream)
target_link_libraries(lightq_bench_stream PRIVATE lightq_bench_support)
set_target_properties(lightq_bench_stream PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
