/// `lightq produce`: sends lines or generated messages. Layer: cli.
#include "client/commands/produce.hpp"

#include <unistd.h>

#include "client/session.hpp"
#include "client/terminal.hpp"

namespace lightq::cli {

namespace {

std::unique_ptr<MessageSource> source_of(const Produce& produce) {
  if (produce.generate) return generated(produce.count, produce.size_bytes);
  if (produce.whole_files) return whole_files(produce.files, produce.count);
  return lines_of(produce.files, produce.count, produce.line_end);
}

}  // namespace

int run_produce(const Common& common, const Produce& produce) {
  Result<Client> client = open_client(common);
  if (!client) return fail(client.error());
  const bool reads_terminal = !produce.generate && produce.files.empty() && isatty(STDIN_FILENO) == 1;
  if (reads_terminal && !common.quiet)
    say(produce.whole_files ? "all lines are one message; end with ctrl-D"
                            : "each line is a message; end with ctrl-D");
  const auto source = source_of(produce);
  // Without confirms to wait for, a session has no advantage over the plain endpoint.
  const auto send = produce.plain || !produce.wait ? produce_plain : produce_confirmed;
  return send(common, produce, std::move(*client), *source);
}

}  // namespace lightq::cli
