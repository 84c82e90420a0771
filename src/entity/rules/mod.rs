//! TEMPORARY skeleton until the rules branch is merged.
#![allow(missing_docs)]
use crate::entity::SequenceNumber;
use crate::message::{Amendments, Message};
use crate::time::Timestamp;
use std::collections::BTreeMap;
use std::sync::Arc;
#[derive(Debug, Clone)]
pub struct Rule {
    pub name: String,
    pub filter: Filter,
    pub action: Option<Action>,
    pub created_at: Timestamp,
}
#[derive(Debug, Clone)]
pub enum Filter {
    True,
    False,
    Sql(SqlFilter),
    Correlation(CorrelationFilter),
}
#[derive(Debug, Clone)]
pub struct SqlFilter(String);
impl SqlFilter {
    pub fn parse(t: &str) -> Result<Self, SqlError> {
        Ok(Self(t.into()))
    }
    pub fn text(&self) -> &str {
        &self.0
    }
}
#[derive(Debug, Clone)]
pub struct Action(String);
impl Action {
    pub fn parse(t: &str) -> Result<Self, SqlError> {
        Ok(Self(t.into()))
    }
    pub fn text(&self) -> &str {
        &self.0
    }
}
#[derive(Debug, Clone, thiserror::Error)]
#[error("sql")]
pub struct SqlError;
#[derive(Debug, Clone, Default)]
pub struct CorrelationFilter {
    pub correlation_id: Option<String>,
    pub message_id: Option<String>,
    pub to: Option<String>,
    pub reply_to: Option<String>,
    pub label: Option<String>,
    pub session_id: Option<String>,
    pub reply_to_session_id: Option<String>,
    pub content_type: Option<String>,
    pub properties: Vec<(String, Value)>,
}
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Double(f64),
    Text(String),
}
#[derive(Debug, Default)]
pub struct RuleSet(BTreeMap<u32, Vec<Rule>>);
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NameTaken;
#[derive(Debug)]
pub struct Match {
    pub subscription: u32,
    pub copies: Vec<Option<Arc<Amendments>>>,
    pub error: Option<String>,
}
#[derive(Debug, Clone, Copy)]
pub struct Facts {
    pub sequence_number: SequenceNumber,
    pub enqueued_time: Timestamp,
    pub seed: u64,
}
impl Rule {
    pub fn to_json(&self) -> Vec<u8> {
        self.name.clone().into_bytes()
    }
    pub fn from_json(j: &[u8]) -> Result<Self, SqlError> {
        Ok(Rule {
            name: String::from_utf8(j.to_vec()).map_err(|_| SqlError)?,
            filter: Filter::True,
            action: None,
            created_at: Timestamp::EPOCH,
        })
    }
}
impl RuleSet {
    pub fn add_subscription(&mut self, s: u32) {
        self.0.entry(s).or_default();
    }
    pub fn remove_subscription(&mut self, s: u32) {
        self.0.remove(&s);
    }
    pub fn subscriptions(&self) -> impl Iterator<Item = u32> {
        self.0.keys().copied()
    }
    pub fn rules(&self, s: u32) -> impl Iterator<Item = &Rule> {
        self.0.get(&s).into_iter().flatten()
    }
    pub fn insert(&mut self, s: u32, r: Rule) -> Result<(), NameTaken> {
        let v = self.0.entry(s).or_default();
        if v.iter().any(|o| o.name.eq_ignore_ascii_case(&r.name)) {
            return Err(NameTaken);
        }
        v.push(r);
        Ok(())
    }
    pub fn remove(&mut self, s: u32, name: &str) -> bool {
        let Some(v) = self.0.get_mut(&s) else {
            return false;
        };
        let n = v.len();
        v.retain(|o| !o.name.eq_ignore_ascii_case(name));
        v.len() < n
    }
    pub fn matches(&self, _m: &Message, _f: &Facts, out: &mut Vec<Match>) {
        for (&subscription, r) in &self.0 {
            if r.iter().any(|r| matches!(r.filter, Filter::True)) {
                out.push(Match {
                    subscription,
                    copies: vec![None],
                    error: None,
                })
            }
        }
    }
}

impl CorrelationFilter {
    pub fn checked(self) -> Result<Self, SqlError> {
        Ok(self)
    }
}
impl Value {
    pub fn read(_: &[u8]) -> Option<Self> {
        Some(Self::Null)
    }
    pub fn write(&self, out: &mut Vec<u8>) {
        out.push(0x40)
    }
}
