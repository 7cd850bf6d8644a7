/// Tests encrypting and decrypting batches.
#include "crypto/log_cipher.hpp"

#include <gtest/gtest.h>

#include <set>

#include <lightq/base/batch_unpack.hpp>

#include "log/segment/encrypted_batches.hpp"
#include "support/batches.hpp"
#include "support/storage_keys.hpp"

namespace lightq::rest {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::uint64_t incarnation = 7;

Bytes stamped(Bytes batch, std::uint64_t base = 42) {
  stamp_batch(batch, {base}, Timestamp{1'000'000}, 9);
  return batch;
}

Bytes compressed(Codec codec) {
  BatchBuilder builder;
  builder.add(as_byte_view(std::string(5000, 'c')));
  Compressor compressor;
  const auto packed = compressor.compress(codec, builder.records());
  EXPECT_TRUE(packed);
  builder.replace_records(codec, *packed);
  const auto batch = builder.finish();
  return {batch.begin(), batch.end()};
}

class LogCipherTest : public testing::Test {
 protected:
  static Bytes encrypted(log::BatchCipher& with, const Bytes& batch) {
    Bytes made(batch.size() + encrypted_layout::more_bytes);
    with.encrypt(BatchView::trusted(batch.data()), made);
    return made;
  }
  /// Decrypts with a new cipher, as a log does that has never seen the batch.
  static std::optional<Bytes> decrypted(const StorageKeys& keys, const Bytes& stored,
                                        std::optional<std::uint64_t> key_id = std::nullopt,
                                        std::uint64_t of = incarnation) {
    auto with = keys.of(of);
    const std::uint64_t id = key_id.value_or(with->key_id());
    log::EncryptedBatches batches(std::move(with), nullptr);
    const auto plain = batches.decrypt(BatchView::trusted(stored.data()), id);
    if (!plain) return std::nullopt;
    return Bytes(plain->bytes().begin(), plain->bytes().end());
  }

