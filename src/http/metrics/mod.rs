//! `GET /metrics`: the text formats of OpenMetrics and Prometheus.
//!
//! Counters are plain numbers where things are counted; they become metrics when they are asked for. Every metric is in
//! [`families`].

mod families;
mod process;
mod scrape;
#[cfg(test)]
mod tests;

use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use clap::Args;
use tokio::sync::Mutex;

use super::answers::Answers;
use crate::host::shards::Shards;
use crate::net::unauthenticated::UnauthenticatedBytes;
use crate::store::Fleet;
use families::Kind;
use jitney_base::memory::Memory;
pub(crate) use process::Usage;
use scrape::{FleetScrape, Scrape, ShardScrape};

/// What metrics tell.
#[derive(Debug, Clone, Args)]
pub(crate) struct MetricsArgs {
    /// An address for /metrics and /health alone, over HTTP, without a key: for a network that only the monitoring reaches.
    /// Elsewhere /metrics needs the operator's key.
    #[arg(long, value_name = "ADDR", value_parser = crate::net::listen_address::parse)]
    pub(crate) metrics: Vec<std::net::SocketAddr>,
    /// How many entities of a shard have metrics of their own; the others are added up for each namespace, with the entity
    /// `*`. 0 leaves only these sums.
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    pub(super) metrics_entities: usize,
}

/// Makes metrics of what the shards and the process have counted.
#[derive(Debug)]
pub(crate) struct Metrics {
    entities: usize,
    memory: Memory,
    answers: Answers,
    unauthenticated: UnauthenticatedBytes,
    /// A report of all entities takes some megabytes: one is made at a time.
    one_at_a_time: Mutex<()>,
}

const OPENMETRICS: &str = "application/openmetrics-text";

impl Metrics {
    pub(crate) fn new(
        args: &MetricsArgs,
        memory: Memory,
        answers: Answers,
        unauthenticated: UnauthenticatedBytes,
    ) -> Self {
        Self {
            entities: args.metrics_entities,
            memory,
            answers,
            unauthenticated,
            one_at_a_time: Mutex::default(),
        }
    }

    /// Returns the memory that is counted where it is kept.
    pub(crate) const fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Answers a request, in the format that its `Accept` asks for: OpenMetrics, or else Prometheus's own.
    pub(crate) async fn answer(
        &self,
        shards: &Shards,
        fleet: Option<&Fleet>,
        headers: &HeaderMap,
    ) -> Response {
        let _turn = self.one_at_a_time.lock().await;
        let reports = shards.reports(self.entities).await;
        let stuck = shards.stuck();
        let shards = reports.into_iter().map(|(number, report)| ShardScrape {
            name: number.to_string(),
            is_healthy: !stuck.contains(&number),
            report,
        });
        let scrape = Scrape {
            process: Usage::now(),
            memory: self.memory.by_purpose(),
            answers: (self.answers.bytes(), self.answers.refused()),
            unauthenticated: (self.unauthenticated.held(), self.unauthenticated.closed()),
            shards: shards.collect(),
            fleet: fleet.map(|fleet| FleetScrape {
                server: fleet.server().to_owned(),
                view: fleet.view(),
                health: fleet.health(),
            }),
        };
        let accept = headers.get(header::ACCEPT);
        let accept = accept
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default();
        let Ok(text) = scrape.openmetrics() else {
            return StatusCode::INTERNAL_SERVER_ERROR.into_response();
        };
        if accept.contains(OPENMETRICS) {
            let kind = format!("{OPENMETRICS}; version=1.0.0; charset=utf-8");
            return ([(header::CONTENT_TYPE, kind)], text).into_response();
        }
        let kind = "text/plain; version=0.0.4; charset=utf-8";
        ([(header::CONTENT_TYPE, kind)], prometheus(&text)).into_response()
    }
}

/// Returns Prometheus's text format 0.0.4 of OpenMetrics text: there the name of a counter has its suffix in the
/// lines that describe it, and no line marks the end.
fn prometheus(openmetrics: &str) -> String {
    let counters: Vec<&str> = families::ALL
        .iter()
        .filter(|family| family.kind == Kind::Counter)
        .map(|family| family.name)
        .collect();
    let mut text = String::with_capacity(openmetrics.len());
    for line in openmetrics.lines() {
        let mut words = line.splitn(4, ' ');
        let (first, second) = (words.next(), words.next());
        let described = match (first, second) {
            (Some("#"), Some("EOF")) => continue,
            (Some("#"), Some(what @ ("HELP" | "TYPE"))) => words
                .next()
                .filter(|name| counters.contains(name))
                .map(|name| (what, name)),
            _ => None,
        };
        if let Some((what, name)) = described {
            let rest = words.next().unwrap_or_default();
            text.extend(["# ", what, " ", name, "_total ", rest, "\n"]);
        } else {
            text.extend([line, "\n"]);
        }
    }
    text
}
