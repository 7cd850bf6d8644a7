/// `lightq produce`: sends lines or generated messages. Layer: cli.
#include "client/commands/produce.hpp"

#include <unistd.h>

#include "client/session.hpp"
#include "client/terminal.hpp"

namespace lightq::cli {

int run_produce(const Common& common, const Produce& produce) {
  Result<Client> client = open_client(common);
  if (!client) return fail(client.error());
  const bool reads_terminal = !produce.generate && produce.files.empty() && isatty(STDIN_FILENO) == 1;
  if (reads_terminal && !common.quiet) say("each line is a message; end with ctrl-D");
  const auto source = produce.generate ? generated(produce.count, produce.size_bytes)
                                       : lines_of(produce.files, produce.count);
  // Without confirms to wait for, a session has no advantage over the plain endpoint.
  const auto send = produce.plain || !produce.wait ? produce_plain : produce_confirmed;
  return send(common, produce, std::move(*client), *source);
}

}  // namespace lightq::cli
