/// Checks of this machine for `lightq doctor`. They need no broker. Layer: cli.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "client/doctor/finding.hpp"

namespace lightq::cli {

/// Checks how many descriptors a process may open. `limits_file`: that of the broker in /proc; empty, or if
/// it cannot be read: the limit of this process, which a broker started here would have.
void check_descriptors(Findings& to, const std::string& limits_file);

/// Checks the free space and the free files of the data directory's disk.
void check_disk(Findings& to, const std::filesystem::path& data_dir);

/// Checks that the clock is plausible, and that something keeps it right.
void check_clock(Findings& to);

/// Checks who may read the data directory and the files with secrets in it.
void check_modes(Findings& to, const std::filesystem::path& data_dir);

/// Warns of a former CURVE key that the broker still accepts.
void check_former_key(Findings& to, const std::filesystem::path& data_dir);

/// Checks that a broker could listen at `port` on loopback. Call it only if no broker runs.
void check_port(Findings& to, std::uint16_t port);

}  // namespace lightq::cli
