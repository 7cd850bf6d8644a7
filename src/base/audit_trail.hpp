/// Receives the lines of the audit log. Layer: base.
#pragma once

#include <string>

namespace lightq::broker {

/// The destination of the audit log. Thread: any.
class AuditTrail {
 public:
  AuditTrail() = default;
  AuditTrail(const AuditTrail&) = delete;
  AuditTrail& operator=(const AuditTrail&) = delete;
  virtual ~AuditTrail() = default;

  /// Adds a line, which is one JSON object without a line end. Never waits.
  virtual void put(std::string line) = 0;
};

}  // namespace lightq::broker
