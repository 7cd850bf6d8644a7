/// TLS encryption of a session over TCP. docs/session.md, "TLS". Layer: crypto.
#pragma once

#include <cstdint>
#include <memory>

#include "crypto/tls_context.hpp"
#include "net/wire_cipher.hpp"

struct bio_st;
struct ssl_st;

namespace lightq::broker {

/// The broker's side of a TLS connection. Keeps at most one incomplete record of input. Thread: the
/// reactor's.
class TlsCipher final : public WireCipher {
 public:
  /// Uses the certificate that `context` has now, until the end of the connection. `records_per_key_max`: the
  /// number of records to encrypt before this side changes its key.
  explicit TlsCipher(const TlsContext& context,
                     std::uint64_t records_per_key_max = limits::tls_records_per_key_max);
  TlsCipher(const TlsCipher&) = delete;
  TlsCipher& operator=(const TlsCipher&) = delete;
  ~TlsCipher() override;

  std::size_t open(std::span<std::byte> wire, std::vector<std::byte>& plain,
                   std::vector<std::byte>& answer) override;
  [[nodiscard]] bool ready() const override { return ready_; }
  std::size_t seal(ByteView plain, std::vector<std::byte>& wire) override;
  [[nodiscard]] bool seals_any_bytes() const override { return true; }
  [[nodiscard]] const std::string& failure() const override { return failure_; }

  /// Creates the functions by which OpenSSL reads and writes through a TlsCipher. TlsContext owns them.
  /// Returns null if there is no memory.
  static bio_method_st* make_method();

 private:
  static int take(bio_st* bio, char* to, int bytes);
  static int put(bio_st* bio, const char* from, int bytes);
  static long control(bio_st* bio, int command, long number, void* pointer);

  void shake_hands();
  void read(std::vector<std::byte>& plain);
  void fail(const char* doing);

  const std::shared_ptr<const TlsIdentity> identity_;  // owns what ssl_ refers to
  ssl_st* const ssl_;
  const std::uint64_t records_per_key_max_;
  std::uint64_t records_ = 0;              // encrypted with the current key
  ByteView in_;                            // the encrypted input, while `open` runs
  std::vector<std::byte>* out_ = nullptr;  // receives OpenSSL's output while `open` or `seal` runs
  std::uint64_t said_bytes_ = 0;           // plain bytes received from the peer
  std::uint64_t answered_bytes_ = 0;       // replies to the peer's key updates; the peer may not read them
  bool ready_ = false;
  std::string failure_;
};

}  // namespace lightq::broker
