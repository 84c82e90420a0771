// A program whose tracing is on, as OpenTelemetry's documentation has it: within a span it sends a message, and one in a batch; a processor
// receives both. It prints the spans that were told, and the messages' application properties.
//
//     traced.cjs CONNECTION-STRING QUEUE

const { AsyncLocalStorageContextManager } = require("@opentelemetry/context-async-hooks");
const { context, trace } = require("@opentelemetry/api");
const { registerInstrumentations } = require("@opentelemetry/instrumentation");
const { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } = require("@opentelemetry/sdk-trace-base");
const { setTimeout: pause } = require("node:timers/promises");
const { createAzureSdkInstrumentation } = require("@azure/opentelemetry-instrumentation-azure-sdk");

const exporter = new InMemorySpanExporter();
trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }));
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
registerInstrumentations({ instrumentations: [createAzureSdkInstrumentation()] });

// After the instrumentation, which looks for it when it is loaded.
const { ServiceBusClient } = require("@azure/service-bus");

async function main(text, queue) {
  const client = new ServiceBusClient(text, { retryOptions: { maxRetries: 1, timeoutInMs: 20_000 } });
  const sender = client.createSender(queue);
  await trace.getTracer("traced").startActiveSpan("outer", async (span) => {
    await sender.sendMessages({ body: "single" });
    const batch = await sender.createMessageBatch();
    batch.tryAddMessage({ body: "batched" });
    await sender.sendMessages(batch);
    span.end();
  });
  const messages = [];
  await new Promise((done, failed) => {
    client.createReceiver(queue).subscribe({
      processMessage: async ({ body, applicationProperties }) => {
        messages.push({ body, applicationProperties });
        if (messages.length === 2) done();
      },
      processError: async ({ error }) => { failed(error); },
    });
  });
  // What the processor completes by itself it completes after its callback.
  const completed = () => exporter.getFinishedSpans().filter(({ name }) => name === "ServicebusReceiver.complete").length;
  while (completed() < 2) await pause(20);
  await client.close();
  const spans = exporter.getFinishedSpans().map((span) => ({
    name: span.name,
    trace: span.spanContext().traceId,
    id: span.spanContext().spanId,
    parent: span.parentSpanContext?.spanId,
    links: span.links.map((link) => link.context.spanId),
  }));
  process.stdout.write(JSON.stringify({ messages, spans }));
}

main(...process.argv.slice(2)).then(() => process.exit(), (error) => {
  process.stderr.write(`${error.stack}\n`);
  process.exit(1);
});
