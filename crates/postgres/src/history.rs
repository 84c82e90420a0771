//! The history of a namespace, which goes with it from one server to the next. It is bytes here: whoever has the namespace knows
//! their format.

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

/// Replaces the history of a namespace, if this server has the namespace and no later owner has kept one. No fence row is held:
/// a take-over does not wait for these bytes.
///
/// # Errors
///
/// The store's.
pub async fn keep(store: &Store, fence: &Fence, bytes: &[u8]) -> Result<(), StoreError> {
    let keep = "insert into history (namespace, epoch, bytes) select f.id, f.epoch, $4 from namespace f \
                where f.id = $1 and f.epoch = $2 and f.owner = $3 \
                on conflict (namespace) do update set epoch = excluded.epoch, bytes = excluded.bytes \
                where history.epoch <= excluded.epoch";
    let (epoch, owner) = fence.current();
    let params: Params<'_> = &[&fence.namespace(), &epoch, &owner, &bytes];
    let session = store.take().await?;
    session.execute(keep, params).await?;
    store.give_back(session);
    Ok(())
}
