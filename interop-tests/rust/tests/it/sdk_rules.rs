//! Rules, in the file and by the SDK's rule manager.

use azservicebus::{
    ServiceBusMessage,
    administration::{CorrelationRuleFilter, SqlRuleAction, SqlRuleFilter},
};
use jitney_interop_rust::{Sdk, at, bodies, dead, failure, in_session, receive_in, scenario, with};

scenario!(s161_a_subscription_without_a_rule_takes_all, sdk, {
    sdk.send("s161", &["1", "2"]).await?;
    assert_eq!(sdk.here(&at("s161", "all")).await?, ["1", "2"]);
    assert_eq!(sdk.here(&at("s161", "every")).await?, ["1", "2"]);
    assert!(sdk.here(&at("s161", "none")).await?.is_empty());
});

/// A message of S162's table, with where it arrives.
type Row = (ServiceBusMessage, &'static str);

fn table() -> Vec<Row> {
    let mut rows: Vec<Row> = vec![
        (
            with!("1", "color": "red", "size": 1_i64),
            "eq in like exists or math sys user keyword",
        ),
        (
            with!("2", "color": "red", "size": 5_i64),
            "eq between in like exists paren user",
        ),
        (
            with!("3", "color": "green", "size": 10_i64),
            "ne between in exists paren",
        ),
        (
            with!("4", "color": "blue", "size": 11_i64, "urgent": true),
            "ne gt notin exists or paren bool",
        ),
        (
            with!("5", "size": 1_i64, "urgent": false),
            "isnull exists or math",
        ),
        (
            with!("6", "color": "Red", "note": "50% off"),
            "ne notin escape paren",
        ),
        (
            with!("7", "note": "500", "strange name": 1_i64),
            "isnull quoted",
        ),
        (
            with!("8", "color": "rust", "size": "20"),
            "ne notin like exists paren",
        ),
    ];
    let subjects = [Some("subject"), Some("other"), Some("subject")];
    let ids = ["m-1", "m-2", "x-3", "m-4", "m-5", "m-6", "m-7", "m-8"];
    for (index, (message, _)) in rows.iter_mut().enumerate() {
        message.set_subject(subjects.get(index).copied().flatten().map(str::to_owned));
        message
            .set_message_id(ids[index].to_owned())
            .expect("a good id");
    }
    rows
}

scenario!(s162_sql_filters, sdk, {
    sdk.send_all("s162", table().into_iter().map(|row| row.0).collect())
        .await?;
    let rows = table();
    for name in [
        "eq", "ne", "gt", "between", "in", "notin", "like", "escape", "isnull", "exists", "or",
        "paren", "math", "bool", "quoted", "sys", "user", "keyword",
    ] {
        let wanted = (1..=8).filter(|index| rows[index - 1].1.split(' ').any(|word| word == name));
        let wanted: Vec<String> = wanted.map(|index| index.to_string()).collect();
        assert_eq!(sdk.here(&at("s162", name)).await?, wanted, "{name}");
    }
});

fn marked(mark: &str, content_type: &str) -> ServiceBusMessage {
    let mut message = with!(mark, "color": if mark == "1" { "red" } else { "blue" }, "size": mark.parse::<i64>().unwrap_or(0));
    message.set_correlation_id(format!("c{mark}"));
    message.set_subject(format!("s{mark}"));
    message
        .set_message_id(format!("m{mark}"))
        .expect("a good id");
    message.set_to(format!("t{mark}"));
    message.set_reply_to(format!("r{mark}"));
    message
        .set_reply_to_session_id(format!("rs{mark}"))
        .expect("a good id");
    message
        .set_session_id(format!("x{mark}"))
        .expect("a good id");
    message.set_content_type(content_type.to_owned());
    message
}

scenario!(s163_correlation_filters, sdk, {
    let mut fourth = with!("4", "size": "1", "color": "red");
    fourth.set_subject("S1".to_owned());
    let messages = vec![
        marked("1", "text/plain"),
        marked("2", "text/html"),
        "3".into(),
        fourth,
    ];
    sdk.send_all("s163", messages).await?;
    for name in [
        "id", "label", "mid", "to", "reply", "rsid", "sid", "type", "prop", "both",
    ] {
        let wanted: &[&str] = if name == "prop" { &["1", "4"] } else { &["1"] };
        assert_eq!(sdk.here(&at("s163", name)).await?, wanted, "{name}");
    }
});

scenario!(s164_an_action_changes_its_copy, sdk, {
    let mut message = with!("1", "n": 1_i64, "secret": "x");
    message.set_subject("s".to_owned());
    sdk.send_message("s164", message).await?;
    let changed = sdk.take(&at("s164", "act"), 1).await?.remove(0);
    assert_eq!(changed.subject(), Some("changed"));
    let properties = changed.application_properties().ok_or("properties")?;
    assert_eq!(properties.get("urgent"), Some(&"yes".into()));
    assert_eq!(properties.get("n"), Some(&2_i64.into()));
    assert!(properties.get("secret").is_none() && properties.get("RuleName").is_some());
    let same = sdk.take(&at("s164", "plain"), 1).await?.remove(0);
    assert_eq!(same.subject(), Some("s"));
    assert_eq!(
        same.application_properties().map(|each| each.len()),
        Some(2)
    );
});

scenario!(s165_rules_with_actions_make_copies, sdk, {
    sdk.send_all(
        "s165",
        (1..=2_i64).map(|n| with!(n.to_string(), "n": n)).collect(),
    )
    .await?;
    let mut found = sdk.here(&at("s165", "five")).await?;
    found.sort();
    assert_eq!(found, ["1", "1", "1", "2"]);
    let received = sdk.take(&at("s165", "five"), 4).await?;
    let ones: Vec<_> = received
        .iter()
        .filter(|each| each.body().is_ok_and(|body| body == b"1"))
        .collect();
    assert!(ones.iter().all(|each| each.enqueued_sequence_number() == 1));
    let marked = |name: &str| {
        ones.iter().any(|each| {
            let properties = each.application_properties();
            properties.and_then(|map| map.get("source")) == Some(&name.into())
        })
    };
    assert!(marked("r4") && marked("r5"));
});

scenario!(s166_each_message_of_a_batch_is_judged, sdk, {
    let mut sender = sdk.sender("s166").await?;
    let one = |text: &str, n: i64| with!(text, "n": n);
    sender
        .send_messages([one("1", 1), one("2", 2), one("3", 1), "4".into()])
        .await?;
    assert_eq!(sdk.here(&at("s166", "some")).await?, ["1", "3"]);
});

scenario!(s167_a_filter_that_fails, sdk, {
    let messages = vec![
        with!("two", "n": 2_i64),
        with!("zero", "n": 0_i64),
        "none".into(),
    ];
    sdk.send_all("s167", messages).await?;
    for name in ["strict", "lax"] {
        assert_eq!(sdk.here(&at("s167", name)).await?, ["two"]);
    }
    let letters = sdk.take(&dead(&at("s167", "strict")), 1).await?;
    assert_eq!(bodies(&letters), ["zero"]);
    assert!(letters[0].dead_letter_reason().is_some());
    assert!(sdk.here(&dead(&at("s167", "lax"))).await?.is_empty());
});

scenario!(s168_s169_rules_are_added_and_removed, sdk, {
    let mut rules = sdk.rules("s168", "a").await?;
    let listed = rules.get_rules().await?;
    assert_eq!(
        listed.iter().map(|rule| &*rule.name).collect::<Vec<_>>(),
        ["$Default"]
    );
    let small = (
        SqlRuleFilter::new("n < 10"),
        SqlRuleAction::new("SET size = 'small'"),
    );
    rules.create_rule("small", small).await?;
    let subject = CorrelationRuleFilter::builder().subject("red").build();
    rules.create_rule("red", subject).await?;
    failure(rules.create_rule("red", SqlRuleFilter::new("1=1")).await);
    failure(
        rules
            .create_rule("bad", SqlRuleFilter::new("SELECT * FROM"))
            .await,
    );
    rules.delete_rule("$Default").await?;
    failure(rules.delete_rule("no-such").await);
    let mut names: Vec<String> = rules
        .get_rules()
        .await?
        .into_iter()
        .map(|rule| rule.name)
        .collect();
    names.sort();
    assert_eq!(names, ["red", "small"]);
    let mut red = with!("red", "n": 20_i64);
    red.set_subject("red".to_owned());
    let messages = vec![with!("1", "n": 1_i64), with!("20", "n": 20_i64), red];
    sdk.send_all("s168", messages).await?;
    let received = sdk.take(&at("s168", "a"), 2).await?;
    assert_eq!(bodies(&received), ["1", "red"]);
    let properties = received[0].application_properties().ok_or("properties")?;
    assert_eq!(properties.get("size"), Some(&"small".into()));
});

scenario!(s172_an_action_moves_a_message_to_a_session, sdk, {
    sdk.send_all("s172", vec![in_session("x", "1")]).await?;
    let mut other = Sdk::connect().await?;
    let mut receiver = other.session(&at("s172", "s"), "moved").await?;
    assert_eq!(bodies(&receive_in(&mut receiver, 1).await?), ["1"]);
});

scenario!(s322_properties_of_every_kind, sdk, {
    let message = with!(
        "1", "true": true, "false": false, "ubyte": u8::MAX, "ushort": u16::MAX, "uint": u32::MAX, "ulong": u64::MAX,
        "byte": i8::MIN, "short": i16::MIN, "int": i32::MIN, "long": i64::MIN, "zero": 0_i64, "float": 1.5_f32,
        "double": -2.25_f64, "infinite": f64::INFINITY, "char": '€', "string": "ü€😀", "empty": ""
    );
    let sent = message
        .application_properties()
        .ok_or("properties")?
        .clone();
    sdk.send_message("s322", message).await?;
    let received = sdk.take("s322", 1).await?.remove(0);
    assert_eq!(received.application_properties(), Some(&sent));
});
