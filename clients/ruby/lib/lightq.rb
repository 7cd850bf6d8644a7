# frozen_string_literal: true

require_relative "lightq/version"
require_relative "lightq/client"

# A client of the message broker LightQ, over the library liblightq.so.0.
module LightQ
  # Connects to a broker, and returns a Client; with a block, yields it, and closes it afterwards. Arguments that are not
  # given come from the environment (LIGHTQ_BROKER, LIGHTQ_USER, LIGHTQ_PASSWORD …) and, on the broker's machine, from its
  # files, as for the command line; not with `discover: false`. With a `server_key` everything is encrypted. `transport`:
  # :ipc uses the broker's Unix socket, :tcp does not. `timeout`: seconds for each request, and to open a producer,
  # consumer or reader. Errors: Timeout, ConnectionLost, Unauthorized, InvalidArgument. A wrong password shows in later
  # calls.
  def self.connect(uri = nil, user: nil, password: nil, admin: nil, admin_password: nil, server_key: nil, client_key_file: nil,
                   data_dir: nil, discover: true, insecure: false, transport: nil, timeout: 5)
    texts = { uri: uri, user: user, password: password, admin_user: admin, admin_password: admin_password, server_key: server_key,
              client_key_file: client_key_file, data_dir: data_dir }
    milliseconds = Native.milliseconds(timeout, "timeout")
    client = Client.new({ **texts.to_h { |name, text| [name, Native.text(text, name.to_s)] }, no_discovery: !Native.flag(discover, "discover"),
                          insecure: Native.flag(insecure, "insecure"),
                          request_timeout_ms: milliseconds, connect_timeout_ms: milliseconds }, transport)
    return client unless block_given?

    begin
      yield client
    ensure
      client.close
    end
  end
end
