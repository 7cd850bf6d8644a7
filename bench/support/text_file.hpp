/// The content of a file, and its end for messages. Layer: bench support.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

namespace lightq::bench {

/// Returns all bytes of a file; empty if it cannot be read.
std::string contents_of(const std::filesystem::path& path);

/// Returns the last `bytes_max` bytes of a text, or all of it.
std::string end_of(const std::string& text, std::size_t bytes_max);

}  // namespace lightq::bench
