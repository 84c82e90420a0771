//! A search over all queues of a namespace.

use serde::Deserialize;
use utoipa::IntoParams;

use super::call::{Answer, Call, from_number};
use super::entities::{limited, number};
use super::messages::Shown;
use super::page::Page;
use super::problem::Problem;
use super::searches::Search;
use super::selection::{compile, read_selection};
use crate::limits;
use jitney_api::messages::BodyShown;
use jitney_api::search::{Found, FoundMessage};
use jitney_api::selection::{MessageSelection, State};
use jitney_broker::access::Authority;
use jitney_gateway::operations::{ListQueues, QueuesPage};

/// What is searched for, and from where on. At least one of the conditions is given.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct SearchQuery {
    /// The address of the queue to begin at: `next_queue` of the answer before.
    from_queue: Option<String>,
    /// The first sequence number to look at in that queue: `next_number` of the answer before.
    #[serde(default)]
    from_number: u64,
    /// As many at most, 100 if it is not given.
    #[param(minimum = 1, maximum = 100)]
    #[serde(default, deserialize_with = "number")]
    limit: Option<usize>,
    /// A sequence number. Queues number their messages by themselves, so several messages may have it.
    sequence_number: Option<u64>,
    /// The message id.
    message_id: Option<String>,
    /// The correlation id.
    correlation_id: Option<String>,
    /// The message session.
    session_id: Option<String>,
    /// States; none means all.
    #[serde(default)]
    state: Vec<State>,
    /// A SQL filter over properties, as rules have.
    filter: Option<String>,
    /// A text that the body contains.
    text: Option<String>,
    /// A `JSONPath` that finds something in the body.
    json_path: Option<String>,
    /// The namespace, instead of that of the host.
    #[serde(rename = "namespace")]
    _namespace: Option<String>,
}

/// Where further queues are.
#[derive(Debug)]
enum Further {
    /// There are none.
    Nowhere,
    /// From the first of the namespace on.
    All,
    /// From this address on.
    From(String),
}

/// Where a search is.
#[derive(Debug)]
struct Position {
    /// The queues to look at next, the first last.
    queues: Vec<String>,
    /// Where further queues are to be listed.
    further: Further,
    /// The first number to look at in the next queue.
    number: u64,
}

/// Searches all queues of the namespace, dead letters among them.
#[utoipa::path(get, path = "/api/v1/messages", operation_id = "search_messages", tag = "messages", params(SearchQuery),
    responses((status = 200, body = Found), (status = "4XX", body = Problem, content_type = "application/problem+json")))]
pub(super) async fn search(call: &Call<'_>) -> Answer {
    let query: SearchQuery = call.query()?;
    let authority = call.authorize("").await?;
    let limit = limited(query.limit)?;
    let number = query.sequence_number;
    let number = number
        .map(|number| from_number("sequence_number", number))
        .transpose()?;
    let mut position = Position {
        queues: Vec::new(),
        further: query.from_queue.map_or(Further::All, Further::From),
        number: query.from_number,
    };
    let selection = MessageSelection {
        states: query.state,
        numbers: number.into_iter().map(|number| number.0).collect(),
        session_id: query.session_id,
        message_id: query.message_id,
        correlation_id: query.correlation_id,
        filter: query.filter,
        text: query.text,
        json_path: query.json_path,
        ..MessageSelection::default()
    };
    if selection == MessageSelection::default() {
        return Err(Problem::bad_request(
            "The search has no condition: message_id, correlation_id, sequence_number, session_id, state, filter, text or \
             json_path is needed.",
        ));
    }
    let selector = compile(&read_selection(selection, "")?, "")?;
    let mut search = call.search(selector)?;
    let mut page = Page::begin(call, "messages").await?;
    let mut undecided = 0;
    for _ in 0..limits::SEARCHED_PAGES {
        let is_done = limit <= page.items() || page.is_full() || search.is_over();
        if is_done || !position.find_queue(call, &authority).await? {
            break;
        }
        let most = limit - page.items();
        let looked = position.look(call, &authority, &mut search, most, &mut page);
        undecided += looked.await?;
    }
    let (next_queue, next_number) = position.next();
    page.respond(&Found {
        messages: Vec::new(),
        next_queue,
        next_number,
        undecided,
    })
}

impl Position {
    /// Finds the next queue, if none is known; `false` if there is none.
    async fn find_queue(
        &mut self,
        call: &Call<'_>,
        authority: &Authority,
    ) -> Result<bool, Problem> {
        while self.queues.is_empty() {
            let from = match std::mem::replace(&mut self.further, Further::Nowhere) {
                Further::Nowhere => return Ok(false),
                Further::All => None,
                Further::From(address) => Some(address),
            };
            let asked = from.clone();
            let list = ListQueues { from };
            let QueuesPage {
                addresses: found,
                next,
            } = call.request(authority.clone(), list).await?;
            // The number is one of the queue that was asked for: that may be gone, or empty.
            if found.first() != asked.as_ref() {
                self.number = 0;
            }
            self.queues = found;
            self.queues.reverse();
            self.further = next.map_or(Further::Nowhere, Further::From);
        }
        Ok(true)
    }

    /// Looks at one page of the next queue, and adds what is found to the answer. Returns of how many messages it is not known
    /// whether they are meant.
    async fn look(
        &mut self,
        call: &Call<'_>,
        authority: &Authority,
        search: &mut Search,
        most: usize,
        page: &mut Page,
    ) -> Result<u64, Problem> {
        let Some(queue) = self.queues.last().cloned() else {
            return Ok(0);
        };
        let from = from_number("from_number", self.number)?;
        let conditions = &search.selector().conditions;
        let looked = call
            .inspect(authority, &queue, from, conditions, most)
            .await;
        let (view, bodies) = match looked {
            // The entity was deleted meanwhile.
            Err(problem) if problem.is_not_found() => {
                self.queues.pop();
                self.number = 0;
                return Ok(0);
            }
            other => other?,
        };
        let chosen = search.choose(view, bodies).await?;
        let shown = Shown {
            body: BodyShown::Preview,
            encoded: false,
        };
        let found = |message| FoundMessage {
            queue: queue.clone(),
            message,
        };
        let filled = shown.fill(page, chosen, found)?;
        match filled.next {
            Some(next) => self.number = next,
            None => {
                self.queues.pop();
                self.number = 0;
            }
        }
        Ok(filled.undecided)
    }

    /// Returns where to continue.
    fn next(self) -> (Option<String>, Option<u64>) {
        match (self.queues.last(), self.further) {
            (Some(queue), _) => (Some(queue.clone()), Some(self.number)),
            (None, Further::From(address)) => (Some(address), Some(self.number)),
            (None, Further::All | Further::Nowhere) => (None, None),
        }
    }
}
