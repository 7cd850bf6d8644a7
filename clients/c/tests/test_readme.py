"""Compiles and runs the programs of README.md and the example of an event loop."""
import re

from conftest import ROOT, compiled, run

README = (ROOT / "clients/c/README.md").read_text(encoding="utf-8")
TEN_LINES, CONSUMING, CONNECTING = re.findall(r"^```c\n(.*?)^```$", README, re.S | re.M)


def test_the_ten_lines_and_the_consumer_run_as_printed(tmp_path, broker):
    broker.control().create("orders", "file")
    for name, text in ("produce", TEN_LINES), ("consume", CONSUMING):
        (tmp_path / f"{name}.c").write_text(text)
    assert run(compiled(tmp_path / "produce.c", tmp_path / "produce", "-std=c99"), broker) == ""
    told = run(compiled(tmp_path / "consume.c", tmp_path / "consume", "-std=c89"), broker)
    assert told.splitlines() == ["billed order"] * 1000


def test_the_example_of_connecting_compiles(tmp_path, broker):
    source = tmp_path / "connecting.c"
    source.write_text("#include <lightq/lightq.h>\nint main(void) {\n" + CONNECTING + "  return code == LIGHTQ_OK;\n}\n")
    text = source.read_text().replace("broker.example:5000", "127.0.0.1:1")
    source.write_text(text)
    run(compiled(source, tmp_path / "connecting", "-std=c89"), broker)  # nothing listens: an error, and the program ends


def test_the_event_loop_sends_and_receives(tmp_path, broker):
    broker.control().create("events", "file")
    program = compiled(ROOT / "examples/c/event_loop.c", tmp_path / "event_loop", "-std=c99", "-D_POSIX_C_SOURCE=200809L")
    assert run(program, broker, "events") == "1000 messages sent and received\n"
