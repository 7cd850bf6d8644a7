/// TLS between a session's frames and a TCP connection. docs/session.md, "TLS". Layer: endpoint.
#pragma once

#include <cstdint>

#include "broker/endpoint/tls_context.hpp"
#include "broker/endpoint/wire_cipher.hpp"

struct bio_st;
struct ssl_st;

namespace lightq::broker {

/// The broker's end of one connection, or with a client's context the other one. Keeps at most a record that
/// has not come whole. The reactor's thread.
class TlsCipher final : public WireCipher {
 public:
  /// `context` outlives it. `records_per_key_max`: so many are sealed, then the key changes.
  explicit TlsCipher(const TlsContext& context,
                     std::uint64_t records_per_key_max = limits::tls_records_per_key_max);
  TlsCipher(const TlsCipher&) = delete;
  TlsCipher& operator=(const TlsCipher&) = delete;
  ~TlsCipher() override;

  std::size_t open(std::span<std::byte> wire, std::vector<std::byte>& plain,
                   std::vector<std::byte>& answer) override;
  void wipe_plain(bool wipes) override;
  [[nodiscard]] bool ready() const override { return ready_; }
  std::size_t seal(ByteView plain, std::vector<std::byte>& wire) override;
  [[nodiscard]] bool seals_any_bytes() const override { return true; }
  [[nodiscard]] const std::string& failure() const override { return failure_; }

  /// How OpenSSL reads and writes in here: TlsContext's. Null: no memory.
  static bio_method_st* make_method();

 private:
  static int take(bio_st* bio, char* to, int bytes);
  static int put(bio_st* bio, const char* from, int bytes);
  static long control(bio_st* bio, int command, long number, void* pointer);

  void shake_hands();
  void read(std::vector<std::byte>& plain);
  void fail(const char* doing);

  ssl_st* const ssl_;
  const std::uint64_t records_per_key_max_;
  std::uint64_t records_ = 0;              // sealed with this key
  ByteView in_;                            // of the wire, while `open` runs
  std::vector<std::byte>* out_ = nullptr;  // where OpenSSL writes, while a call of ours runs
  std::uint64_t said_bytes_ = 0;           // by the peer
  std::uint64_t answered_bytes_ = 0;       // to its key updates, which it need not read
  bool ready_ = false;
  std::string failure_;
};

}  // namespace lightq::broker
