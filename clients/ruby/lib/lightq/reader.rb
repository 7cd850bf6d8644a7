# frozen_string_literal: true

require_relative "aside"
require_relative "message"
require_relative "session"

module LightQ
  # Reads messages by their offsets, and changes nothing in the topic. For one thread at a time.
  class Reader < Session
    FREE = Native::C_READER_FREE

    def initialize(topic, address)
      super(topic, "reader", address, FREE)
    end

    # Returns the stored messages with the offsets `first` to `last` - 1, and the offset at which to continue. They are at least
    # one message, and otherwise at most so many bytes. 0 bytes: as much as the broker allows. Errors: Timeout, Refused.
    def read(first, last, bytes_max: 0, timeout: 30)
      limits = [Native.number(first, "the offset"), Native.number(last, "the offset"), Native.number(bytes_max, "bytes_max")]
      milliseconds = Native.milliseconds(timeout, "the timeout")
      Aside.run { turn { |address| fetched(address, limits, milliseconds) } }
    end

    # Ends the connection. A second call does nothing.
    def close
      turn { free } unless closed?
    end

    private

    def fetched(address, limits, milliseconds)
      following, message, messages = Fiddle::Pointer.malloc(8, Fiddle::RUBY_FREE), Native::MESSAGE.memory, []
      Native.check(Native::C_FETCH.call(address, *limits, following, milliseconds))
      messages << Message.from(message, nil) while Native::C_NEXT_FETCHED.call(address, message) == Native::OK
      [messages, following[0, 8].unpack1("Q")]
    end
  end
end
