# frozen_string_literal: true

require_relative "native"

module LightQ
  # The parts of a message beside its body, for the library.
  module Outgoing
    HEADERS_MAX = 64

    # Returns memory with a lightq_attributes, or nil if there are no attributes.
    def self.attributes(key: nil, headers: nil, time: nil, delay: nil, deliver_at: nil, ttl: nil, id: nil)
      pairs = pairs_of(headers)
      key, id = bytes_of(key, "the key"), bytes_of(id, "the id")
      times = [Native.moment(time, "time"), Native.time(delay, 1000, "delay"),
               Native.moment(deliver_at, "deliver_at"), Native.time(ttl, 1000, "ttl")]
      return nil if key.empty? && id.empty? && pairs.empty? && times.all?(&:zero?)

      place(key, id, pairs, times)
    end

    # Puts the struct, the structs of the headers and then all bytes into one piece of memory.
    def self.place(key, id, pairs, times)
      bytes = [key, id, *pairs.flatten]
      head = Native::ATTRIBUTES.bytes + pairs.size * Native::HEADER.bytes
      memory = Fiddle::Pointer.malloc(head + bytes.sum(&:bytesize) + 1, Fiddle::RUBY_FREE)
      at = memory.to_i + head
      places = bytes.map { |each| [at, at += each.bytesize].first }
      attributes = Native::ATTRIBUTES.pack(
        key: places[0], key_bytes: key.bytesize, headers: memory.to_i + Native::ATTRIBUTES.bytes, header_count: pairs.size,
        id: places[1], id_bytes: id.bytesize, time_us: times[0], delay_ms: times[1], deliver_at_us: times[2], ttl_ms: times[3]
      )
      structs = pairs.each_with_index.map do |(name, value), index|
        Native::HEADER.pack(name: places[2 + 2 * index], name_bytes: name.bytesize,
                            value: places[3 + 2 * index], value_bytes: value.bytesize)
      end
      whole = [attributes, *structs, *bytes].join
      memory[0, whole.bytesize] = whole
      memory
    end

    def self.pairs_of(headers)
      return [] if headers.nil?

      unless headers.is_a?(Enumerable) && headers.all? { |pair| pair.is_a?(Array) && pair.size == 2 }
        raise InvalidArgument, "headers are no pairs: #{headers.class}"
      end

      pairs = headers.map { |name, value| [bytes_of(name, "the name of a header"), bytes_of(value, "a header")] }
      raise InvalidArgument, "a message has at most #{HEADERS_MAX} headers" if pairs.size > HEADERS_MAX

      pairs
    end

    def self.bytes_of(value, what)
      return "".b if value.nil?
      raise InvalidArgument, "#{what} is no text: #{value.class}" unless value.is_a?(String) || value.is_a?(Symbol)

      value.to_s.b
    end
    private_class_method :place, :pairs_of, :bytes_of
  end
end
