/// Tests of the files with the broker's certificate and key.
#include "access/tls_files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "support/temp_dir.hpp"

namespace lightq::broker {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

constexpr Timestamp now{1'800'000'000'000'000};

class TlsFilesTest : public testing::Test {
 protected:
  static void write(const std::filesystem::path& file, const std::string& text, mode_t mode = 0600) {
    std::filesystem::remove(file);
    std::ofstream(file, std::ios::binary) << text;
    ASSERT_EQ(chmod(file.c_str(), mode), 0);
  }
  static std::string read(const std::filesystem::path& file) {
    std::ifstream from(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(from), {}};
  }
  static mode_t mode_of(const std::filesystem::path& file) {
    struct stat facts{};
    EXPECT_EQ(stat(file.c_str(), &facts), 0);
    return facts.st_mode & 07777U;
  }
  [[nodiscard]] std::string own() const {
    return open_own_tls_context(files, now).value_or_throw()->fingerprint();
  }
  template <typename Opened>
  static Error failure(const Opened& opened) {
    EXPECT_FALSE(opened.ok());
    return opened.ok() ? Error{} : opened.error();
  }

  lightq::test::TempDir directory;
  const TlsFiles files{directory / "tls.crt", directory / "tls.key"};
};

TEST_F(TlsFilesTest, TheBrokersOwnFilesAreCreatedOnceForItsOwnerOnly) {
  const std::string first = own();
  EXPECT_EQ(mode_of(files.key), 0600U);
  EXPECT_EQ(mode_of(files.certificate), 0600U);
  EXPECT_EQ(own(), first);
  EXPECT_EQ(open_tls_context(files, now).value_or_throw()->fingerprint(), first);
  std::filesystem::remove(files.key);
  EXPECT_NE(own(), first);
}

/// The power may fail between the writes of the two files.
TEST_F(TlsFilesTest, AMissingCertificateIsMadeForTheKey) {
  const std::string first = own();
  const std::string key = read(files.key);
  std::filesystem::remove(files.certificate);
  const std::string second = own();
  EXPECT_NE(second, first);
  EXPECT_EQ(read(files.key), key);
  EXPECT_EQ(own(), second);
}

TEST_F(TlsFilesTest, AKeyThatOthersMayReadIsRefused) {
  (void)own();
  for (const mode_t mode : {0640U, 0604U, 0620U, 0666U}) {
    ASSERT_EQ(chmod(files.key.c_str(), mode), 0);
    for (const Error& error :
         {failure(open_own_tls_context(files, now)), failure(open_tls_context(files, now))}) {
      EXPECT_EQ(error.code, ErrorCode::invalid_argument) << mode;
      EXPECT_THAT(error.message,
                  AllOf(HasSubstr("tls.key contains the broker's private key and is open to other users: "),
                        EndsWith("; chmod 600 it")));
    }
  }
  ASSERT_EQ(chmod(files.key.c_str(), 0400), 0);
  EXPECT_TRUE(open_own_tls_context(files, now).ok());
}

TEST_F(TlsFilesTest, TheCertificateMayBeReadableByAll) {
  (void)own();
  ASSERT_EQ(chmod(files.certificate.c_str(), 0644), 0);
  EXPECT_TRUE(open_tls_context(files, now).ok());
}

TEST_F(TlsFilesTest, MissingFilesAreNamed) {
  const Error certificate = failure(open_tls_context(files, now));
  EXPECT_EQ(certificate.code, ErrorCode::io_error);
  EXPECT_THAT(certificate.text(), HasSubstr("cannot read " + files.certificate.string()));
  write(files.certificate, make_tls_certificate(make_tls_key().value_or_throw().expose()).value_or_throw());
  EXPECT_THAT(failure(open_tls_context(files, now)).text(), HasSubstr("cannot read " + files.key.string()));
}

TEST_F(TlsFilesTest, DamagedFilesAreNamed) {
  (void)own();
  const std::string certificate = read(files.certificate);
  write(files.certificate, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
  EXPECT_THAT(failure(open_own_tls_context(files, now)).message,
              StartsWith(files.certificate.string() + " contains no certificate in PEM"));
  write(files.certificate, certificate);
  write(files.key, "nothing");
  EXPECT_THAT(failure(open_own_tls_context(files, now)).message,
              StartsWith(files.key.string() + " contains no private key in PEM"));
  write(files.key, make_tls_key().value_or_throw().expose());
  EXPECT_EQ(failure(open_own_tls_context(files, now)).message,
            files.key.string() + " is not the key of " + files.certificate.string());
  write(files.key, std::string(limits::tls_file_bytes_max + 1, 'x'));
  EXPECT_THAT(failure(open_own_tls_context(files, now)).message, HasSubstr(": more than 262144 bytes"));
}

TEST_F(TlsFilesTest, OnlyGivenFilesMayBeLinks) {
  (void)own();
  const TlsFiles links{directory / "link.crt", directory / "link.key"};
  std::filesystem::create_symlink(files.certificate, links.certificate);
  std::filesystem::create_symlink(files.key, links.key);
  EXPECT_TRUE(open_tls_context(links, now).ok());
  EXPECT_EQ(failure(open_own_tls_context(links, now)).system_error, ELOOP);
}

}  // namespace
}  // namespace lightq::broker
