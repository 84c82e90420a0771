//! Which messages of a page are meant, where their bytes decide: away from the runtime that HTTP, new connections and the beats
//! of a fleet share.
//!
//! ```text
//!  a page from the owner ─► the turn of its namespace ─► a place for the server ─► a share of steps on another thread ─► …
//! ```
//!
//! Promises: few threads search at once; a namespace has one of them at most, and namespaces take turns. A search ends when
//! its client leaves, within one share of steps and one message, or when it has taken all of its shares: then the answer says
//! where to continue.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::StatusCode;
use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::problem::Problem;
use crate::limits;
use jitney_base::ids::SequenceNumber;
use jitney_broker::namespace::{Selector, Undecided};
use jitney_gateway::operations::{MessageView, MessagesView};
use jitney_message::Message;
use jitney_rules::{Facts, Share};

/// The searches that are under way.
pub(crate) struct Searches {
    /// Threads that search.
    places: Arc<Semaphore>,
    namespaces: Arc<Mutex<BTreeMap<String, OfNamespace>>>,
}

/// The searches of one namespace.
struct OfNamespace {
    count: usize,
    /// Whose turn it is.
    turn: Arc<Semaphore>,
}

/// The search of one request.
pub(super) struct Search {
    selector: Arc<Selector>,
    share: Share,
    shares_left: usize,
    /// Without one, no bytes decide.
    begun: Option<Begun>,
}

/// A search that counts among those of its namespace.
struct Begun {
    namespace: String,
    turn: Arc<Semaphore>,
    places: Arc<Semaphore>,
    namespaces: Arc<Mutex<BTreeMap<String, OfNamespace>>>,
}

/// A message that is looked at.
pub(super) struct Candidate {
    pub(super) view: MessageView,
    pub(super) contents: Contents,
    verdict: Option<Result<bool, Undecided>>,
}

/// What is known of the bytes of a message.
pub(super) enum Contents {
    /// They were not wanted, or are no message.
    Unknown,
    /// They were wanted, and are not what was written.
    Damaged,
    Whole(Message),
}

impl Contents {
    /// Takes the bytes of which it is said whether they are what was written, if they were wanted.
    pub(super) fn of(bytes: Option<&Option<Bytes>>) -> Self {
        match bytes {
            None => Self::Unknown,
            Some(None) => Self::Damaged,
            Some(Some(bytes)) => Message::parse(bytes.clone()).map_or(Self::Unknown, Self::Whole),
        }
    }

    pub(super) fn message(&self) -> Option<&Message> {
        match self {
            Self::Whole(message) => Some(message),
            Self::Unknown | Self::Damaged => None,
        }
    }
}

/// The messages of a page that are meant.
pub(super) struct Chosen {
    pub(super) messages: Vec<Candidate>,
    /// Where to continue; `None` at the end.
    pub(super) next: Option<SequenceNumber>,
    /// Messages of which it is not known whether they are meant.
    pub(super) undecided: Vec<SequenceNumber>,
}

impl Searches {
    pub(crate) fn new() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self {
            places: Arc::new(Semaphore::new((cores / 2).max(1))),
            namespaces: Arc::default(),
        }
    }

    /// Begins a search in a namespace.
    pub(super) fn begin(&self, namespace: String, selector: Selector) -> Result<Search, Problem> {
        let begun = selector
            .needs_bytes()
            .then(|| self.count(namespace))
            .transpose()?;
        Ok(Search {
            selector: Arc::new(selector),
            share: Share::default(),
            shares_left: limits::SEARCH_SHARES,
            begun,
        })
    }

    fn count(&self, namespace: String) -> Result<Begun, Problem> {
        let mut all = lock(&self.namespaces);
        let turn = match all.entry(namespace.clone()) {
            Entry::Vacant(vacant) => {
                let turn = Arc::new(Semaphore::new(1));
                let count = 1;
                vacant.insert(OfNamespace {
                    count,
                    turn: Arc::clone(&turn),
                });
                turn
            }
            Entry::Occupied(mut entry) => {
                let of = entry.get_mut();
                if limits::SEARCHES_MAX <= of.count {
                    let text = format!(
                        "{} searches of the namespace are under way, which is the most: try again.",
                        of.count
                    );
                    return Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, "limit", text));
                }
                of.count += 1;
                Arc::clone(&of.turn)
            }
        };
        Ok(Begun {
            namespace,
            turn,
            places: Arc::clone(&self.places),
            namespaces: Arc::clone(&self.namespaces),
        })
    }
}

impl fmt::Debug for Searches {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Searches").finish_non_exhaustive()
    }
}

