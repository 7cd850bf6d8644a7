/// beanstalkd's server and a pipelined client. Layer: bench peers.
#include "peers/beanstalkd_peer.hpp"

#include <stdexcept>
#include <utility>

#include "peers/one_process_server.hpp"
#include "peers/text_socket.hpp"

namespace lightq::bench {
namespace {

constexpr std::uint64_t unconfirmed_max = 1'024;
constexpr std::size_t gathered_max = 64;      // puts written with one system call
constexpr std::size_t reserves_at_once = 64;  // while messages wait
constexpr const char* time_to_run = "600";    // seconds until the server takes a job back
constexpr const char* wait_reserve = "reserve-with-timeout 1\r\n";
constexpr const char* try_reserve = "reserve-with-timeout 0\r\n";

[[noreturn]] void throw_answer(std::string_view answer) {
  throw std::runtime_error("beanstalkd answers: " + std::string(answer));
}

void expect(TextSocket& socket, std::string_view start) {
  const std::string_view answer = socket.line();
  if (!answer.starts_with(start)) throw_answer(answer);
}

class BeanstalkdProducer : public PeerProducer {
 public:
  BeanstalkdProducer(std::uint16_t port, const std::string& tube) : socket_(port) {
    socket_.put("use " + tube + "\r\n");
    socket_.write_out();
    expect(socket_, "USING");
  }
  void send(ByteView message) override {
    socket_.put("put 0 0 " + std::string(time_to_run) + " " + std::to_string(message.size()) + "\r\n");
    socket_.put(message);
    socket_.put("\r\n");
    ++sent_;
    if (++gathered_ == gathered_max) write_out();
    while (sent_ - confirmed_ >= unconfirmed_max) read_confirm();
  }
  void poll() override {
    write_out();
    while (confirmed_ < sent_ && socket_.has_input(std::chrono::milliseconds(0))) read_confirm();
  }
  void flush() override {
    write_out();
    while (confirmed_ < sent_) read_confirm();
  }
  [[nodiscard]] std::uint64_t confirmed() const override { return confirmed_; }

 private:
  void write_out() {
    socket_.write_out();
    gathered_ = 0;
  }
  void read_confirm() {
    expect(socket_, "INSERTED ");
    ++confirmed_;
  }
  TextSocket socket_;
  std::uint64_t sent_ = 0;
  std::uint64_t confirmed_ = 0;
  std::size_t gathered_ = 0;
};

/// Reserves many jobs with one write while jobs wait, and one at a time otherwise. Deletes them with the next
/// write.
class BeanstalkdConsumer : public PeerConsumer {
 public:
  BeanstalkdConsumer(std::uint16_t port, const std::string& tube, bool single)
      : socket_(port), single_(single) {
    socket_.put("watch " + tube + "\r\nignore default\r\n");
    socket_.write_out();
    expect(socket_, "WATCHING");
    expect(socket_, "WATCHING");
  }

  std::size_t receive(std::chrono::milliseconds wait, const Take& take) override {
    if (reserves_ == 0) ask();
    if (!socket_.has_input(wait)) return 0;
    for (; deletes_ > 0; --deletes_) expect(socket_, "DELETED");
    const std::size_t asked = reserves_;
    std::size_t count = 0;
    for (; reserves_ > 0; --reserves_) count += take_one(take);
    may_be_more_ = !single_ && count == asked;
    return count;
  }
  void settle() override {
    socket_.write_out();
    for (; deletes_ > 0; --deletes_) expect(socket_, "DELETED");
    for (; reserves_ > 0; --reserves_) expect(socket_, "TIMED_OUT");
  }

 private:
  void ask() {
    reserves_ = may_be_more_ ? reserves_at_once : 1;
    for (std::size_t i = 0; i < reserves_; ++i) socket_.put(may_be_more_ ? try_reserve : wait_reserve);
    socket_.write_out();
  }
  std::size_t take_one(const Take& take) {
    const std::string answer(socket_.line());
    if (answer == "TIMED_OUT") return 0;
    const std::size_t id_end = answer.find(' ', reserved.size());
    if (!answer.starts_with(reserved) || id_end == std::string::npos) throw_answer(answer);
    const std::uint64_t size = number_in(std::string_view(answer).substr(id_end + 1));
    const ByteView content = socket_.bytes(size + 2);
    take(content.first(size));
    socket_.put("delete ");
    socket_.put(std::string_view(answer).substr(reserved.size(), id_end - reserved.size()));
    socket_.put("\r\n");
    ++deletes_;
    return 1;
  }

