/// Closes the files of a log that is not in use. Layer: log.
#pragma once

#include <lightq/base/types.hpp>

#include "log/segment/encrypted_batches.hpp"
#include "log/segment_log/read_views.hpp"
#include "log/segment_log/segment_list.hpp"

namespace lightq::log {

/// Closes descriptors and mappings of a log that was neither read nor written for ten seconds, and forgets
/// its decrypted batches.
///
/// Owns the time of the last use. Called by SegmentLog. Thread: the log's.
class IdleFiles {
 public:
  /// `encrypted`: null if the log is not encrypted. Lifetime: all must outlive this object.
  IdleFiles(const SegmentList& segments, ReadViews& views, EncryptedBatches* encrypted)
      : segments_(segments), views_(views), encrypted_(encrypted) {}

  void note_opened(Timestamp now) { last_use_ = now; }
  void note_use() { used_ = true; }
  /// Closes the files if it is time. Called about every 100 ms.
  void maintain(Timestamp now);

 private:
  const SegmentList& segments_;
  ReadViews& views_;
  EncryptedBatches* const encrypted_;
  Timestamp last_use_;
  bool used_ = false;  // since the last maintain
};

}  // namespace lightq::log
