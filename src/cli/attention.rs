//! `jitney attention`: what needs attention in a namespace.

use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};

use super::error::CommandError;
use super::path::encoded;
use super::shell::{Output, Shell};
use super::table::{self, to_json};
use super::words;
use crate::system::print;
use jitney_api::attention::{Attention, AttentionItem, Urgency};

/// Show what needs attention.
#[derive(Debug, Args)]
pub(super) struct AttentionArgs {
    /// A queue, a topic or a subscription. The default is the whole namespace.
    entity: Option<String>,
}

impl Shell {
    /// Shows what needs attention; the exit code says whether an alarm is among it.
    pub(super) async fn attention(&self, args: &AttentionArgs) -> Result<ExitCode, CommandError> {
        let path = match &args.entity {
            Some(entity) => format!("attention?entity={}", encoded(entity)),
            None => "attention".to_owned(),
        };
        let found: Attention = self.get(&path).await?;
        match self.output {
            Output::Json => print::json(&to_json(&found)),
            Output::Table => {
                let rows: Vec<Value> = found.items.iter().map(row).collect();
                print::line(table::ATTENTION.render(&rows));
                if found.left_out != 0 {
                    let more = words::number(words::whole(found.left_out));
                    print::line(format_args!(
                        "{more} more are left out; jitney attention ENTITY shows those of one entity."
                    ));
                }
            }
        }
        let is_alarm = |item: &AttentionItem| item.urgency == Urgency::Alarm;
        Ok(if found.items.iter().any(is_alarm) {
            ExitCode::FAILURE
        } else {
            ExitCode::SUCCESS
        })
    }
}

fn row(item: &AttentionItem) -> Value {
    let mut row = to_json(item);
    if let Some(fields) = row.as_object_mut() {
        fields.insert("sentence".to_owned(), item.text.as_str().into());
        fields.entry("since").or_insert_with(|| json!("not known"));
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitney_api::attention::AttentionKind;

    #[test]
    fn a_sentence_is_whole_and_an_unknown_beginning_is_said() {
        let text = "x".repeat(200);
        let item = AttentionItem {
            id: "no_receiver::orders".to_owned(),
            kind: AttentionKind::NoReceiver,
            urgency: Urgency::Notice,
            entity: Some("orders".to_owned()),
            connection: None,
            link: None,
            client: None,
            job: None,
            count: 3,
            since: None,
            text: text.clone(),
        };
        let drawn = table::ATTENTION.render(&[row(&item)]);
        assert!(drawn.ends_with(&text), "{drawn}");
        for wanted in ["no_receiver", "notice", "not known", "orders"] {
            assert!(drawn.contains(wanted), "{wanted}: {drawn}");
        }
        assert!(!drawn.contains("CONNECTION"), "{drawn}");
    }
}
