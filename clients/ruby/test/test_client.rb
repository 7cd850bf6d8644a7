# frozen_string_literal: true

# Tests that the kit does not have: the layouts of structs, parts of messages, cursors, counters and commands.
require_relative "helper"

class TestClient < Minitest::Test
  include Helper

  def test_the_layouts_are_those_of_the_library
    abi = File.readlines(File.expand_path("../../c/abi.txt", __dir__), chomp: true).grep(/ /).to_h { |line| line.split(" ") }
    LightQ::Native::LAYOUTS.each_value do |layout|
      expected = abi.select { |name, _| name.start_with?("#{layout.name}.") }.transform_values(&:to_i)
      assert_equal expected, layout.offsets.to_h { |field, at| ["#{layout.name}.#{field}", at] }
      assert_equal abi[layout.name].to_i, layout.bytes, layout.name
    end
    assert_equal LightQ::VERSION, LightQ::Native.version
  end

  def test_the_parts_of_a_message_arrive
    q = connected
    group = group_with(q)
    sent, key = Time.at(1_700_000_000, 123_456, :microsecond), "k\0\xFF".b
    confirm = nil
    q.producer("t", compression: :lz4) do |out|
      confirm = out.send("body \0 é", key: key, headers: { "content-type" => "text/plain", "e" => "" }, time: sent, id: "17", ttl: 60)
      confirm.wait
      assert confirm.done?
      out.send("").wait
      assert_equal [2, 2, 0], out.stats.values_at(:sent, :confirmed, :unconfirmed)
    end
    q.consumer("t", group: group) do |orders|
      first, second = orders.first(2)
      headers = [%w[lightq-id 17], %w[lightq-ttl-ms 60000], %w[content-type text/plain], ["e", ""]]
      assert_equal ["body \0 é", key, headers, sent], [first.text, first.key, first.headers, first.producer_time]
      assert_equal ["text/plain", nil, 1, 0], [first["content-type"], first["none"], first.delivery, first.lost]
      assert_in_delta Time.now, first.time, 3600
      assert_equal ["", nil, [], nil], [second.body, second.key, second.headers, second.producer_time]
      assert_equal 2, orders.stats[:unacknowledged]
      assert_equal 2, orders.ack_range(first.offset..second.offset)
      assert_empty orders.late
      assert_equal 0, orders.stats[:unacknowledged]
    end
  end

  def test_an_own_cursor_seeks_and_a_reader_reads
    q = connected
    q.create_topic("pages")
    q.producer("pages") { |out| 10.times { |n| out << n.to_s } }
    q.consumer("pages", own: true, start: 7) do |mine|
      assert_equal %w[7 8 9], mine.first(3).map(&:body)
      assert_equal 2, mine.seek(2)
      assert_equal "2", mine.receive(timeout: DEADLINE).body
      assert_equal 10, mine.seek(:next)
      assert_equal 0, mine.seek(Time.at(0))
      assert_equal %w[0 1 2], mine.first(3).map(&:body)
      assert_equal 3, mine.ack_before(3)
      mine.pause
      mine.resume
    end
    q.reader("pages") do |reader|
      messages, following = reader.read(3, 6)
      assert_equal [%w[3 4 5], 6, true], [messages.map(&:body), following, messages[0].revoked?]
      assert_equal [[], 10], reader.read(10, 20)
    end
  ensure
    q&.delete_topic("pages")
  end

  def test_refused_messages_are_known_by_their_numbers
    q = connected
    q.create_topic("tiny", broker_type: "queue", ring_bytes: 65_536, overflow: "reject")
    holder = q.consumer("tiny", prefetch: 1)
    settled = []
    out = q.producer("tiny", retry_refused: false)
    out.on_settled { |*each| settled << each }
    confirms = Array.new(400) { out.send("x" * 1000) }
    error = assert_raises(LightQ::Refused) { out.flush }
    assert_equal ["limit_reached", true], [error.code, error.retryable?]
    first = settled.find { |each| each[2] }
    assert_equal "limit_reached", assert_raises(LightQ::Refused) { confirms[first[0]].wait }.code
    confirms[0].wait
    assert_equal (0...400).to_a, settled.flat_map { |begun, ended, _| (begun...ended).to_a }.sort
    [out, holder].each(&:close)
  ensure
    q&.delete_topic("tiny")
  end

  # Makes the library report other fates: each second message was refused.
  def scripted(count)
    reports, text, function = (0...count).to_a, Fiddle::Pointer["full"], LightQ::Native::C_NEXT_REPORT
    function.define_singleton_method(:call) do |_, place|
      number = reports.shift
      next LightQ::Native::TIMEOUT unless number

      values = { begin: number, end: number + 1, fate: 1 - number % 2, code: number.even? ? LightQ::Native::LIMIT_REACHED : 0, text: text.to_i }
      place[0, LightQ::Native::REPORT.bytes] = LightQ::Native::REPORT.pack(values)
      LightQ::Native::OK
    end
    yield
  ensure
    function.singleton_class.remove_method(:call)
  end

  def test_the_fates_of_too_many_messages_are_in_doubt
    out = connected.producer("t")
    count = 2 * 10_000 + 6
    confirms = scripted(count) do
      Array.new(count) { out.send("x") }.tap { out.flush }
    end
    2.times do
      [0, 1, 4].each do |number|
        assert confirms[number].done?
        assert_equal :unknown, assert_raises(LightQ::InDoubt, number.to_s) { confirms[number].wait }.fate
      end
      [6, count - 2].each { |number| assert_raises(LightQ::Refused) { confirms[number].wait } }
      [7, count - 1].each { |number| confirms[number].wait } # the latest fates are still known after `close`
      out.close
    end
    assert_raises(LightQ::Closed) { out.wait_settled(count) }
    refute out.settled?(count)
  end

  def test_fates_in_another_order_are_found_and_bounded
    fates = LightQ.const_get(:Fates).new
    fates.fail(8, 9, :later)
    fates.fail(3, 6, :earlier)
    fates.settled(2)
    found = [1, 3, 5, 6, 7, 8, 9].map { |number| fates.reason_of(number) || fates.settled?(number) }
    assert_equal [true, :earlier, :earlier, false, false, :later, false], found
    fates.forget(10) # the library has forgotten fates up to here, and will name some of these messages later
    assert_equal [false, true, false], [fates.settled?(7), fates.forgotten?(7), fates.forgotten?(8)]
    fates.fail(7, 8, :named_later)
    assert_equal [:named_later, true], [fates.reason_of(7), fates.settled?(7)]
    most = 10_000
    most.times { |at| fates.fail(12 + 2 * at, 13 + 2 * at, at) }
    assert_equal [*0...most], Array.new(most) { |at| fates.reason_of(12 + 2 * at) }
    assert_equal [nil, 10], [fates.reason_of(8), fates.forgotten_end]
    refute fates.settled?(9)
    fates.close
    assert fates.settled?(9)
  end

  def test_send_passes_fates_on
    out, settled = connected.producer("t"), 0
    out.on_settled { |first, last, _| settled += last - first }
    until_true("a fate in send") { out.send("x") and settled.positive? }
    sent = out.stats[:sent]
    out.close
    assert_equal sent, settled
  end

  def test_a_producer_is_continued_by_another_one
    q = connected
    first = q.producer("t")
    known = first.identity
    second = q.producer("t", identity: [known.id, known.epoch + 1, known.secret])
    assert_equal [known.id, known.epoch + 1], second.identity.to_a.first(2)
    first << "x"
    assert_raises(LightQ::Fenced) { first.flush }
    first.close
    second.close
  end

  def test_commands
    q = connected
    q.create_topic("made", message_bytes_max: 1000)
    assert_equal "topic_already_exists", assert_raises(LightQ::AlreadyExists) { q.create_topic("made") }.code
    q.create_user("shop", "a secret of ours", rights: [{ topic: "made", rights: %w[produce] }])
    q.grant("shop", "made", %w[consume])
    assert_includes(q.list_users["users"].map { |user| user["user_id"] }, "shop")
    LightQ.connect(ENV.fetch("LIGHTQ_BROKER"), user: "shop", password: "a secret of ours", discover: false) do |shop|
      assert_equal 0, shop.stats("made")["messages_received"]
      assert_raises(LightQ::Unauthorized) { shop.list_users }
      shop.producer("made", delayed: true) { |out| out.send("later", delay: 3600) }
    end
    assert_equal 1, q.list_delayed("made")["messages"].size
    assert_includes(q.list_topics["topics"].map { |each| each["topic"] }, "made")
    assert_equal "group_not_found", assert_raises(LightQ::NotFound) { q.list_dead("made", "none") }.code
  ensure
    q&.delete_user("shop")
    q&.delete_topic("made")
  end
end
