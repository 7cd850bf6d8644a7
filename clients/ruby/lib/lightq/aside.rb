# frozen_string_literal: true

require_relative "errors"

module LightQ
  # Runs calls that may wait in the library. Ruby cannot interrupt such a call, so another thread makes it, and the
  # caller waits for that thread: Thread#raise, Thread#kill and Timeout end the wait at once.
  module Aside
    # Returns the block's result. Its errors get the caller's backtrace. If the caller is interrupted, the block still ends, and `discard` gets its result.
    def self.run(discard = nil, &call)
      lock, results, is_given_up = Thread::Mutex.new, [], false
      thread = Thread.new do
        Thread.current.report_on_exception = false
        result = call.call
        lock.synchronize { results << result }
        discard&.call(result) if is_given_up && lock.synchronize { results.pop }
        result
      end
      result = thread.value
      results.clear
      result
    rescue Error => e
      e.set_backtrace([*e.backtrace, *caller]) unless e.backtrace&.last == caller.last
      raise
    ensure
      unless thread.nil? || result
        is_given_up = true
        left = lock.synchronize { results.pop }
        discard&.call(left) if left
      end
    end
  end
end
