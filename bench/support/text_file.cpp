/// Reads files. Layer: bench support.
#include "support/text_file.hpp"

#include <fstream>
#include <iterator>

namespace lightq::bench {

std::string contents_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string end_of(const std::string& text, std::size_t bytes_max) {
  return text.size() <= bytes_max ? text : text.substr(text.size() - bytes_max);
}

}  // namespace lightq::bench
