"""The seed inputs of http_messages_fuzz: contents as docs/http.md has them, after a byte for the command. Those of
http_request_fuzz: requests as docs/http.md and RFC 9112 have them, after a byte for the size of
the pieces."""
HTTP_CONTENTS = {name: b"\x04" + text for name, text in {
    "lines": b'{"payload":"a","key":"k","id":"i","time_us":1700000000000000,"ttl_ms":5}\n'
             b'{"payload_base64":"/w==","headers":[{"name":"n","value_base64":"AA=="},{"name":"m","value":"v"}]}\n',
    "delayed_lines": b'{"payload":"a","delay_ms":5}\n{"payload":"b","at_us":1700000000000000,"id":"i"}\n',
    "a_range": b"3,5-9,12",
    "a_command": b'delayed=true&limit=7\n{"broker_type":"file","retention_bytes":1073741824}',
    "a_command_without_parameters": b'\n{"broker_type":"queue"}',
}.items()}
HOST = b"Host: 127.0.0.1:5001\r\n"
HTTP_REQUESTS = {name: b"\x06" + text for name, text in {
    "metrics": b"GET /metrics?topic=orders.*&detail=off&zeros=on HTTP/1.1\r\n" + HOST + b"Authorization: Basic YW5uOnBhc3N3b3Jk\r\n"
               b"Accept: application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1\r\n\r\n",
    "health_of_http_10": b"GET /healthz HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n",
    "a_post_with_a_length": b"POST /topics/a%20b/messages HTTP/1.1\r\nHost: [::1]:5001\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nhello",
    "a_post_in_chunks": b"POST /topics/t/messages HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n0\r\nX: y\r\n\r\n",
    "requests_together": (b"HEAD /metrics HTTP/1.1\r\n" + HOST + b"\r\n") * 3 + b"DELETE /metrics HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n",
    "a_page_of_another_origin": b"GET /metrics HTTP/1.1\r\n" + HOST + b"Origin: http://evil.example\r\n\r\n",
    "an_absolute_form": b"GET http://broker.example/metrics?topic=%41%zz HTTP/1.1\r\nHost: x\r\n\r\n",
    "two_lengths": b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n",
    "a_length_beside_chunks": b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a_stream_that_resumes": b"GET /topics/t/stream?from=17&max=5 HTTP/1.1\r\n" + HOST + b"Last-Event-ID: 17\r\nAccept: text/event-stream\r\n\r\n",
    "a_slash_within_a_name": b"POST /topics/a%2Fb%2f/messages HTTP/1.1\r\n" + HOST + b"Lightq-Id: i\r\nLightq-Delay: 5\r\n\r\n",
    "a_folded_header": b"GET / HTTP/1.1\r\n" + HOST + b"X: a\r\n b\r\n\r\n",
}.items()}
