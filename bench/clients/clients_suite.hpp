/// Suite `clients`: one producer and one consumer process of each client library. Layer: bench.
#pragma once

#include <cstdint>
#include <string>

#include "clients/client_program.hpp"
#include "support/report.hpp"
#include "support/suite_program.hpp"

namespace lightq::bench {

struct ClientsOptions {
  bool quick = false;  ///< a short run that only shows that everything works
  std::string broker_binary;
  std::string servers;  ///< the directory of nats-server, before PATH; empty: no rows beside NATS
  ClientPrograms programs;
  std::uint64_t rounds = 5;
  SuiteParts parts{{"cpp", "c", "go", "python"}};
};

/// Runs the suite. Failures are noted in the report. Progress goes to standard error.
Report measure_clients(const ClientsOptions& options);

/// Runs each client with the one in C++ in both directions, and with a producer that makes mistakes. Returns
/// true if all correct runs succeed and all wrong ones fail. Reports to standard error.
bool clients_self_check(const ClientsOptions& options);

}  // namespace lightq::bench
