"""Spans of messages: a collector that reads OTLP over HTTP, and the Python SDK as the sender that traces."""

from __future__ import annotations

import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from azure.core.settings import settings
from azure.servicebus import ServiceBusClient, ServiceBusMessage, ServiceBusReceiveMode
from opentelemetry import trace
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest, ExportTraceServiceResponse
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from opentelemetry.sdk.trace import TracerProvider

from broker import Broker

# How long spans may take to come: they are sent every two seconds.
DEADLINE = 30.0


class Collector:
    """Keeps the spans that it is sent. While `refuses` is set it answers 503."""

    def __init__(self):
        collector = self
        self.spans: list[Span] = []
        self.services: set[str] = set()
        self.headers: list[dict[str, str]] = []
        self.refuses = False
        self.refused = 0

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                assert self.path == "/v1/traces", self.path
                if collector.refuses:
                    collector.refused += 1
                    self.send_error(503)
                    return
                collector.headers.append({name.lower(): value for name, value in self.headers.items()})
                for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                    collector.services |= {each.value.string_value for each in resource.resource.attributes if each.key == "service.name"}
                    for scope in resource.scope_spans:
                        collector.spans.extend(scope.spans)
                answer = ExportTraceServiceResponse().SerializeToString()
                self.send_response(200)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def of(self, trace_id: int, count: int) -> list[Span]:
        """Waits for that many spans of a trace; returns them by their time."""
        deadline = time.monotonic() + DEADLINE
        while True:
            found = [span for span in self.spans if int.from_bytes(span.trace_id, "big") == trace_id]
            if count <= len(found):
                assert count == len(found), [span.name for span in found]
                return sorted(found, key=lambda span: (span.start_time_unix_nano, -span.end_time_unix_nano))
            assert time.monotonic() < deadline, (count, [span.name for span in found], len(self.spans))
            time.sleep(0.05)


def attributes(span: Span) -> dict[str, object]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in span.attributes}


class Traced:
    """The SDK traces what happens inside. OpenTelemetry has one provider for a process."""

    def __enter__(self) -> "Traced":
        provider = trace.get_tracer_provider()
        if not isinstance(provider, TracerProvider):
            trace.set_tracer_provider(TracerProvider())
        settings.tracing_implementation = "opentelemetry"
        self.span = trace.get_tracer("test").start_span("the application's own")
        self.current = trace.use_span(self.span, end_on_exit=True)
        self.current.__enter__()
        self.trace_id = self.span.get_span_context().trace_id
        return self

    def __exit__(self, *args):
        self.current.__exit__(*args)
        settings.tracing_implementation = None


def sent_in(message) -> bytes:
    """The span that a received message was sent in."""
    return bytes.fromhex(message.application_properties[b"traceparent"].decode().split("-")[2])


def client(broker: Broker) -> ServiceBusClient:
    return ServiceBusClient.from_connection_string(broker.connection_string)


def a_traced_message_has_a_span_for_each_step(world) -> None:
    collector, broker = world.collector, world.traced
    with client(broker) as bus, bus.get_queue_receiver("orders") as receiver:
        with Traced() as traced, bus.get_queue_sender("orders") as sender:
            sender.send_messages(ServiceBusMessage("one"))
        (first,) = receiver.receive_messages(1, max_wait_time=10)
        receiver.abandon_message(first)
        (again,) = receiver.receive_messages(1, max_wait_time=10)
        receiver.complete_message(again)
    spans = collector.of(traced.trace_id, 6)
    names = [span.name for span in spans]
    assert names == ["accept orders", "store", "deliver orders", "settle orders", "deliver orders", "settle orders"], names
    accept, store, first_delivery, abandoned, second_delivery, completed = spans
    assert store.parent_span_id == accept.span_id
    for span in (accept, first_delivery, abandoned, second_delivery, completed):
        assert span.parent_span_id == sent_in(again), span
        found = attributes(span)
        assert found["messaging.system"] == "servicebus" and found["messaging.destination.name"] == "orders", found
        assert found["jitney.sequence_number"] == again.sequence_number, found
    assert attributes(first_delivery)["messaging.servicebus.message.delivery_count"] == 1
    assert attributes(second_delivery)["messaging.servicebus.message.delivery_count"] == 2
    assert attributes(abandoned)["messaging.servicebus.disposition_status"] == "abandon"
    assert attributes(completed)["messaging.servicebus.disposition_status"] == "complete"
    now = time.time_ns()
    for span in spans:
        assert now - 120e9 < span.start_time_unix_nano <= span.end_time_unix_nano <= now, span
    assert accept.start_time_unix_nano <= store.start_time_unix_nano and store.end_time_unix_nano <= accept.end_time_unix_nano
    assert collector.services == {"jitney"}
    assert all(headers["x-api-key"] == "of the test" for headers in collector.headers), collector.headers


