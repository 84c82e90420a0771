//! Examples of `protocol.md` §12, and laws.

use super::*;

#[test]
fn a_rule_that_is_kept_is_read_again() {
    let rule = Rule {
        name: "cheap".to_owned(),
        filter: Filter::Sql(SqlFilter::parse("price < 10").unwrap()),
        action: Some(Action::parse("SET price = 0; REMOVE note").unwrap()),
        created_at: Timestamp::from_millis(5),
    };
    assert_eq!(Rule::from_json(&rule.to_json()).unwrap(), rule);
}
