/// Asks before something is destroyed. Layer: cli.
#include "client/confirmation.hpp"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <lightq/base/shown_text.hpp>

#include "client/terminal.hpp"

namespace lightq::cli {
namespace {

/// Waits until there is something to read. Returns false after a signal that ends the command, also if it
/// arrived before this call.
bool await_input() {
  sigset_t ending;
  sigemptyset(&ending);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&ending, number);
  sigset_t before;
  pthread_sigmask(SIG_BLOCK, &ending, &before);  // they arrive only during the wait
  pollfd input{STDIN_FILENO, POLLIN, 0};
  bool is_there = false;
  while (!interrupted() && !is_there) is_there = ::ppoll(&input, 1, nullptr, &before) == 1;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return is_there;
}

/// Reads a line from the terminal, byte by byte, because the rest is not for this command.
std::string typed_line() {
  constexpr std::size_t longest = 80;
  std::string line;
  char c = 0;
  while (line.size() < longest && await_input() && ::read(STDIN_FILENO, &c, 1) == 1 && c != '\n') line += c;
  return line;
}

}  // namespace

bool is_confirmed(const Common& common, bool yes, const std::string& do_what) {
  if (yes) return true;
  if (isatty(STDIN_FILENO) != 1 || isatty(STDERR_FILENO) != 1) {
    if (!common.quiet)
      say("without a terminal, a later version will " + do_what + " only with --yes; this one does it now");
    return true;
  }
  std::string question = "lightq: ";
  append_escaping_controls(question, do_what);
  tell(question + "? [y/N] ");
  const std::string answer = typed_line();
  if (!interrupted() && (answer == "y" || answer == "Y" || answer == "yes")) return true;
  say("nothing is changed");
  return false;
}

}  // namespace lightq::cli
