//! The history of a namespace, which goes with it from one server to the next. It is bytes here: `src/host/history/format.rs` has
//! their format.

use std::sync::Arc;

use super::StoreError;
use super::connect::{Params, Store};
use super::fence::Fence;

/// Returns what a server has kept of the history of a namespace; nothing if none has, or if it is longer than `bytes_max`.
///
/// # Errors
///
/// The store's.
pub async fn read(
    store: &Store,
    namespace: i64,
    bytes_max: usize,
) -> Result<Option<Vec<u8>>, StoreError> {
    let query =
        "select bytes from history where namespace = $1 and octet_length(bytes)::bigint <= $2";
    let most = i64::try_from(bytes_max).unwrap_or(i64::MAX);
    let session = store.take().await?;
    let row = session.optional(query, &[&namespace, &most]).await?;
    store.give_back(session);
    row.map(|row| store.get(&row, 0)).transpose()
}

/// Replaces the histories of namespaces: of those that this server has, where no later owner has kept one. No fence row is held:
/// a take-over does not wait for these bytes.
///
/// # Errors
///
/// The store's.
pub async fn keep(store: &Store, histories: &[(Arc<Fence>, Vec<u8>)]) -> Result<(), StoreError> {
    if histories.is_empty() {
        return Ok(());
    }
    let keep = "insert into history (namespace, epoch, bytes) select f.id, f.epoch, w.bytes \
                from unnest($1::bigint[], $2::bigint[], $3::uuid[], $4::bytea[]) as w (id, epoch, owner, bytes) \
                join namespace f on f.id = w.id and f.epoch = w.epoch and f.owner = w.owner \
                on conflict (namespace) do update set epoch = excluded.epoch, bytes = excluded.bytes \
                where history.epoch <= excluded.epoch";
    let (mut ids, mut epochs, mut owners, mut all) = (vec![], vec![], vec![], vec![]);
    for (fence, bytes) in histories {
        let (epoch, owner) = fence.current();
        ids.push(fence.namespace());
        epochs.push(epoch);
        owners.push(owner);
        all.push(&bytes[..]);
    }
    let params: Params<'_> = &[&ids, &epochs, &owners, &all];
    let session = store.take().await?;
    session.execute(keep, params).await?;
    store.give_back(session);
    Ok(())
}
