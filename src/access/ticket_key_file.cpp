/// Opens or creates the file of the broker's ticket key. Layer: access.
#include "access/ticket_key_file.hpp"

#include <lightq/base/wipe.hpp>

#include "access/private_file.hpp"

namespace lightq::broker {

Result<std::unique_ptr<TicketKey>> open_ticket_key(const std::filesystem::path& path,
                                                   std::chrono::milliseconds lifetime_max) {
  const KeyFile file{path, "a ticket key", "the key of all tickets", "all issued tickets become invalid"};
  TicketKey::Bytes bytes{};
  const auto found = read_key_file(file, bytes);
  if (!found) return found.error();
  Result<void> written;
  if (!*found) {
    bytes = TicketKey::random_bytes();
    written = write_key_file(file, bytes);
  }
  auto key = std::make_unique<TicketKey>(bytes, lifetime_max);
  wipe_bytes(bytes);
  if (!written) return written.error();
  return key;
}

}  // namespace lightq::broker
