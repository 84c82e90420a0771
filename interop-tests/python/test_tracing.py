"""S325: the SDK's own tracing, by OpenTelemetry."""

import os

import pytest
from azure.core.settings import settings
from azure.servicebus import ServiceBusMessage
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from conftest import complete, receive


@pytest.fixture
def told():
    """The spans that are told while tracing is on. OpenTelemetry has one provider for a process."""
    exporter = InMemorySpanExporter()
    provider = trace.get_tracer_provider()
    if not isinstance(provider, TracerProvider):
        provider = TracerProvider()
        trace.set_tracer_provider(provider)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    settings.tracing_implementation = "opentelemetry"
    yield exporter
    settings.tracing_implementation = None
    exporter.shutdown()


def parent(received, name: bytes) -> tuple[int, int]:
    """The trace and the span that a header names, as W3C writes it."""
    _, trace_id, span_id, _ = received.application_properties[name].decode().split("-")
    return int(trace_id, 16), int(span_id, 16)


async def test_s325_messages_carry_the_trace_of_their_sender(queue, told):
    with trace.get_tracer(os.path.basename(__file__)).start_as_current_span("the sender's own") as own:
        async with queue.sender() as sender:
            await sender.send_messages(ServiceBusMessage("single"))
            batch = await sender.create_message_batch()
            batch.add_message(ServiceBusMessage("in a batch"))
            await sender.send_messages(batch)
    async with queue.receiver() as receiver:
        messages = await receive(receiver, 2)
        await complete(receiver, messages)
    spans = told.get_finished_spans()
    made = {each.context.span_id: each for each in spans}
    for each in messages:
        # What the receiver does is told, too, and is linked to what the sender did.
        for header in (b"Diagnostic-Id", b"traceparent"):
            trace_id, span_id = parent(each, header)
            assert trace_id == own.get_span_context().trace_id
            assert made[span_id].name == "ServiceBus.message"
        linked = [span.name for span in spans for link in span.links if link.context.span_id == span_id]
        assert "ServiceBus.send" in linked and "ServiceBus.receive" in linked and "ServiceBus.complete" in linked, linked
