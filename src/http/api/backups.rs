//! Backups of the server.

use std::path::PathBuf;
use std::sync::Arc;

use axum::body::Body;
use axum::http::StatusCode;

use super::call::{Answer, Call};
use super::problem::Problem;
use crate::host::backup::{BackupError, NewBackup};
use jitney_api::backups::{BackupMade, BackupRequest, ShardBackup};
use jitney_gateway::operations::Note;

/// Makes a backup of the data directory, and answers when it is durable. Only the operator may. A server whose namespaces are in
/// a store refuses it: the database is backed up.
#[utoipa::path(post, path = "/api/v1/server/backups", operation_id = "create_backup", tag = "server",
    request_body = BackupRequest,
    responses((status = 200, body = BackupMade), (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", body = Problem, content_type = "application/problem+json")))]
pub(super) async fn make(call: &Call<'_>, body: Body) -> Answer {
    let authority = call.authorize_operator()?;
    let request: BackupRequest = call.json(body).await?;
    let note = Note::Backup(request.directory.clone());
    call.request(authority, note).await?;
    let (shards, now) = (Arc::clone(&call.server.shards), call.server.clock.now());
    let target = PathBuf::from(&request.directory);
    let NewBackup {
        manifest,
        copied,
        copied_bytes,
    } = call.server.backups.make(shards, target, now).await?;
    let shards = manifest.shards.iter().map(|it| ShardBackup {
        shard: it.shard,
        group: it.group,
    });
    let made = BackupMade {
        directory: request.directory,
        shards: shards.collect(),
        files: manifest.files.len(),
        bytes: manifest.files.iter().map(|file| file.bytes).sum(),
        copied_files: copied,
        copied_bytes,
        made_at: manifest.made_at,
    };
    call.answer(StatusCode::OK, &made).await
}

impl From<BackupError> for Problem {
    fn from(error: BackupError) -> Self {
        let (status, reason) = match &error {
            BackupError::Argument(_) => (StatusCode::BAD_REQUEST, "argument"),
            BackupError::Conflict(_) => (StatusCode::CONFLICT, "in_use"),
            BackupError::Full(_) => (StatusCode::INSUFFICIENT_STORAGE, "full"),
            BackupError::Io(_) | BackupError::Storage(_) | BackupError::Ended(_) => {
                (StatusCode::INTERNAL_SERVER_ERROR, "internal")
            }
        };
        Self::new(status, reason, error.to_string())
    }
}
