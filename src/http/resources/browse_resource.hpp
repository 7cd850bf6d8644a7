/// Reading messages without changing anything. Layer: http. docs/http.md, "Browse".
#pragma once

#include "http/http_loop.hpp"
#include "http/messages/message_desks.hpp"
#include "http/router.hpp"

namespace lightq::broker {

/// Reads messages from an offset or a time on. Lifetime: the parts outlive it. Thread: the HTTP thread.
class BrowseResource {
 public:
  struct Parts {
    HttpLoop& loop;
    MessageDesks& desks;
  };

  explicit BrowseResource(const Parts& parts) : parts_(parts) {}
  BrowseResource(const BrowseResource&) = delete;
  BrowseResource& operator=(const BrowseResource&) = delete;

  void add_to(Router& router);

 private:
  void read(HttpExchange exchange) const;

  const Parts parts_;
};

}  // namespace lightq::broker
