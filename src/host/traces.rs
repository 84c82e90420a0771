//! Spans of what happens to messages whose senders trace them, for a collector of OpenTelemetry (OTLP over HTTP).
//!
//! A message that carries a recorded trace context has a span for each step: `accept` until its sender is answered, with
//! `store` in it while the group of its record is written and synced; `deliver` from the choice of a receiver until the message
//! leaves for the connection; `settle` until that is durable. All are children of the span that the message was sent in.
//! Names and attributes follow OpenTelemetry's conventions for messaging and Service Bus where they have one.
//!
//! Promises: a collector that is slow or away delays no message and takes a bounded amount of memory; spans are dropped then.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use clap::Args;
use http_body_util::Full;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use opentelemetry::trace::{
    Span as _, SpanContext, SpanId, SpanKind, TraceContextExt as _, TraceFlags, TraceId,
    TraceState, Tracer as _, TracerProvider as _,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, SdkTracer, SdkTracerProvider, Span, SpanExporter,
};
use tokio::runtime::Handle;
use tracing::{info, warn};

use crate::limits;
use crate::net::fetch::{self, FetchError, Fetcher, PlainHttp, Url};
use crate::system::clock::system_time;
use jitney_base::ids::LockToken;
use jitney_broker::namespace::{HandedOut, TraceEvent};
use jitney_message::TraceContext;
use jitney_queue::ReceiveMode;

/// Where spans go.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct TracesArgs {
    /// Send spans of traced messages to a collector of OpenTelemetry, over OTLP/HTTP: its URL, such as
    /// `http://127.0.0.1:4318`. Without a path, /v1/traces is added. The default is no traces.
    #[arg(long, value_name = "URL")]
    pub(crate) traces: Option<String>,
    /// A header of the requests to the collector, as NAME=VALUE, such as one with a key; may be given several times.
    #[arg(long, value_name = "NAME=VALUE", requires = "traces", value_parser = header)]
    pub(super) traces_header: Vec<(HeaderName, HeaderValue)>,
    /// A PEM file of authorities for the collector's certificate, instead of the system's.
    #[arg(long, value_name = "FILE", requires = "traces")]
    pub(super) traces_ca: Option<PathBuf>,
}

fn header(text: &str) -> Result<(HeaderName, HeaderValue), String> {
    let (name, value) = text
        .split_once('=')
        .ok_or("a header is NAME=VALUE, as in x-api-key=1234")?;
    let name = name.trim().parse::<HeaderName>();
    let name = name.map_err(|_| "the name of a header has letters, digits and hyphens")?;
    let mut value = HeaderValue::from_str(value.trim())
        .map_err(|_| "the value of a header has visible ASCII characters")?;
    value.set_sensitive(true);
    Ok((name, value))
}

/// Why spans cannot be sent.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TracesError {
    #[error("--traces: {0}")]
    Collector(#[from] FetchError),
    #[error("--traces: {0}")]
    Exporter(String),
}

/// Sends spans to a collector, from a thread of its own.
#[derive(Debug, Clone)]
pub(crate) struct Traces(SdkTracerProvider);

impl Traces {
    /// Starts to send spans, if there is a collector. The runtime carries the requests.
    ///
    /// # Errors
    ///
    /// If the collector's URL or certificates cannot be used.
    pub(crate) fn start(args: &TracesArgs, runtime: Handle) -> Result<Option<Self>, TracesError> {
        let Some(text) = &args.traces else {
            return Ok(None);
        };
        let url = collector(text)?;
        let client = CollectorClient {
            url: url.clone(),
            headers: args.traces_header.iter().cloned().collect(),
            fetcher: Fetcher::new(args.traces_ca.clone())?,
            runtime,
            is_failing: AtomicBool::new(false),
        };
        let exporter = opentelemetry_otlp::SpanExporter::builder()
            .with_http()
            .with_http_client(client)
            .with_endpoint(url.to_string())
            .with_timeout(limits::COLLECTOR_WAIT.as_duration())
            .build()
            .map_err(|error| TracesError::Exporter(error.to_string()))?;
        info!(collector = %url, "spans of traced messages are sent");
        Ok(Some(Self::sending(exporter)))
    }

    fn sending(exporter: impl SpanExporter + 'static) -> Self {
        let batches = BatchConfigBuilder::default()
            .with_max_queue_size(limits::SPANS_WAITING_MAX)
            .with_max_export_batch_size(limits::SPANS_IN_REQUEST_MAX)
            .with_scheduled_delay(limits::SPANS_INTERVAL.as_duration())
            .build();
        let processor = BatchSpanProcessor::builder(exporter)
            .with_batch_config(batches)
            .build();
        let resource = Resource::builder()
            .with_service_name("jitney")
            .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")));
        let provider = SdkTracerProvider::builder()
            .with_span_processor(processor)
            .with_resource(resource.build())
            .build();
        Self(provider)
    }

    /// Returns what makes spans of the events of one shard.
    pub(crate) fn of_shard(&self) -> ShardTraces {
        ShardTraces::new(self.0.tracer("jitney"))
    }

