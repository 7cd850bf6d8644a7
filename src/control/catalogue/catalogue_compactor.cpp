/// Runs one compaction of the catalogue at a time on a separate thread. Layer: control.
#include "control/catalogue/catalogue_compactor.hpp"

#include <system_error>

namespace lightq::broker {

CatalogueCompactor::~CatalogueCompactor() {
  if (under_way_ == nullptr) return;
  writer_.request_stop();
  writer_.join();
  catalogue_.give_up_compaction();
}

void CatalogueCompactor::look() {
  if (under_way_ != nullptr || !catalogue_.is_mostly_history()) return;
  under_way_ = catalogue_.begin_compaction();
  const auto write = [this, job = under_way_](const std::stop_token& stop) {
    job->run(stop);
    // If the compactor was destroyed meanwhile, `known` is null.
    loop_.post_answer([this, known = std::weak_ptr(job)] {
      const auto done = known.lock();
      if (done == nullptr) return;
      under_way_.reset();
      catalogue_.finish_compaction(*done);
    });
  };
  try {
    writer_ = std::jthread(write);
  } catch (const std::system_error&) {  // no thread available: the existing log stays in use
    under_way_.reset();
    catalogue_.give_up_compaction();
  }
}

}  // namespace lightq::broker
