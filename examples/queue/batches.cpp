/// Appends many messages as one batch, reads them without copying, and keeps them valid with a pin.
#include <iostream>
#include <string_view>
#include <vector>

#include <lightq/queue.hpp>

int main() {
  auto queue = lightq::Queue::open("batches").value_or_throw();

  const std::vector<std::string_view> texts = {"a", "b", "c"};
  queue.enqueue(std::span<const std::string_view>(texts)).value_or_throw();  // appends all or none

  lightq::BatchBuilder builder;  // packs messages as they are added; reusable
  for (int i = 0; i < 1000; ++i) builder.add(lightq::as_byte_view(std::to_string(i)));
  const lightq::Offset first = queue.enqueue(builder).value_or_throw();
  builder.clear();

  auto reader = queue.reader(lightq::Start::at(first)).value_or_throw();
  std::size_t bytes = 0;
  for (const auto& message : reader.next_batch().value_or_throw()) bytes += message.payload.size();

  // Views into the files. They stay valid until the reader's next call, or as long as a pin of them exists.
  const auto range = reader.range(first, first + 10).value_or_throw();
  const std::vector<lightq::QueuedMessage> ten(range.begin(), range.end());
  const lightq::Pin pin = reader.pin();
  queue.trim(queue.next_offset()).value_or_throw();

  std::cout << bytes << " bytes; the tenth is still " << ten.back().text() << '\n';
  return bytes == 2890 && ten.back().text() == "9" ? 0 : 1;
}
