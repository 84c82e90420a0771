//! The server: its version, its process and its shards, for its operator.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use super::call::{Answer, Call};
use super::problem::Problem;
use crate::host::owner_message::ShardReport;
use crate::http::metrics::Usage;
use jitney_base::time::Timestamp;
use jitney_gateway::admin::time;

/// The server.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Server {
    version: &'static str,
    /// Any key is accepted (the development profile).
    open: bool,
    started_at: String,
    process: Process,
    /// Where messages are stored; absent if they are in memory only.
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Data>,
    shards: Vec<ShardShown>,
}

/// What the process takes of the machine.
#[derive(Debug, Serialize, ToSchema)]
struct Process {
    cpu_seconds: f64,
    resident_bytes: u64,
    threads: u64,
    descriptors: u64,
    descriptors_max: u64,
    /// Memory that is counted where it is kept, as in the metric `jitney_memory_bytes`.
    counted_bytes: BTreeMap<&'static str, usize>,
}

/// The data directory.
#[derive(Debug, Serialize, ToSchema)]
struct Data {
    directory: String,
    /// Bytes of its file system, and those that are free.
    #[serde(skip_serializing_if = "Option::is_none")]
    disk_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    free_bytes: Option<u64>,
}

/// A shard.
#[derive(Debug, Serialize, ToSchema)]
struct ShardShown {
    number: u32,
    namespaces: Vec<String>,
    /// Its owner and its disk make progress.
    healthy: bool,
    /// Messages are accepted: neither its disk nor the memory is full.
    accepts_messages: bool,
    /// Why they are not, and what helps.
    #[serde(skip_serializing_if = "Option::is_none")]
    shortage: Option<String>,
    connections: usize,
    log_bytes: u64,
    /// Bytes of the log that messages still use.
    live_bytes: u64,
    segments: usize,
    /// The newest group of records.
    groups: u64,
}

/// Describes the server. Only the operator may.
#[utoipa::path(get, path = "/api/v1/server", operation_id = "get_server", tag = "server",
    responses((status = 200, body = Server), (status = "4XX", body = Problem, content_type = "application/problem+json")))]
pub(super) async fn get(call: &Call<'_>) -> Answer {
    call.authorize_operator()?;
    let server = call.server;
    let usage = Usage::now();
    let reports = server.shards.reports(0).await;
    let stuck = server.shards.stuck();
    let namespaces = server.namespaces.all();
    let shards = reports.into_iter().map(|(number, report)| {
        let own = namespaces.iter().filter(|it| it.shard == Some(number));
        ShardShown {
            namespaces: own.map(|it| it.name.clone()).collect(),
            healthy: !stuck.contains(&number),
            ..ShardShown::of(number, &report)
        }
    });
    #[expect(
        clippy::cast_possible_truncation,
        reason = "milliseconds since 1970 are far below 2^53"
    )]
    let started = Timestamp::from_millis((usage.started_at * 1000.0) as i64);
    let shown = Server {
        version: env!("CARGO_PKG_VERSION"),
        open: server.is_open,
        started_at: time(started),
        process: Process {
            cpu_seconds: usage.cpu_seconds,
            resident_bytes: usage.resident_bytes,
            threads: usage.threads,
            descriptors: usage.descriptors,
            descriptors_max: usage.descriptors_max,
            counted_bytes: server.metrics.memory().by_purpose().into(),
        },
        data: server.namespaces.directory().map(|directory| {
            let space = rustix::fs::statvfs(directory).ok();
            let bytes = |blocks: u64, size: u64| blocks.saturating_mul(size);
            Data {
                directory: directory.display().to_string(),
                disk_bytes: space.as_ref().map(|it| bytes(it.f_blocks, it.f_frsize)),
                free_bytes: space.as_ref().map(|it| bytes(it.f_bavail, it.f_frsize)),
            }
        }),
        shards: shards.collect(),
    };
    call.answer(StatusCode::OK, &shown).await
}

impl ShardShown {
    fn of(number: u32, report: &ShardReport) -> Self {
        let statistics = &report.statistics;
        Self {
            number,
            namespaces: Vec::new(),
            healthy: true,
            accepts_messages: statistics.shortage.is_none(),
            shortage: statistics
                .shortage
                .map(|it| format!("{it}. {}", it.remedy())),
            connections: statistics.gateway.connections,
            log_bytes: statistics.log.bytes,
            live_bytes: statistics.log.live_bytes,
            segments: statistics.log.segments,
            groups: statistics.groups,
        }
    }
}
