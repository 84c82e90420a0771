//! What a load took, for people and for programs.

use std::fmt;

use hdrhistogram::Histogram;
use serde_json::{Value, json};

use super::process::Usage;

/// What a load took. Latencies are in microseconds.
#[derive(Debug)]
pub(super) struct Report {
    /// Messages that count: received by all who were to receive them, or accepted if nobody was.
    pub(super) messages: f64,
    pub(super) accepted: u64,
    pub(super) received: u64,
    /// Received in all: before counting began and after it ended, too.
    pub(super) received_in_all: u64,
    /// Received before they were due, of scheduled ones.
    pub(super) early: u64,
    pub(super) seconds: f64,
    /// From due to accepted.
    pub(super) acknowledged: Histogram<u64>,
    /// From due to received.
    pub(super) end_to_end: Histogram<u64>,
    /// When the first message was accepted and when one was received, seconds since 1970.
    pub(super) first_accepted_at: Option<f64>,
    pub(super) first_received_at: Option<f64>,
    pub(super) usage: Option<Used>,
}

/// What a broker took meanwhile.
#[derive(Debug, Clone, Copy)]
pub(super) struct Used {
    pub(super) cpu_seconds: f64,
    pub(super) at_end: Usage,
}

impl Used {
    pub(super) fn between(before: Usage, after: Usage) -> Self {
        Self {
            cpu_seconds: after.cpu_seconds - before.cpu_seconds,
            at_end: after,
        }
    }
}

impl Report {
    /// Messages a second.
    fn rate(&self) -> f64 {
        self.messages / self.seconds
    }

    /// Returns the report for programs.
    pub(super) fn json(&self) -> Value {
        let broker = self.usage.map(|used| {
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
            "received_in_all": self.received_in_all,
            "early": self.early,
            "seconds": self.seconds,
            "rate": self.rate(),
            "acknowledged": latency(&self.acknowledged),
            "end_to_end": latency(&self.end_to_end),
            "first_accepted_at": self.first_accepted_at,
            "first_received_at": self.first_received_at,
            "broker": broker,
        })
    }
}

/// Returns latencies for programs; null if there are none.
pub(super) fn latency(histogram: &Histogram<u64>) -> Value {
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

/// Writes latencies for people.
pub(super) fn write_latency(
    f: &mut fmt::Formatter<'_>,
    what: &str,
    latency: &Histogram<u64>,
) -> fmt::Result {
    if latency.is_empty() {
        return Ok(());
    }
    let at = |quantile: f64| float(latency.value_at_quantile(quantile)) / 1e3;
    let (p50, p99, p999) = (at(0.5), at(0.99), at(0.999));
    writeln!(
        f,
        "{what:<19} p50 {p50:.2} ms, p99 {p99:.2} ms, p99.9 {p999:.2} ms"
    )
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "messages            {:.0}", self.messages)?;
        writeln!(f, "seconds             {:.3}", self.seconds)?;
        write_latency(f, "sent to accepted", &self.acknowledged)?;
        write_latency(f, "sent to received", &self.end_to_end)?;
        if self.early > 0 {
            writeln!(f, "before they were due {}", self.early)?;
        }
        if let Some(used) = self.usage {
            let cpu = used.cpu_seconds * 1e6 / self.messages;
            let memory = float(used.at_end.resident_bytes) / 1024.0 / 1024.0;
            writeln!(f, "broker              {cpu:.2} CPU s per million messages")?;
            writeln!(f, "broker's memory     {memory:.0} MiB")?;
        }
        write!(f, "messages a second   {:.0}", self.rate())
    }
}

/// One microsecond to ten minutes, to three figures.
pub(super) fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 600_000_000, 3)
        .unwrap_or_else(|_| unreachable!("the bounds are valid"))
}

#[expect(clippy::cast_precision_loss, reason = "figures for people")]
pub(super) fn float(number: u64) -> f64 {
    number as f64
}
