/// Fuzz target: the files that `lightq import` and `lightq definitions import` read. No text may crash them.
/// A line that is accepted has a message within its limits. Definitions that are accepted are written and
/// read again without a change.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include <lightq/base/limits.hpp>

#include "client/transfer/definitions.hpp"
#include "client/transfer/import_line.hpp"

namespace {

void must(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lightq;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto line = cli::parse_import_line(text, size);
  if (line) must(line->key.size() <= limits::key_bytes_max && line->payload.size() <= size);
  if (!line) must(!line.error().message.empty());
  const auto definitions = cli::parse_definitions(text);
  if (!definitions) {
    must(!definitions.error().message.empty());
    return 0;
  }
  const std::string written = cli::definitions_text(*definitions);
  const auto again = cli::parse_definitions(written);
  must(again.ok());
  must(cli::definitions_text(*again, true) == cli::definitions_text(*definitions, true));
  return 0;
}
