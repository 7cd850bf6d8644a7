# frozen_string_literal: true

require "fiddle"

module LightQ
  # The layout of a struct of lightq.h: packs values into its bytes, and reads them.
  class Layout
    attr_reader :name, :bytes, :offsets, :types

    # Types: the letter of Array#pack, the size and the alignment. A text is a pointer, and a flag an int of 0 or 1.
    TYPES = {
      "size_t" => ["J", Fiddle::SIZEOF_SIZE_T, Fiddle::ALIGN_SIZE_T], "ptr" => ["J", Fiddle::SIZEOF_VOIDP, Fiddle::ALIGN_VOIDP],
      "u64" => ["Q", Fiddle::SIZEOF_LONG_LONG, Fiddle::ALIGN_LONG_LONG], "i64" => ["q", Fiddle::SIZEOF_LONG_LONG, Fiddle::ALIGN_LONG_LONG],
      "text" => ["J", Fiddle::SIZEOF_VOIDP, Fiddle::ALIGN_VOIDP], "flag" => ["i", Fiddle::SIZEOF_INT, Fiddle::ALIGN_INT],
      "int" => ["i", Fiddle::SIZEOF_INT, Fiddle::ALIGN_INT], "bytes16" => ["a16", 16, 1]
    }.freeze
    private_constant :TYPES

    # `fields`: the fields in their order, as "TYPE NAME NAME, TYPE NAME". `types` returns their types.
    def initialize(name, fields)
      @name, @offsets, @types, @defaults, @bytes, @format, alignment = name, {}, {}, {}, 0, +"", 1
      fields.split(",").each do |group|
        type, *names = group.split
        letter, size, align = TYPES.fetch(type)
        alignment = [alignment, align].max
        names.each do |field|
          place(field.to_sym, letter, size, align)
          @types[field.to_sym] = type
        end
      end
      pad(alignment)
      @defaults[:size] = @bytes if @defaults.key?(:size)
      @format.freeze
    end

    # Returns the bytes of a struct. Fields that are not given are 0. A field `size` gets the size of the struct.
    def pack(values = {})
      @defaults.map { |name, zero| given(values[name], zero) }.pack(@format)
    end

    # Returns the values of the struct at an address, in the order of its fields.
    def unpack(pointer)
      pointer[0, @bytes].unpack(@format)
    end

    def unpack_hash(pointer)
      @offsets.keys.zip(unpack(pointer)).to_h
    end

    # Returns memory with the struct. Strings are put behind it, with a zero byte each, and the fields point to them.
    def memory(values = {})
      texts = values.select { |_, value| value.is_a?(String) }
      pointer = Fiddle::Pointer.malloc(@bytes + texts.sum { |_, text| text.bytesize + 1 }, Fiddle::RUBY_FREE)
      at = @bytes
      placed = texts.transform_values do |text|
        pointer[at, text.bytesize + 1] = "#{text.b}\0"
        at += text.bytesize + 1
        pointer.to_i + at - text.bytesize - 1
      end
      pointer[0, @bytes] = pack(values.merge(placed))
      pointer
    end

    private

    def given(value, zero)
      case value
      when nil, false then zero
      when true then 1
      else value
      end
    end

    def place(field, letter, size, align)
      pad(align)
      @defaults[field] = letter.start_with?("a") ? "" : 0
      @offsets[field] = @bytes
      @format << letter
      @bytes += size
    end

    def pad(align)
      missing = -@bytes % align
      @format << "x#{missing}" if missing.positive?
      @bytes += missing
    end
  end
end
