/// The page for browsers, at / and below /page/. Layer: http. docs/page.md.
#pragma once

#include <span>
#include <string_view>

#include "http/router.hpp"

namespace lightq::broker {

/// A file of the page. Its text is part of the program.
struct PageFile {
  std::string_view path;  ///< in the URL
  std::string_view content_type;
  std::string_view text;
};

/// Returns all files of the page. They are the same in every broker, and name nothing of it.
[[nodiscard]] std::span<const PageFile> page_files();

/// Serves the page's files, without login: the page asks for it and sends it with its own requests. The
/// headers permit the page only scripts, styles and requests of its own origin. A file is copied when it is
/// asked for, and nothing runs before. Thread: that of the router.
class PageResource {
 public:
  static void add_to(Router& router);
};

}  // namespace lightq::broker