fn lock(
    namespaces: &Mutex<BTreeMap<String, OfNamespace>>,
) -> std::sync::MutexGuard<'_, BTreeMap<String, OfNamespace>> {
    namespaces.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Begun {
    fn drop(&mut self) {
        let mut all = lock(&self.namespaces);
        if let Some(of) = all.get_mut(&self.namespace) {
            of.count -= 1;
            if of.count == 0 {
                all.remove(&self.namespace);
            }
        }
    }
}

impl Search {
    pub(super) fn selector(&self) -> &Selector {
        &self.selector
    }

    /// Returns whether it may look at no further page.
    pub(super) const fn is_over(&self) -> bool {
        self.shares_left == 0
    }

    /// Returns the messages of a page that are meant.
    pub(super) async fn choose(
        &mut self,
        view: MessagesView,
        bodies: Vec<Option<Bytes>>,
    ) -> Result<Chosen, Problem> {
        let mut page = FoundPage::new(view, bodies);
        while let Some(begun) = &self.begun
            && page.looked < page.candidates.len()
            && !self.is_over()
        {
            // The thread has them until it is done, even if the client leaves before.
            let permits = begun.place().await?;
            let selector = Arc::clone(&self.selector);
            let mut share = std::mem::take(&mut self.share);
            let done = tokio::task::spawn_blocking(move || {
                page.look(&selector, &mut share);
                drop(permits);
                (page, share)
            });
            (page, self.share) = done.await.map_err(|_| Problem::stopping())?;
            if self.share.is_spent() {
                self.share = Share::default();
                self.shares_left -= 1;
            }
        }
        Ok(if self.begun.is_some() {
            page.selected()
        } else {
            page.whole()
        })
    }
}

impl Begun {
    /// Waits for the turn of the search in its namespace, and for a place in the server.
    async fn place(&self) -> Result<(OwnedSemaphorePermit, OwnedSemaphorePermit), Problem> {
        let turn = Arc::clone(&self.turn).acquire_owned().await;
        let turn = turn.map_err(|_| Problem::stopping())?;
        let place = Arc::clone(&self.places).acquire_owned().await;
        Ok((turn, place.map_err(|_| Problem::stopping())?))
    }
}

/// The messages of a page.
struct FoundPage {
    candidates: Vec<Candidate>,
    /// Those that were looked at.
    looked: usize,
    next: Option<SequenceNumber>,
}

impl FoundPage {
    fn new(view: MessagesView, bodies: Vec<Option<Bytes>>) -> Self {
        let bodies = bodies.iter().map(Some).chain(std::iter::repeat(None));
        let all = view.messages.into_iter().zip(bodies);
        let candidates = all.map(|(view, bytes)| Candidate {
            contents: Contents::of(bytes),
            view,
            verdict: None,
        });
        Self {
            candidates: candidates.collect(),
            looked: 0,
            next: view.next,
        }
    }

    /// Looks at messages until a share of steps is spent.
    fn look(&mut self, selector: &Selector, share: &mut Share) {
        for candidate in self.candidates.iter_mut().skip(self.looked) {
            if share.is_spent() {
                return;
            }
            candidate.verdict = Some(candidate.look(selector, share));
            self.looked += 1;
        }
    }

    /// Returns all messages: no bytes decide.
    fn whole(self) -> Chosen {
        Chosen {
            messages: self.candidates,
            next: self.next,
            undecided: Vec::new(),
        }
    }

    /// Returns the messages that are meant by their bytes. What was not looked at comes with the next page.
    fn selected(mut self) -> Chosen {
        let rest = self.candidates.split_off(self.looked);
        let first = rest.first().map(|first| first.view.inspected.number);
        let mut undecided = Vec::new();
        self.candidates.retain(|candidate| match candidate.verdict {
            Some(Ok(is_meant)) => is_meant,
            Some(Err(Undecided)) => {
                undecided.push(candidate.view.inspected.number);
                false
            }
            None => false,
        });
        Chosen {
            messages: self.candidates,
            next: first.or(self.next),
            undecided,
        }
    }
}

