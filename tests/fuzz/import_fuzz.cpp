/// Fuzz target: the files that `lightq import`, `definitions import`, `restore`, `mirror` and `bench` read.
/// No text may crash them.
/// A line that is accepted has a message within its limits. Definitions that are accepted are written and
/// read again without a change, as are manifests of backups and states of mirrors.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include <lightq/base/limits.hpp>

#include "client/backup/manifest.hpp"
#include "client/bench/bench_row.hpp"
#include "client/mirror/mirror_state.hpp"
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
  if (const auto manifest = cli::parse_manifest(text)) {
    for (const cli::BackupFile& file : manifest->files)
      must(file.path.find("..") != 0 && file.path[0] != '/');
    must(cli::parse_manifest(cli::manifest_text(*manifest))->files == manifest->files);
  }
  if (const auto rows = cli::parse_bench(text); !rows) must(!rows.error().message.empty());
  if (const auto state = cli::parse_mirror_state(text))
    must(cli::parse_mirror_state(cli::mirror_state_text(*state))->places.points() == state->places.points());
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
