//! The server: its version, its process and its shards, for its operator.

use axum::http::StatusCode;

use super::call::{Answer, Call};
use super::problem::Problem;
use crate::host::owner_message::ShardReport;
use crate::http::metrics::Usage;
use jitney_api::server::{Data, Process, Server, ShardShown};
use jitney_base::time::Timestamp;
use jitney_gateway::admin::time;

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
            ..shard_of(number, &report)
        }
    });
    #[expect(
        clippy::cast_possible_truncation,
        reason = "milliseconds since 1970 are far below 2^53"
    )]
    let started = Timestamp::from_millis((usage.started_at * 1000.0) as i64);
    let counted = server.metrics.memory().by_purpose().into_iter();
    let counted = counted.map(|(purpose, bytes)| (purpose.into(), bytes));
    let shown = Server {
        version: env!("CARGO_PKG_VERSION").into(),
        open: server.is_open,
        started_at: time(started),
        process: Process {
            cpu_seconds: usage.cpu_seconds,
            resident_bytes: usage.resident_bytes,
            threads: usage.threads,
            descriptors: usage.descriptors,
            descriptors_max: usage.descriptors_max,
            counted_bytes: counted.collect(),
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

fn shard_of(number: u32, report: &ShardReport) -> ShardShown {
    let statistics = &report.statistics;
    ShardShown {
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
