/// Layer: control.
#include "broker/control/catalogue_compactor.hpp"

#include <utility>

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
  writer_ = std::jthread([this, job = under_way_](const std::stop_token& stop) {
    job->run(stop);
    // Whoever is no more has nothing under way.
    loop_.post_answer([this, known = std::weak_ptr(job)] {
      const auto done = known.lock();
      if (done == nullptr) return;
      under_way_.reset();
      catalogue_.finish_compaction(*done);
    });
  });
}

}  // namespace lightq::broker
