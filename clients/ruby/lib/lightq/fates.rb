# frozen_string_literal: true

module LightQ
  # The fates of a producer's messages, by their numbers. It keeps the ranges of messages that were not stored: disjoint, in
  # the order of their numbers, at most RANGES_MAX. All other messages before `settled_end` were stored, but those before
  # `forgotten_end` may have failed.
  class Fates
    RANGES_MAX = 10_000

    attr_reader :settled_end, :forgotten_end

    def initialize
      @settled_end = @forgotten_end = 0
      @ranges = []
    end

    # Every message before this number is settled.
    def settled(before)
      @settled_end = [@settled_end, before].max
    end

    # The messages before this number may be stored or not, unless a range has them.
    def forget(before)
      @forgotten_end = [@forgotten_end, before].max
    end

    # The messages with the numbers [first, behind) were not stored. Forgets the lowest range if there are too many.
    def fail(first, behind, reason)
      @ranges.insert(place(first) || @ranges.size, [first, behind, reason])
      forget(@ranges.shift[1]) if @ranges.size > RANGES_MAX
    end

    # The producer has ended: every message is settled.
    def close
      settled(@forgotten_end)
    end

    # Returns why a message was not stored, or nil: it was stored, or its fate is not known.
    def reason_of(number)
      first, _, reason = @ranges[place(number) || @ranges.size]
      reason if first && number >= first
    end

    # Tells whether the fate of a message is known, or forgotten.
    def settled?(number)
      number < @settled_end || !reason_of(number).nil?
    end

    # Tells whether a message that is settled may have failed without a reason that is still known.
    def forgotten?(number)
      number < @forgotten_end && reason_of(number).nil?
    end

    private

    # Returns the index of the first range that ends behind a number, or nil.
    def place(number)
      @ranges.bsearch_index { |_, behind, _| behind > number }
    end
  end
  private_constant :Fates
end
