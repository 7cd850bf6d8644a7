/// The page for browsers, at / and below /page/. Layer: http. docs/page.md.
#include "http/resources/page_resource.hpp"

#include <string>

#include "http/page/page_texts.inc"

namespace lightq::broker {

namespace {

/// Nothing is permitted that is not named. Trusted types forbid every way to make markup of a text.
constexpr const char* content_security_policy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri "
    "'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

HttpResponse response_with(const PageFile& file) {
  return {.content_type = std::string(file.content_type),
          .body = std::string(file.text),
          .headers = {{"Content-Security-Policy", content_security_policy},
                      {"Cross-Origin-Opener-Policy", "same-origin"},
                      {"Cross-Origin-Resource-Policy", "same-origin"},
                      {"Referrer-Policy", "same-origin"},
                      {"X-Frame-Options", "DENY"}}};
}

}  // namespace

std::span<const PageFile> page_files() {
  return page_texts;
}

void PageResource::add_to(Router& router) {
  for (const PageFile& file : page_files()) {
    router.add("GET", file.path,
               [&file](const HttpExchange& exchange) { exchange.reply(response_with(file)); });
  }
}

}  // namespace lightq::broker
