/// `lightq consume`: prints a topic's messages. Layer: cli.
#include "client/commands/consume.hpp"

#include "client/session.hpp"

namespace lightq::cli {

int run_consume(const Common& common, const Consume& consume) {
  Result<Client> client = open_client(common);
  if (!client) return fail(client.error());
  return consume.plain ? consume_plain(common, consume, std::move(*client))
                       : consume_session(common, consume, std::move(*client));
}

}  // namespace lightq::cli