def a_topic_batches_and_transfers_are_traced(world) -> None:
    collector, broker = world.collector, world.traced
    with client(broker) as bus:
        with Traced() as traced, bus.get_topic_sender("news") as sender:
            batch = sender.create_message_batch()
            batch.add_message(ServiceBusMessage("one"))
            batch.add_message(ServiceBusMessage("two"))
            sender.send_messages(batch)
        mode = ServiceBusReceiveMode.RECEIVE_AND_DELETE
        with bus.get_subscription_receiver("news", "all", receive_mode=mode) as receiver:
            received = []
            while len(received) < 2:
                received += receiver.receive_messages(2, max_wait_time=10)
    spans = collector.of(traced.trace_id, 6)
    names = sorted(span.name for span in spans)
    deliver = "deliver news/Subscriptions/all"
    assert names == ["accept news"] * 2 + [deliver] * 2 + ["store"] * 2, names
    parents = {span.parent_span_id for span in spans if span.name != "store"}
    assert parents == {sent_in(each) for each in received}


def what_is_not_traced_has_no_spans(world) -> None:
    collector, broker = world.collector, world.traced
    before = len(collector.spans)
    with client(broker) as bus:
        with bus.get_queue_sender("orders") as sender, bus.get_queue_receiver("orders") as receiver:
            sender.send_messages(ServiceBusMessage("untraced"))
            # A trace that its sender does not record, and headers that are none.
            for header in ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00", "|7e9f3a.1.", "00-zz", "x" * 10_000):
                sender.send_messages(ServiceBusMessage("odd", application_properties={"traceparent": header, "Diagnostic-Id": header}))
            for _ in range(5):
                (message,) = receiver.receive_messages(1, max_wait_time=10)
                receiver.complete_message(message)
        with Traced() as traced, bus.get_queue_sender("orders") as sender:
            sender.send_messages(ServiceBusMessage("the last"))
        with bus.get_queue_receiver("orders") as receiver:
            (message,) = receiver.receive_messages(1, max_wait_time=10)
            receiver.complete_message(message)
    collector.of(traced.trace_id, 4)
    assert len(collector.spans) == before + 4, [span.name for span in collector.spans[before:]]


def a_collector_that_is_away_delays_nothing(world) -> None:
    collector, broker = world.collector, world.traced
    collector.refuses = True
    try:
        with client(broker) as bus:
            with Traced(), bus.get_queue_sender("orders") as sender:
                for number in range(50):
                    sender.send_messages(ServiceBusMessage(str(number)))
            with bus.get_queue_receiver("orders") as receiver:
                for _ in range(50):
                    (message,) = receiver.receive_messages(1, max_wait_time=10)
                    receiver.complete_message(message)
        deadline = time.monotonic() + DEADLINE
        while "the collector took no spans" not in broker.log.read_text():
            assert time.monotonic() < deadline and collector.refused < 50, collector.refused
            time.sleep(0.05)
    finally:
        collector.refuses = False
    with client(broker) as bus:
        with Traced() as traced, bus.get_queue_sender("orders") as sender:
            sender.send_messages(ServiceBusMessage("again"))
    collector.of(traced.trace_id, 2)
    assert "the collector takes spans again" in broker.log.read_text()


def the_last_spans_are_sent_when_the_broker_stops(world) -> None:
    collector, broker = world.collector, world.traced
    with client(broker) as bus:
        with Traced() as traced, bus.get_queue_sender("orders") as sender:
            sender.send_messages(ServiceBusMessage("at the end"))
    broker.stop()
    assert [span.name for span in collector.of(traced.trace_id, 2)] == ["accept orders", "store"]
    broker.start()


TESTS = [
    a_traced_message_has_a_span_for_each_step, a_topic_batches_and_transfers_are_traced, what_is_not_traced_has_no_spans,
    a_collector_that_is_away_delays_nothing, the_last_spans_are_sent_when_the_broker_stops,
]
