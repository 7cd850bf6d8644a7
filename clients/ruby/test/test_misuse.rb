# frozen_string_literal: true

# Misuse: each ends in an error of Ruby, and nothing hangs, crashes or leaks.
require "socket"
require_relative "helper"

class TestMisuse < Minitest::Test
  include Helper

  def test_closed_twice_and_used_after_it
    q = connected
    out, orders, reader = q.producer("t"), q.consumer("t", group: group_with(q, "x")), q.reader("t")
    message = orders.receive(timeout: DEADLINE)
    2.times { [out, orders, reader, q].each(&:close) }
    [-> { out << "x" }, -> { out.flush }, -> { orders.receive(timeout: 1) }, -> { message.ack }, -> { orders.seek(:first) },
     -> { reader.read(0, 1) }, -> { q.ping }, -> { q.producer("t") }].each { |use| assert_raises(LightQ::Closed, &use) }
    assert_equal [:closed, :closed, true], [out.state, orders.state, message.revoked?]
  end

  def test_a_second_thread_is_refused_and_the_first_one_goes_on
    q = connected
    orders = q.consumer("t", group: group_with(q))
    first = Thread.new { orders.receive }
    error = until_true("the first thread's call") do
      orders.poll
      nil
    rescue LightQ::InUse => e
      e
    end
    assert_equal "in_use", error.code
    assert_raises(LightQ::InUse) { orders.close }
    q.producer("t") { |out| out << "one" } # other threads run while one waits
    assert_equal "one", first.value.body
    orders.close
  end

  def test_threads_share_a_client
    q = connected
    group = group_with(q)
    Array.new(4) { |n| Thread.new { q.producer("t") { |out| 50.times { |i| out << "#{n} #{i}" } } } }.each(&:join)
    bodies = Array.new(2) do
      Thread.new do
        taken = []
        q.consumer("t", group: group) { |orders| orders.process(idle_timeout: 0.3) { |m| taken << m.body } }
        taken
      end
    end.flat_map(&:value)
    assert_equal 200, bodies.uniq.size
    assert_equal 200, bodies.size
  end

  def test_a_child_of_a_fork_gets_closed
    q = connected
    out, orders = q.producer("t"), q.consumer("t", group: group_with(q, "x"))
    message = orders.receive(timeout: DEADLINE)
    code = in_child do
      uses = [-> { out << "x" }, -> { orders.receive(timeout: 1) }, -> { message.ack }, -> { q.ping }, -> { orders.flush }]
      uses.each { |use| assert_raises(LightQ::Closed, &use) }
      assert_raises(LightQ::Error) { orders.close }
      LightQ.connect { |own| own.producer("t") { |mine| (mine << "of the child").flush } }
      true
    end
    assert_equal 0, code
    message.ack
    orders.close
    out.send("after").wait
  end

  # Cancels a thread in the middle of everything: it ends at once, and leaves neither consumers nor messages behind.
  def test_cancelled_in_the_middle
    q = connected
    cancels = [->(thread) { thread.raise(IOError, "cancelled") }, lambda(&:kill)]
    [0, 0.0005, 0.002, 0.005, 0.01, 0.03].product(cancels) do |after, cancel|
      group = group_with(q)
      thread = Thread.new do
        Thread.current.report_on_exception = false
        work(q, group)
      end
      sleep after
      cancel.call(thread)
      assert ended?(thread), "stuck after #{after} s"
      q.ping
      until_true("the end of the consumer") { consumers_of(q, group).zero? }
    end
  end

  def ended?(thread)
    thread.join(DEADLINE)
  rescue IOError => e
    e.message == "cancelled"
  end

  def work(client, group)
    client.producer("t") do |out|
      client.consumer("t", group: group) do |orders|
        loop do
          out.send("x").wait
          orders.receive(timeout: 1)&.ack
          orders.poll
          client.stats("t")
        end
      end
    end
  end

  def test_a_timeout_ends_every_wait
    q = connected
    orders = q.consumer("t", group: group_with(q))
    assert_raises(Timeout::Error) { Timeout.timeout(0.05) { orders.receive } }
    TCPServer.open("127.0.0.1", 0) do |silent|
      assert_raises(Timeout::Error) { Timeout.timeout(0.05) { LightQ.connect("tcp://127.0.0.1:#{silent.local_address.ip_port}", timeout: 2) } }
      assert_operator Thread.list.size, :>, 1, "the caller has not waited for the library"
    end
    q.producer("t") { |out| out << "one" }
    assert_equal "one", orders.receive(timeout: DEADLINE).body # nothing was lost
    orders.close
  end

  def test_a_failed_block_retries_and_one_that_is_left_releases
    q = connected
    group = group_with(q, "x")
    orders = q.consumer("t", group: group)
    leave = [-> { raise "failed" }, -> { throw :left }, -> { raise Interrupt }, -> { Thread.current.kill }]
    deliveries = leave.map do |each|
      seen = nil
      Thread.new do
        Thread.current.report_on_exception = false
        catch(:left) { orders.process { |m| seen = m.delivery and each.call } }
      end.join
      seen
    rescue RuntimeError, Interrupt
      seen
    end
    assert_equal [1, 2, 2, 2], deliveries
    orders.each { |m| break m.process { m.dead("enough") } }
    orders.flush
    assert_equal ["enough"], q.list_dead("t", group)["messages"].map { |each| each["reason"] }
    orders.close
  end

  def test_collected_while_open
    q = connected
    group = group_with(q)
    errors = capture_io do
      verbose, $VERBOSE = $VERBOSE, true
      Thread.new { 3.times { q.consumer("t", group: group).poll } }.join
      until_true("the end of the consumers") { GC.start || consumers_of(q, group).zero? }
      $VERBOSE = verbose
    end
    assert_match(/a consumer of t was not closed/, errors.join)
  end

  def test_nothing_leaks
    q = connected
    2.times { |round| open_and_close(q, 5) and @descriptors = round.zero? ? descriptors : @descriptors }
    # libzmq closes the descriptors of a closed connection in a thread of its own.
    until_true("the end of the connections") { descriptors <= @descriptors }
  end

  def open_and_close(client, count)
    count.times do
      client.producer("t") { |out| out.send("x", key: "k", headers: { "a" => "b" }).wait }
      client.consumer("t", own: true, start: :last) { |orders| orders.receive(timeout: DEADLINE).ack }
    end
  end

  def descriptors
    Dir.children("/proc/self/fd").size
  end

  def test_no_broker_and_a_wrong_password
    unused = TCPServer.open("127.0.0.1", 0) { |server| server.local_address.ip_port }
    error = assert_raises(LightQ::ConnectionLost) { LightQ.connect("tcp://127.0.0.1:#{unused}", discover: false) }
    assert error.retryable?
    assert_includes error.backtrace.join("\n"), __FILE__
    TCPServer.open("127.0.0.1", 0) do |silent|
      error = assert_raises(LightQ::Timeout) do
        LightQ.connect("tcp://127.0.0.1:#{silent.local_address.ip_port}", discover: false, timeout: 0.2)
      end
      assert error.retryable?
    end
    wrong = connected(uri: ENV.fetch("LIGHTQ_BROKER"), user: "test_user", password: "wrong one", discover: false)
    [-> { wrong.producer("t") }, -> { wrong.consumer("t") }, -> { wrong.stats("t") }].each do |use|
      error = assert_raises(LightQ::Unauthorized, &use)
      refute_match(/wrong one/, error.message + wrong.inspect)
    end
  end

  def test_a_callback_that_raises
    out, seen = connected.producer("t"), []
    out.on_settled do |*settled|
      seen << settled
      raise ZeroDivisionError
    end
    out << "x"
    assert_raises(ZeroDivisionError) { out.flush }
    assert_equal [[0, 1, nil]], seen
    out.on_settled { |*| out << "in the callback" if seen.size == 1 and seen << nil }
    (out << "y").flush
    out.on_settled
    out.close
    assert_equal :closed, out.state
  end

  def test_a_revoked_message
    q = connected
    orders = q.consumer("t", group: group_with(q, "x"), ack_timeout: 0.1)
    message = orders.receive(timeout: DEADLINE)
    watch = message.watch
    refute watch.revoked? || message.revoked?
    until_true("the revocation") { orders.poll || Thread.new { watch.revoked? }.value }
    assert message.revoked?
    error = assert_raises(LightQ::Revoked) { message.ack }
    refute error.retryable?
    message.process { :ignored }
    orders.receive(timeout: DEADLINE).ack
    orders.close
  end

  def test_wrong_arguments
    q = connected
    out = q.producer("t")
    [-> { q.producer("no name") }, -> { q.producer("") }, -> { q.producer(5) }, -> { q.consumer("t", group: "no group") },
     -> { q.consumer("t", prefetch: 0) }, -> { q.consumer("t", start: :middle) }, -> { q.producer("t", level: :high) },
     -> { out.send(5) }, -> { out.send("x", delay: 1) }, -> { out.send("x", ttl: -1) }, -> { out.send("x", ttl: "long") },
     -> { out.send("x", key: 5) }, -> { out.send("x", headers: [["a", "b"]] * 65) }, -> { q.producer("t\0x") },
     -> { q.command("no_such_command") }, -> { out.wait_settled(1 << 40) }, -> { LightQ.connect(timeout: -1) },
     -> { out.wait_settled(-1) }, -> { out.settled?("1") }, -> { out.send("x", time: "2026-01-01") }, -> { out.send("x", time: Float::NAN) },
     -> { out.send("x", headers: "abc") }, -> { out.send("x", headers: [["a"]]) }, -> { q.consumer("t", start: 1.5) }
    ].each_with_index { |use, at| assert_raises(LightQ::InvalidArgument, at.to_s, &use) }
    [-> { q.producer("t", colour: 1) }, -> { q.reader("t", size: 8) }].each { |use| assert_raises(ArgumentError, &use) }
    assert_raises(LightQ::NotFound) { q.producer("missing") }
    assert_equal "too_large", assert_raises(LightQ::Refused) { out.send("x" * (17 << 20)) }.code
    error = assert_raises(LightQ::InvalidArgument) { LightQ.connect(password: ["secret"]) }
    refute_match(/secret/, error.message)
    orders = q.consumer("t", group: group_with(q))
    [3.., ..3, -1..3, 0..(1 << 70), 0..((1 << 64) - 1), 5].each { |range| assert_raises(LightQ::InvalidArgument) { orders.ack_range(range) } }
    out.send("still in use").wait
    [orders, out].each(&:close)
  end

  def test_options_of_wrong_types
    q = connected
    wrong = { name: 12_345, heartbeat_ms: 1 << 31, over_zmq: "yes", no_shared_memory: 2, transport: :udp, backoff_ms: 0.5 }
    %i[producer consumer reader].product(wrong.to_a) do |kind, (name, value)|
      error = assert_raises(LightQ::InvalidArgument, "#{kind} #{name}") { q.public_send(kind, "t", name => value) }
      assert_match(/\A#{name} /, error.message)
    end
    { batch_bytes: -1, window_bytes: "1", linger_ms: [], full_batches: :no, delayed: "no", retry_refused: "no", level: 1, identity: 5,
      resend_in_doubt: 5 }.each { |each| assert_raises(LightQ::InvalidArgument, each.to_s) { q.producer("t", **[each].to_h) } }
    assert_raises(LightQ::InvalidArgument) { q.producer("t", identity: [1, 0, {}]) }
    { group: 5, incarnation: 1 << 64, own: "x", holds: 7, automatic: [], prefetch_bytes: 1.5, ack_timeout: "1", frame_bytes_max: "1" }
      .each { |each| assert_raises(LightQ::InvalidArgument, each.to_s) { q.consumer("t", **[each].to_h) } }
    { uri: 5, user: 5, password: 5, server_key: {}, data_dir: 1, discover: 5, insecure: "no", transport: 7, timeout: "1" }.each do |name, value|
      how = name == :uri ? [value, {}] : [nil, { name => value }]
      assert_raises(LightQ::InvalidArgument, name.to_s) { LightQ.connect(how[0], **how[1]) }
    end
    q.producer("t", name: "shop", linger_ms: 1, heartbeat_ms: -1, full_batches: false, over_zmq: nil, transport: :tcp, &:flush)
  end
end