    /// Sends the last spans, for a bounded time. Blocks.
    pub(crate) fn stop(&self) {
        let wait = limits::SPANS_STOP_WAIT.as_duration();
        if let Err(error) = self.0.shutdown_with_timeout(wait) {
            warn!(%error, "the last spans were not sent to the collector");
        }
    }
}

/// Returns the URL for spans of a collector.
fn collector(text: &str) -> Result<Url, FetchError> {
    let url = Url::parse(text, PlainHttp::Anywhere)?;
    if url.path() != "/" {
        return Ok(url);
    }
    let base = text.trim_end_matches('/');
    Url::parse(&format!("{base}/v1/traces"), PlainHttp::Anywhere)
}

/// The client of the collector, which the exporter calls from a thread without a runtime.
#[derive(Debug)]
struct CollectorClient {
    url: Url,
    headers: HeaderMap,
    fetcher: Fetcher,
    runtime: Handle,
    /// The last request had no good answer.
    is_failing: AtomicBool,
}

/// The answer to a request, which comes from a task of the runtime.
type Answered<'a> = Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'a>>;

impl HttpClient for CollectorClient {
    fn send_bytes<'life0, 'async_trait>(
        &'life0 self,
        request: Request<Bytes>,
    ) -> Answered<'async_trait>
    where
        'life0: 'async_trait,
        Self: 'async_trait,
    {
        let (url, fetcher) = (self.url.clone(), self.fetcher.clone());
        let mut request = request.map(Full::new);
        request.headers_mut().extend(self.headers.clone());
        let exchange = async move {
            let sent = fetcher.send(&url, request, async |response| {
                let status = response.status();
                let mut answer = Response::new(fetch::body(&url, response).await?);
                *answer.status_mut() = status;
                Ok(answer)
            });
            tokio::time::timeout(limits::COLLECTOR_WAIT.as_duration(), sent).await
        };
        let task = self.runtime.spawn(exchange);
        Box::pin(async move {
            let error = match task.await? {
                Ok(Ok(answer)) => {
                    if answer.status().is_success() {
                        self.succeeded();
                    } else {
                        self.failed(&format!("it answered {}", answer.status()));
                    }
                    // The exporter knows which requests to send again.
                    return Ok(answer);
                }
                Ok(Err(error)) => error.to_string(),
                Err(_) => "it did not answer in time".to_owned(),
            };
            self.failed(&error);
            Err(error.into())
        })
    }
}

impl CollectorClient {
    /// Reports the first success after a failure.
    fn succeeded(&self) {
        if self.is_failing.swap(false, Ordering::Relaxed) {
            info!(collector = %self.url, "the collector takes spans again");
        }
    }

    /// Reports the first failure after a success.
    fn failed(&self, reason: &str) {
        if !self.is_failing.swap(true, Ordering::Relaxed) {
            warn!(collector = %self.url, reason, "the collector took no spans; it is tried again");
        }
    }
}

/// Makes spans of the events of one shard.
#[derive(Debug)]
pub(crate) struct ShardTraces {
    tracer: SdkTracer,
    /// Spans that end when a group is durable.
    waiting: BTreeMap<u64, Vec<Waiting>>,
    waiting_count: usize,
    /// When groups were passed to the committer for which spans wait.
    committed: BTreeMap<u64, SystemTime>,
    deliveries: Deliveries,
}

/// A span that ends when a group is durable.
#[derive(Debug)]
struct Waiting {
    span: Span,
    /// It has a span `store` in it.
    is_stored: bool,
}

/// Messages that were handed out, until they are settled.
#[derive(Debug, Default)]
struct Deliveries {
    by_token: BTreeMap<LockToken, Delivery>,
    /// The locks in the order of the deliveries; a lock that has gone may be among them.
    order: VecDeque<LockToken>,
}

#[derive(Debug)]
struct Delivery {
    begun: SystemTime,
    message: HandedOut,
    /// The span that the message was sent in; unknown until it leaves.
    context: Option<TraceContext>,
}

impl ShardTraces {
    fn new(tracer: SdkTracer) -> Self {
        Self {
            tracer,
            waiting: BTreeMap::new(),
            waiting_count: 0,
            committed: BTreeMap::new(),
            deliveries: Deliveries::default(),
        }
    }

    /// Takes an event of a turn of the shard that began at `begun`; groups up to `durable` are durable.
    pub(crate) fn happened(&mut self, event: TraceEvent, begun: SystemTime, durable: u64) {
        match event {
            TraceEvent::Accepted {
                context,
                group,
                entity,
                number,
            } => {
                let mut span = self.begin("accept", SpanKind::Server, &entity, &context, begun);
                span.set_attribute(KeyValue::new("messaging.operation.type", "receive"));
                span.set_attribute(sequence_number(number.0));
                let waiting = Waiting {
                    span,
                    is_stored: true,
                };
                self.wait(group, durable, waiting);
            }
            TraceEvent::HandedOut(message) => self.deliveries.add(*message),
            TraceEvent::Released { token, context } => self.released(token, context),
            TraceEvent::Settled {
                token,
                group,
                disposition,
            } => {
                let Some(delivery) = self.deliveries.by_token.remove(&token) else {
                    return;
                };
                let Some(context) = &delivery.context else {
                    return;
                };
                let entity = &delivery.message.entity;
                let mut span = self.begin("settle", SpanKind::Server, entity, context, begun);
                span.set_attribute(KeyValue::new("messaging.operation.type", "settle"));
                span.set_attribute(KeyValue::new(
                    "messaging.servicebus.disposition_status",
                    disposition,
                ));
                span.set_attribute(sequence_number(delivery.message.number.0));
                let waiting = Waiting {
                    span,
                    is_stored: false,
                };
                self.wait(group, durable, waiting);
            }
        }
    }

