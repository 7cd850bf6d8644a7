/// Shows that suite `log` notices what it must notice. Layer: bench.
#pragma once

namespace lightq::bench {

/// Runs every part on a tiny scale of its own; makes mistakes on purpose and expects to be told. Says on
/// standard error what was not noticed; true if nothing.
bool self_check_log();

}  // namespace lightq::bench
