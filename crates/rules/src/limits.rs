//! Bounds of this crate on resources and times, each with its unit and its reason. Relations between bounds are asserted at the end.

/// Bytes of a value in a rule, encoded in AMQP, that are kept as they were given: a time with an
/// offset has some 40, and only texts of another type than string have more. These are returned as
/// strings.
pub const GIVEN_BYTES_MAX: usize = 64;
/// Length of a message id, session id or partition key, characters.
pub const MESSAGE_ID_LENGTH_MAX: usize = 128;
/// Bytes of a message's changed application-properties: the service's limit for all properties.
pub const AMENDMENTS_BYTES_MAX: usize = 64 * 1024;
/// Length of the text of a SQL filter or action, characters: the service's limit.
pub const SQL_LENGTH_MAX: usize = 1_024;
/// Statements of one action: the service's limit.
pub const SQL_STATEMENTS_MAX: usize = 32;
/// Nesting of a SQL expression: parentheses, signs and negations. The parser is recursive.
pub const SQL_DEPTH_MAX: usize = 64;
/// Characters of a LIKE pattern: it may come from a message, and is tried at each position of a
/// text.
pub const LIKE_PATTERN_MAX: usize = 1_024;
/// Steps that one filter, or one action, takes for one message before it is given up: some 2 ms. A
/// step is about 10 ns: a part of an expression, a property that is passed, eight bytes searched.
/// As many LIKEs as a filter has room for can search 30 KiB each.
pub const FILTER_STEPS_MAX: u64 = 250_000;
/// Steps that all filters of a topic take for one message: some 100 ms, in shares. Each
/// subscription has an equal part of the remaining steps, so that one with costly rules spends its
/// own. As many SQL filters as a topic may have can search 30 KiB each.
pub const FILTERS_STEPS_MAX: u64 = 10_000_000;
/// Steps that all actions of a topic take for one message, divided as those of the filters; they
/// are taken at once, with the copies. A step makes eight bytes, so that the copies of a message
/// come to 8 MiB at most.
pub const ACTIONS_STEPS_MAX: u64 = 1_000_000;
/// Steps that filters and selectors take in one turn of the broker, some 5 ms; an evaluation that
/// needs more continues in a later turn.
pub const SHARE_STEPS: u64 = 500_000;
/// Bytes of a text that an expression makes or that LIKE goes through.
pub const SQL_TEXT_BYTES_MAX: usize = 64 * 1024;
/// SQL filters of all subscriptions of one topic, each looked at in every publish: the service's
/// limit.
pub const SQL_RULES_MAX: usize = 2_000;
/// Other rules of all subscriptions of one topic: the service's limit for correlation filters.
pub const CORRELATION_RULES_MAX: usize = 100_000;
/// Bytes of one rule in its stored form: names, texts, values and parameters. More than the service
/// allows all properties of a message, which a correlation filter is compared with.
pub const RULE_BYTES_MAX: usize = 64 * 1024;
/// Characters of the value of a property that are shown where a rule is tested: many conditions may read one.
pub const EXPLAINED_VALUE_LENGTH: usize = 256;
/// Characters of a SQL text that an error quotes on each side of a fault.
pub const SQL_EXCERPT_MAX: usize = 24;

const _: () = assert!(FILTER_STEPS_MAX <= SHARE_STEPS && FILTER_STEPS_MAX <= FILTERS_STEPS_MAX);
const _: () = assert!(ACTIONS_STEPS_MAX * 8 <= 8 * 1024 * 1024);
