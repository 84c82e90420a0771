//! The report of a load, and the format of latencies in all reports.

use std::fmt;

use hdrhistogram::Histogram;
use serde_json::{Value, json};

use crate::output::Report;
use crate::process::Usage;

/// The report of a load. Latencies are in microseconds.
#[derive(Debug)]
pub(crate) struct LoadReport {
    /// Counted messages: received in all their copies; with `--send-only`, accepted.
    pub(crate) messages: f64,
    pub(crate) accepted: u64,
    pub(crate) received: u64,
    /// All messages received, including those before the counting started and after it ended.
    pub(crate) received_total: u64,
    /// Scheduled messages that were received before they were due.
    pub(crate) early: u64,
    pub(crate) seconds: f64,
    /// Latency from the due time of a message to its acceptance by the broker.
    pub(crate) acknowledged: Histogram<u64>,
    /// Latency from the due time of a message to its receipt.
    pub(crate) end_to_end: Histogram<u64>,
    /// The times of the first acceptance and of the first receipt, in seconds since 1970.
    pub(crate) first_accepted_at: Option<f64>,
    pub(crate) first_received_at: Option<f64>,
    pub(crate) broker: Option<BrokerUsage>,
}

/// The resource usage of the broker between two points in time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BrokerUsage {
    pub(crate) cpu_seconds: f64,
    pub(crate) at_end: Usage,
}

impl BrokerUsage {
    pub(crate) fn between(before: Usage, after: Usage) -> Self {
        Self {
            cpu_seconds: after.cpu_seconds - before.cpu_seconds,
            at_end: after,
        }
    }
}

impl LoadReport {
    /// Returns the throughput in messages per second.
    fn rate(&self) -> f64 {
        self.messages / self.seconds
    }
}

impl Report for LoadReport {
    fn json(&self) -> Value {
        let broker = self.broker.map(|used| {
            json!({
                "cpu_seconds": used.cpu_seconds,
                "cpu_seconds_per_million": used.cpu_seconds * 1e6 / self.messages,
                "resident_bytes": used.at_end.resident_bytes,
                "peak_bytes": used.at_end.peak_bytes,
            })
        });
        json!({
            "messages": self.messages,
            "accepted": self.accepted,
            "received": self.received,
            "received_total": self.received_total,
            "early": self.early,
            "seconds": self.seconds,
            "rate": self.rate(),
            "acknowledged": latency_json(&self.acknowledged),
            "end_to_end": latency_json(&self.end_to_end),
            "first_accepted_at": self.first_accepted_at,
            "first_received_at": self.first_received_at,
            "broker": broker,
        })
    }
}

/// Returns a latency distribution as JSON; null if it is empty.
pub(crate) fn latency_json(histogram: &Histogram<u64>) -> Value {
    if histogram.is_empty() {
        return Value::Null;
    }
    json!({
        "count": histogram.len(),
        "mean": histogram.mean(),
        "p50": histogram.value_at_quantile(0.5),
        "p99": histogram.value_at_quantile(0.99),
        "p999": histogram.value_at_quantile(0.999),
        "max": histogram.max(),
    })
}

/// Writes a latency distribution as a line of text.
pub(crate) fn write_latency(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    latency: &Histogram<u64>,
) -> fmt::Result {
    if latency.is_empty() {
        return Ok(());
    }
    let at = |quantile: f64| float(latency.value_at_quantile(quantile)) / 1e3;
    let (p50, p99, p999) = (at(0.5), at(0.99), at(0.999));
    writeln!(
        f,
        "{name:<21} p50 {p50:.2} ms, p99 {p99:.2} ms, p99.9 {p999:.2} ms"
    )
}

impl fmt::Display for LoadReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "messages              {:.0}", self.messages)?;
        writeln!(f, "seconds               {:.3}", self.seconds)?;
        write_latency(f, "latency to acceptance", &self.acknowledged)?;
        write_latency(f, "latency to receipt", &self.end_to_end)?;
        if self.early > 0 {
            writeln!(f, "received early        {}", self.early)?;
        }
        if let Some(used) = self.broker {
            let cpu = used.cpu_seconds * 1e6 / self.messages;
            let memory = float(used.at_end.resident_bytes) / 1024.0 / 1024.0;
            writeln!(f, "broker CPU time       {cpu:.2} s per million messages")?;
            writeln!(f, "broker memory         {memory:.0} MiB")?;
        }
        write!(f, "messages per second   {:.0}", self.rate())
    }
}

/// Returns an empty distribution of latencies from one microsecond to ten minutes, with three
/// significant digits.
pub(crate) fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 600_000_000, 3)
        .unwrap_or_else(|_| unreachable!("the bounds are valid"))
}

#[expect(clippy::cast_precision_loss, reason = "figures in reports")]
pub(crate) fn float(number: u64) -> f64 {
    number as f64
}