impl Candidate {
    fn look(&self, selector: &Selector, share: &mut Share) -> Result<bool, Undecided> {
        let Some(message) = self.contents.message() else {
            return Ok(false);
        };
        let stamps = &self.view.inspected.stamps;
        let facts = Facts {
            sequence_number: self.view.inspected.number,
            enqueued_time: stamps.enqueued_time,
            time_to_live: stamps.time_to_live,
            seed: 0,
        };
        selector.selects(message, stamps, &facts, share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitney_base::ids::BodyRef;
    use jitney_base::time::{Millis, Timestamp};
    use jitney_broker::namespace::Selection;
    use jitney_message::{Draft, MessageState, Stamps};
    use jitney_queue::Inspected;

    fn selector(json_path: &str) -> Selector {
        let selection = Selection {
            json_path: Some(json_path.to_owned()),
            ..Selection::default()
        };
        selection.compile().unwrap()
    }

    /// Messages with these bodies, numbered from 1 on.
    fn page(bodies: &[String]) -> (MessagesView, Vec<Option<Bytes>>) {
        let view = |number: u64| MessageView {
            inspected: Inspected {
                number: SequenceNumber(number),
                body: BodyRef {
                    position: 0,
                    length: 0,
                },
                stamps: Stamps {
                    sequence_number: number.cast_signed(),
                    enqueued_sequence_number: 0,
                    partition_id: None,
                    default_message_id: [0; 16],
                    keyed_by_id: false,
                    enqueued_time: Timestamp::EPOCH,
                    locked_until: None,
                    lock_token: None,
                    delivered: false,
                    delivery_count: 0,
                    acquired: false,
                    state: MessageState::Active,
                    time_to_live: Millis::MAX,
                    dead_letter_source: None,
                    amendments: None,
                },
                is_locked: false,
                holder: None,
                due: None,
                expires_at: None,
                message_session: None,
                hops: 0,
            },
            holder: None,
        };
        let encoded = bodies.iter().map(|body| {
            let mut composer = Draft::default().begin(Timestamp::EPOCH);
            composer.push(body.as_bytes());
            Some(Bytes::from(composer.finish().to_vec()))
        });
        let view = MessagesView {
            messages: (1..).take(bodies.len()).map(view).collect(),
            next: Some(SequenceNumber(1_000)),
            with_bytes: true,
        };
        (view, encoded.collect())
    }

    fn numbers(chosen: &Chosen) -> Vec<u64> {
        let all = chosen.messages.iter();
        all.map(|it| it.view.inspected.number.0).collect()
    }

    #[test]
    fn a_namespace_has_so_many_searches_at_once_and_others_have_theirs() {
        let searches = Searches::new();
        let begin = |namespace: &str| searches.begin(namespace.to_owned(), selector("$.a"));
        let held: Vec<_> = (0..limits::SEARCHES_MAX).map(|_| begin("a")).collect();
        assert!(held.iter().all(Result::is_ok));
        assert!(begin("a").is_err());
        assert!(begin("b").is_ok());
        let other = Selection::default().compile().unwrap();
        assert!(
            searches.begin("a".to_owned(), other).is_ok(),
            "no bytes decide"
        );
        drop(held);
        assert!(begin("a").is_ok());
        assert!(lock(&searches.namespaces).is_empty());
    }

    #[tokio::test]
    async fn a_search_ends_with_its_shares_and_says_where_to_continue() {
        let searches = Searches::new();
        let costly = format!("[{}0]", "0,".repeat(2_000));
        let mut bodies = vec![costly; 200];
        bodies[0] = r#"{"a": 1}"#.to_owned();
        let path = "$[?count($..*) == 1]";
        let mut search = searches.begin("a".to_owned(), selector(path)).unwrap();
        let (view, encoded) = page(&bodies);
        let chosen = search.choose(view, encoded).await.unwrap();
        assert!(search.is_over());
        assert_eq!(numbers(&chosen), [1]);
        let next = chosen.next.unwrap().0;
        assert!((100..200).contains(&next), "{next}");
        assert_eq!(chosen.undecided.len(), usize::try_from(next - 2).unwrap());
    }

    #[tokio::test]
    async fn a_search_that_is_given_up_leaves_its_place() {
        let searches = Searches::new();
        let costly = format!("[{}0]", "0,".repeat(2_000));
        for _ in 0..3 {
            let path = "$[?count($..*) == 1]";
            let mut search = searches.begin("a".to_owned(), selector(path)).unwrap();
            let (view, encoded) = page(&vec![costly.clone(); 200]);
            let looking = search.choose(view, encoded);
            let given_up = tokio::time::timeout(std::time::Duration::ZERO, looking).await;
            assert!(given_up.is_err());
        }
        let mut search = searches.begin("a".to_owned(), selector("$.a")).unwrap();
        let (view, encoded) = page(&[r#"{"a": 1}"#.to_owned(), "{}".to_owned()]);
        let chosen = search.choose(view, encoded).await.unwrap();
        assert_eq!((numbers(&chosen), chosen.undecided.len()), (vec![1], 0));
        assert_eq!(chosen.next, Some(SequenceNumber(1_000)));
    }
}