  std::unique_ptr<StorageKeys> keys = test::storage_keys({1});
  std::unique_ptr<log::BatchCipher> cipher = keys->of(incarnation);
};

TEST_F(LogCipherTest, BatchesDecryptToTheSameBytes) {
  auto with_attributes = [] {
    BatchBuilder builder;
    const Header header{"name", "value"};
    builder.add(as_byte_view("payload"), {.key = "k", .headers = {&header, 1}});
    const auto batch = builder.finish();
    return Bytes(batch.begin(), batch.end());
  };
  for (const Bytes& batch : {test::make_batch({""}), test::make_batch({"a", "", std::string(100'000, 'x')}),
                             test::make_batch_of_producer(5, 6, 7, {"of a producer"}), compressed(Codec::lz4),
                             compressed(Codec::zstd), with_attributes()}) {
    const Bytes before = stamped(batch);
    const Bytes stored = encrypted(*cipher, before);
    EXPECT_EQ(BatchView::check_stored_header(stored), std::nullopt);
    EXPECT_EQ(BatchView::trusted(stored.data()).check_body(), std::nullopt);
    EXPECT_EQ(decrypted(*keys, stored), before);
  }
}

TEST_F(LogCipherTest, TheHeaderStaysReadable) {
  const Bytes before = stamped(test::make_batch_of_producer(5, 6, 7, {"of a producer", "another"}));
  const Bytes stored = encrypted(*cipher, before);
  const BatchView batch = BatchView::trusted(stored.data());
  EXPECT_EQ(batch.codec(), Codec::encrypted);
  EXPECT_EQ(batch.total_bytes(), before.size() + 48);
  EXPECT_EQ(batch.base_offset(), Offset{42});
  EXPECT_EQ(batch.record_count(), 2U);
  EXPECT_EQ(batch.append_time(), Timestamp{1'000'000});
  EXPECT_EQ(batch.producer_id(), 5U);
  EXPECT_EQ(batch.producer_epoch(), 6U);
  EXPECT_EQ(batch.first_sequence(), 7U);
  EXPECT_EQ(batch.segment_epoch(), 9U);
}

TEST_F(LogCipherTest, RefusesABatchThatNoProducerSends) {
  const Bytes stored = encrypted(*cipher, stamped(test::make_batch({"m"})));
  EXPECT_EQ(BatchView::check(stored), BatchFault::bad_version);
  EXPECT_EQ(BatchView::check_header(stored), BatchFault::bad_version);
  Bytes sent = stored;
  std::fill_n(sent.begin() + batch_layout::base_offset, 16, std::byte{0});
  std::fill_n(sent.begin() + batch_layout::segment_epoch, 4, std::byte{0});
  std::fill_n(sent.begin() + batch_layout::header_crc, 4, std::byte{0});
  store_little_endian(sent.data() + batch_layout::body_crc, batch_body_crc(sent));
  EXPECT_EQ(BatchView::check_produced(sent).fault, BatchFault::bad_version);
  EXPECT_FALSE(CodecSet::known().has(Codec::encrypted));
  EXPECT_EQ(codec_of("encrypted"), std::nullopt);
  EXPECT_EQ(BatchUnpacker().unpack(BatchView::trusted(stored.data())), std::nullopt);
}

TEST_F(LogCipherTest, EveryFlippedBitIsRefused) {
  const Bytes stored = encrypted(*cipher, stamped(test::make_batch({"message", "another"})));
  for (std::size_t at = 0; at < stored.size(); ++at) {
    // The encryption does not cover the segment epoch and the checksums. The log checks the epoch, and the
    // checksums are computed again for the stored bytes.
    if (batch_layout::segment_epoch <= at && at < batch_layout::header_bytes) continue;
    for (int bit = 0; bit < 8; ++bit) {
      Bytes flipped = stored;
      flipped[at] ^= std::byte{1} << bit;
      const std::size_t total = BatchView::trusted(flipped.data()).total_bytes();
      if (total > 10'000 || total < batch_layout::header_bytes + encrypted_layout::more_bytes) continue;
      flipped.resize(std::max(flipped.size(), total));
      EXPECT_EQ(decrypted(*keys, flipped), std::nullopt) << "byte " << at << " bit " << bit;
    }
  }
}

TEST_F(LogCipherTest, BatchesCannotBeExchanged) {
  const Bytes one = encrypted(*cipher, stamped(test::make_batch({"one"}), 1));
  const Bytes two = encrypted(*cipher, stamped(test::make_batch({"two"}), 2));
  Bytes other = one;
  std::copy(two.begin() + batch_layout::header_bytes, two.end(), other.begin() + batch_layout::header_bytes);
  EXPECT_EQ(decrypted(*keys, other), std::nullopt);
  EXPECT_EQ(decrypted(*keys, one, cipher->key_id(), incarnation + 1), std::nullopt) << "of another log";
  EXPECT_NE(decrypted(*keys, one), std::nullopt);
}

TEST_F(LogCipherTest, AWrongKeyDecryptsNothing) {
  const Bytes stored = encrypted(*cipher, stamped(test::make_batch({"m"})));
  const auto others = test::storage_keys({2, 3});
  EXPECT_FALSE(others->of(incarnation)->knows(cipher->key_id()));
  EXPECT_EQ(decrypted(*others, stored), std::nullopt);
  EXPECT_EQ(decrypted(*others, stored, log::key_id_unknown), std::nullopt);
  EXPECT_EQ(decrypted(*keys, stored, 0), std::nullopt) << "its segment says that it is not encrypted";
}

TEST_F(LogCipherTest, OlderKeysStillDecrypt) {
  const Bytes before = stamped(test::make_batch({"m"}));
  const Bytes stored = encrypted(*cipher, before);
  const auto both = test::storage_keys({2, 1});
  const auto now = both->of(incarnation);
  EXPECT_NE(now->key_id(), cipher->key_id());
  EXPECT_TRUE(now->knows(now->key_id()) && now->knows(cipher->key_id()));
  EXPECT_EQ(decrypted(*both, stored, cipher->key_id()), before);
  EXPECT_EQ(decrypted(*both, stored, now->key_id()), std::nullopt) << "the segment names the other one";
  EXPECT_EQ(decrypted(*both, stored, log::key_id_unknown), before) << "all are tried";
}

TEST_F(LogCipherTest, EachLogHasItsOwnKey) {
  std::set<std::uint64_t> ids;
  for (std::uint64_t of = 1; of <= 100; ++of) {
    ids.insert(keys->of(of)->key_id());
    EXPECT_EQ(keys->of(of)->key_id(), keys->of(of)->key_id());
  }
  EXPECT_EQ(ids.size(), 100U);
  EXPECT_FALSE(ids.contains(0) || ids.contains(log::key_id_unknown));
}

TEST_F(LogCipherTest, NoNonceIsUsedTwice) {
  std::set<std::string> nonces;
  const Bytes batch = stamped(test::make_batch({"m"}));
  for (int opened = 0; opened < 10; ++opened) {
    const auto again = keys->of(incarnation);
    for (int i = 0; i < 300; ++i) {
      const Bytes stored = encrypted(*again, batch);
      nonces.emplace(
          as_text(ByteView(stored).subspan(encrypted_layout::nonce, encrypted_layout::nonce_bytes)));
    }
  }
  EXPECT_EQ(nonces.size(), 3000U);
}

}  // namespace
}  // namespace lightq::rest
