package interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.core.tracing.opentelemetry.OpenTelemetryTracingOptions;
import com.azure.core.util.ClientOptions;
import com.azure.core.util.tracing.Tracer;
import com.azure.messaging.servicebus.ServiceBusMessageBatch;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.Scope;
import io.opentelemetry.sdk.OpenTelemetrySdk;
import io.opentelemetry.sdk.testing.exporter.InMemorySpanExporter;
import io.opentelemetry.sdk.trace.SdkTracerProvider;
import io.opentelemetry.sdk.trace.data.SpanData;
import io.opentelemetry.sdk.trace.export.SimpleSpanProcessor;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

/** The SDK's own tracing, by OpenTelemetry. */
class Tracing extends Scenarios {
    @Test
    void s325_messages_carry_the_trace_they_were_sent_in() {
        InMemorySpanExporter exporter = InMemorySpanExporter.create();
        SdkTracerProvider provider =
            SdkTracerProvider.builder().addSpanProcessor(SimpleSpanProcessor.create(exporter)).build();
        OpenTelemetrySdk telemetry = OpenTelemetrySdk.builder().setTracerProvider(provider).build();
        client.builder().clientOptions(new ClientOptions()
            .setTracingOptions(new OpenTelemetryTracingOptions().setOpenTelemetry(telemetry)));
        ServiceBusSenderClient sender = client.sender("s325");
        ServiceBusReceiverClient receiver = client.receiver("s325");

        Span span = telemetry.getTracer("interop").spanBuilder("mine").startSpan();
        try (Scope scope = span.makeCurrent()) {
            // A message by itself is traced on a thread of the SDK's, which has to be told of the span.
            sender.sendMessage(message(1).addContext(Tracer.PARENT_TRACE_CONTEXT_KEY, Context.current()));
            ServiceBusMessageBatch batch = sender.createMessageBatch();
            batch.tryAddMessage(message(2));
            sender.sendMessages(batch);
        }
        span.end();
        List<ServiceBusReceivedMessage> messages = receive(receiver, 2);
        completeAll(receiver, messages);
        String trace = span.getSpanContext().getTraceId();
        for (ServiceBusReceivedMessage message : messages) {
            String told = String.valueOf(message.getApplicationProperties().get("traceparent"));
            assertTrue(told.startsWith("00-" + trace + "-"), message.getBody() + " has " + told + " and not " + trace);
            assertEquals(told, message.getApplicationProperties().get("Diagnostic-Id"));
        }
        // Spans for the sends in that trace; those for receiving are linked to what the messages carry.
        List<SpanData> spans = exporter.getFinishedSpanItems();
        assertTrue(spans.stream().anyMatch(each ->
            each.getTraceId().equals(trace) && each.getName().equals("ServiceBus.send")), () -> names(spans));
        Set<String> linked = spans.stream().filter(each -> each.getName().contains("receive"))
            .flatMap(each -> each.getLinks().stream()).map(link -> link.getSpanContext().getSpanId())
            .collect(Collectors.toSet());
        Set<String> carried = messages.stream()
            .map(message -> String.valueOf(message.getApplicationProperties().get("traceparent")).split("-")[2])
            .collect(Collectors.toSet());
        assertEquals(carried, linked, () -> names(spans));
        assertTrue(spans.stream().anyMatch(each -> each.getName().contains("complete")), () -> names(spans));
    }

    private static String names(List<SpanData> spans) {
        return spans.stream().map(each -> each.getName() + " " + each.getLinks()).toList().toString();
    }
}
