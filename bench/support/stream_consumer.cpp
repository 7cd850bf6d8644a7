/// The consumer's end of a stream: receives, times and checks. Layer: bench support.
#include <cstring>

#include "support/stream_roles.hpp"

namespace lightq::bench {
namespace {

class ConsumerRole {
 public:
  explicit ConsumerRole(StreamRun& run)
      : run_(run),
        socket_(client_socket(context_, zmq::socket_type::pull)),
        check_(run.id, run.plan.message_count, run.pattern) {
    socket_.set(zmq::sockopt::rcvtimeo, static_cast<int>(stream_patience.count()));
  }

  int work() {
    attach();
    zmq::message_t message;
    for (;;) {
      if (!socket_.recv(message, zmq::recv_flags::none)) {
        return run_.fail("nothing came for " + std::to_string(stream_patience.count()) + " ms, after " +
                         std::to_string(check_.received()) + " messages");
      }
      switch (check_.accept({message.data<std::byte>(), message.size()})) {
        case StreamCheck::Verdict::data: note_data(); break;
        case StreamCheck::Verdict::probe: run_.path_open.raise(); break;
        case StreamCheck::Verdict::end: return 0;
        case StreamCheck::Verdict::fault: return run_.fail(check_.fault());
      }
    }
  }

 private:
  void attach() {
    show_ticket(socket_, run_.ends.consumer_ticket, run_.ends.consumer_keys);
    if (run_.direct()) {
      socket_.bind("tcp://127.0.0.1:*");
      const std::string uri = socket_.get(zmq::sockopt::last_endpoint);
      std::strncpy(run_.seen().consumer_uri, uri.c_str(), sizeof run_.seen().consumer_uri - 1);
    } else {
      socket_.connect(run_.ends.consumer_uri);
    }
    run_.listening.raise();
  }

  void note_data() {
    const std::uint64_t received = check_.received();
    if (run_.paced()) {
      const MessageHeader& header = check_.header();
      run_.latency_ns[header.sequence] = now_ns() - header.sent_ns;
    }
    if (received == 1) run_.seen().first_receive_ns = now_ns();
    if (received == run_.plan.message_count) run_.seen().last_receive_ns = now_ns();
  }

  StreamRun& run_;
  zmq::context_t context_{1};
  zmq::socket_t socket_;
  StreamCheck check_;
};

}  // namespace

int consume(StreamRun& run) {
  return ConsumerRole(run).work();
}

}  // namespace lightq::bench