  static constexpr std::string_view reserved = "RESERVED ";
  TextSocket socket_;
  bool single_;
  bool may_be_more_ = false;
  std::size_t reserves_ = 0;  // requests without an answer
  std::size_t deletes_ = 0;
};

class BeanstalkdServer : public OneProcessServer {
 public:
  BeanstalkdServer(const std::string& program, Storage storage)
      : OneProcessServer([&](std::uint16_t port, const std::string& directory) {
          std::vector<std::string> command = {program, "-l", "127.0.0.1", "-p", std::to_string(port)};
          if (storage != Storage::memory) command.insert(command.end(), {"-b", directory});
          if (storage == Storage::page_cache) command.emplace_back("-F");
          if (storage == Storage::synced) command.insert(command.end(), {"-f", "0"});
          return command;
        }) {}

  /// A tube exists while a connection uses or watches it, or while it has jobs.
  void make_queue(const QueueTerms& queue) override {
    if (!watcher_) watcher_ = std::make_unique<TextSocket>(server().port());
    watcher_->put("watch " + queue.name + "\r\n");
    watcher_->write_out();
    expect(*watcher_, "WATCHING");
  }
  void drop_queue(const QueueTerms&) override {}
  std::optional<std::uint64_t> left(const QueueTerms& queue) override {
    TextSocket socket(server().port());
    socket.put("stats-tube " + queue.name + "\r\n");
    socket.write_out();
    const std::string_view answer = socket.line();
    if (answer == "NOT_FOUND") return 0;
    if (!answer.starts_with("OK ")) throw_answer(answer);
    const ByteView content = socket.bytes(number_in(answer.substr(3)));
    const std::string_view text(reinterpret_cast<const char*>(content.data()), content.size());
    std::uint64_t jobs = 0;
    for (const std::string_view state : {"ready", "reserved", "delayed", "buried"})
      jobs += field(text, "current-jobs-" + std::string(state) + ": ");
    return jobs;
  }
  std::unique_ptr<PeerProducer> producer(const QueueTerms& queue) override {
    return std::make_unique<BeanstalkdProducer>(server().port(), queue.name);
  }
  std::unique_ptr<PeerConsumer> consumer(const QueueTerms& queue, int) override {
    return std::make_unique<BeanstalkdConsumer>(server().port(), queue.name,
                                                queue.pattern == Pattern::work_queue);
  }

 private:
  static std::uint64_t field(std::string_view text, const std::string& name) {
    const std::size_t at = text.find(name);
    if (at == std::string_view::npos) throw std::runtime_error("beanstalkd's statistics have no " + name);
    const std::string_view value = text.substr(at + name.size());
    return number_in(value.substr(0, value.find('\n')));
  }
  std::unique_ptr<TextSocket> watcher_;
};

class BeanstalkdPeer : public Peer {
 public:
  [[nodiscard]] std::string name() const override { return "beanstalkd"; }
  [[nodiscard]] std::optional<std::string> version() const override {
    const auto program = find_program("beanstalkd");
    if (!program) return std::nullopt;
    const std::string text = output_of({*program, "-v"});
    return text.substr(0, text.find('\n')) + ", the suite's own client of its text protocol";
  }
  [[nodiscard]] std::string needs() const override { return "Debian's package beanstalkd"; }
  [[nodiscard]] std::string way() const override {
    return "puts pipelined, up to 1,024 unconfirmed; 64 reserves at a time while jobs wait, each job deleted";
  }
  [[nodiscard]] Promise promise(Work work) const override {
    if (work == Work::fan_out) return impossible("each job goes to one consumer");
    return {};
  }
  std::unique_ptr<PeerServer> start(Storage storage) const override {
    return std::make_unique<BeanstalkdServer>(find_program("beanstalkd").value(), storage);
  }
};

}  // namespace

std::unique_ptr<Peer> make_beanstalkd_peer() {
  return std::make_unique<BeanstalkdPeer>();
}

}  // namespace lightq::bench