    fn released(&mut self, token: LockToken, context: Option<TraceContext>) {
        let Some(mut delivery) = self.deliveries.by_token.remove(&token) else {
            return;
        };
        let Some(context) = context else {
            return;
        };
        let message = &delivery.message;
        let (entity, begun) = (&message.entity, delivery.begun);
        let mut span = self.begin("deliver", SpanKind::Server, entity, &context, begun);
        let enqueued = message.enqueued.as_millis() / 1_000;
        span.set_attribute(KeyValue::new("messaging.operation.type", "send"));
        span.set_attribute(KeyValue::new(
            "messaging.servicebus.message.delivery_count",
            i64::from(message.deliveries),
        ));
        span.set_attribute(KeyValue::new(
            "messaging.servicebus.message.enqueued_time",
            enqueued,
        ));
        span.set_attribute(sequence_number(message.number.0));
        span.end_with_timestamp(system_time());
        if message.mode == ReceiveMode::PeekLock {
            delivery.context = Some(context);
            self.deliveries.by_token.insert(token, delivery);
        }
    }

    fn begin(
        &self,
        name: &'static str,
        kind: SpanKind,
        entity: &str,
        parent: &TraceContext,
        begun: SystemTime,
    ) -> Span {
        let parent = SpanContext::new(
            TraceId::from_bytes(parent.trace_id),
            SpanId::from_bytes(parent.span_id),
            TraceFlags::SAMPLED,
            true,
            TraceState::NONE,
        );
        let parent = Context::new().with_remote_span_context(parent);
        self.tracer
            .span_builder(format!("{name} {entity}"))
            .with_kind(kind)
            .with_start_time(begun)
            .with_attributes([
                KeyValue::new("messaging.system", "servicebus"),
                KeyValue::new("messaging.operation.name", name),
                KeyValue::new("messaging.destination.name", entity.to_owned()),
            ])
            .start_with_context(&self.tracer, &parent)
    }

    /// Ends a span when a group is durable, or at once if it is.
    fn wait(&mut self, group: u64, durable: u64, mut waiting: Waiting) {
        if group <= durable {
            waiting.span.end_with_timestamp(system_time());
        } else if self.waiting_count < limits::TRACED_GROUPS_SPANS_MAX {
            self.waiting_count += 1;
            let spans = self.waiting.entry(group).or_default();
            spans.push(waiting);
        }
    }

    /// A group was passed to the committer.
    pub(super) fn committed(&mut self, group: u64) {
        if self.waiting.contains_key(&group) {
            self.committed.insert(group, system_time());
        }
    }

    /// All groups up to `durable` are durable.
    pub(crate) fn durable(&mut self, durable: u64) {
        if self
            .waiting
            .first_key_value()
            .is_none_or(|(group, _)| durable < *group)
        {
            return;
        }
        let later = self.waiting.split_off(&(durable + 1));
        let done = std::mem::replace(&mut self.waiting, later);
        let now = system_time();
        for (group, spans) in done {
            let begun = self.committed.remove(&group);
            self.waiting_count -= spans.len();
            for mut waiting in spans {
                if let Some(begun) = begun.filter(|_| waiting.is_stored) {
                    self.store(&waiting.span, begun, now);
                }
                waiting.span.end_with_timestamp(now);
            }
        }
    }

    fn store(&self, accept: &Span, begun: SystemTime, end: SystemTime) {
        let within = Context::new().with_remote_span_context(accept.span_context().clone());
        let span = self
            .tracer
            .span_builder("store")
            .with_kind(SpanKind::Internal)
            .with_start_time(begun);
        let mut span = span.start_with_context(&self.tracer, &within);
        span.end_with_timestamp(end);
    }
}

impl Deliveries {
    fn add(&mut self, message: HandedOut) {
        let token = message.token;
        let delivery = Delivery {
            begun: system_time(),
            message,
            context: None,
        };
        self.by_token.insert(token, delivery);
        self.order.push_back(token);
        while limits::TRACED_DELIVERIES_MAX < self.order.len() {
            if let Some(oldest) = self.order.pop_front() {
                self.by_token.remove(&oldest);
            }
        }
    }
}

fn sequence_number(number: u64) -> KeyValue {
    // As the SDKs show it: a number of 64 bits with a sign.
    KeyValue::new("jitney.sequence_number", number.cast_signed())
}
