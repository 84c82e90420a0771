//! The namespaces of the server, and what a client may do.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::authorization_rules::RightName;

/// A namespace.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Namespace {
    /// Its name, in lower case: the first label of the host names that it answers to.
    pub name: String,
    /// The shard that it is in; absent if another server of the fleet serves it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shard: Option<u32>,
    /// It answers to every host that is no other's.
    pub first: bool,
    /// The configuration names it: it cannot be dropped here.
    pub configured: bool,
}

/// The namespaces of the server.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct NamespaceList {
    pub namespaces: Vec<Namespace>,
}

/// A client, and what it may do.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Access {
    /// As the audit log names it: `operator`, `key NAME`, `identity SUBJECT`, or `anyone` if no credentials are verified.
    pub actor: String,
    /// It may do everything, in every namespace.
    pub operator: bool,
    /// What it may do in the whole namespace.
    pub rights: Vec<RightName>,
    /// The namespace, in lower case.
    pub namespace: String,
    /// All namespaces, for the operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespaces: Option<Vec<String>>,
    /// The server shares its namespaces with others, in a store.
    pub fleet: bool,
    /// Any key is accepted (the development profile).
    pub open: bool,
    /// The version of the broker.
    pub version: Cow<'static, str>,
}
