//! Lists of the API that come in pages: which entries a page has, and where the next one begins.

use serde::de::DeserializeOwned;

use jitney_api::connections::{Connection, Connections};
use jitney_api::entities::{Entities, Entity};
use jitney_api::jobs::{Job, Jobs};
use jitney_api::receives::{Receive, Receives};
use jitney_api::rules::{Rule, Rules};
use jitney_api::sessions::{Session, Sessions};

/// A page of a list.
pub(super) trait ListPage: DeserializeOwned {
    type Entry;
    /// The parameter of the query that says where a page begins.
    const FROM: &'static str;

    fn into_entries(self) -> Vec<Self::Entry>;

    /// Returns where the next page begins, if there is one.
    fn next(&self) -> Option<String>;
}

macro_rules! pages {
    ($($page:ident has $list:ident of $entry:ident, and $next:ident is $from:literal;)*) => {
        $(impl ListPage for $page {
            type Entry = $entry;
            const FROM: &'static str = $from;

            fn into_entries(self) -> Vec<$entry> {
                self.$list
            }

            fn next(&self) -> Option<String> {
                self.$next.as_ref().map(ToString::to_string)
            }
        })*
    };
}

pages! {
    Connections has connections of Connection, and next is "from";
    Entities has entities of Entity, and next_skip is "skip";
    Jobs has jobs of Job, and next_before is "before";
    Receives has receives of Receive, and next_after is "after";
    Rules has rules of Rule, and next_skip is "skip";
    Sessions has sessions of Session, and next_after is "after";
}
