//! What a file may say, and what is told of its mistakes.

use super::*;
use jitney_base::time::Timestamp;
use jitney_message::Scalar;
use jitney_rules::Filter;

fn queue(properties: &str) -> String {
    format!(
        r#"{{"UserConfig":{{"Namespaces":[{{"Name":"n","Queues":[{{"Name":"q","Properties":{properties}}}]}}],"Logging":{{"Type":"File"}}}}}}"#
    )
}

fn check(text: &str, expected: &[&str]) {
    let mistakes = parse(text).err().unwrap_or_default();
    let lines: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
    assert_eq!(lines.len(), expected.len(), "{lines:#?}");
    for (line, expected) in lines.iter().zip(expected) {
        assert!(line.starts_with(expected), "{line}");
    }
}

#[test]
fn a_namespace_has_a_tier_and_premium_is_the_default() {
    let namespace = |sku: &str, kilobytes: u64| {
        format!(
            r#"{{"UserConfig":{{"Namespaces":[{{"Name":"n"{sku},"Queues":[{{"Name":"q","Properties":{{"MaxMessageSizeInKilobytes":{kilobytes}}}}}]}}]}}}}"#
        )
    };
    let sku = |text: &str| parse(text).unwrap().namespaces[0].sku;
    assert_eq!(sku(&namespace("", 1024)), Sku::Premium);
    assert_eq!(
        sku(&namespace(r#","Sku":"Premium""#, 102_400)),
        Sku::Premium
    );
    assert_eq!(sku(&namespace(r#","Sku":"Standard""#, 256)), Sku::Standard);
    check(
        &namespace(r#","Sku":"Standard""#, 257),
        &["UserConfig.Namespaces[0].Queues[0].Properties.MaxMessageSizeInKilobytes: found 257"],
    );
    check(
        &namespace(r#","Sku":"Basic""#, 1),
        &[r#"UserConfig.Namespaces[0].Sku: found "Basic"; allowed: "Standard" or "Premium""#],
    );
}

#[test]
fn the_emulator_s_file_is_understood_with_comments_and_trailing_commas() {
    let text = r#"{ // the shipped sample
      "UserConfig": { "Namespaces": [ { "Name": "sbemulatorns",
        "Queues": [ { "Name": "queue.1", "Properties": {
           "DeadLetteringOnMessageExpiration": true, "DefaultMessageTimeToLive": "PT30M",
           "LockDuration": "PT5S", "MaxDeliveryCount": 7, "ForwardTo": "", } } ],
        "Topics": [ { "Name": "topic.1", "Subscriptions": [ { "Name": "s", "Rules": [
           { "Name": "r", "Properties": { "FilterType": "Sql", "SqlFilter": { "SqlExpression": "1=1" } } } ] } ] } ] } ],
      "Logging": { "Type": "File" } } }"#;
    let config = parse(text).unwrap();
    let config = &config.namespaces[0];
    assert_eq!(config.topics.len(), 1);
    let properties = &config.queues[0].properties;
    assert_eq!(properties.lock_duration, Millis::from_secs(5));
    assert_eq!(properties.default_time_to_live, Millis::from_secs(1_800));
    assert_eq!(properties.max_delivery_count, 7);
    assert!(properties.dead_lettering_on_expiration);
    assert_eq!(properties.forward_to, None);
}

#[test]
fn the_emulator_s_limits_do_not_hold() {
    let text = queue(
        r#"{"DefaultMessageTimeToLive":"P10675199DT2H48M5.4775807S","MaxDeliveryCount":2000,"LockDuration":"PT5M","DuplicateDetectionHistoryTimeWindow":"P7D"}"#,
    );
    let properties = parse(&text).unwrap().namespaces[0].queues[0]
        .properties
        .clone();
    assert_eq!(properties.default_time_to_live, Millis::MAX);
    assert_eq!(properties.max_delivery_count, 2_000);
}

#[test]
fn every_mistake_is_told_with_its_place() {
    let at = "UserConfig.Namespaces[0].Queues[0]";
    let place = |rest: &str| format!("{at}.{rest}");
    check(
        &queue(
            r#"{"LockDuration":"1 minute","MaxDeliveryCount":0,"RequiresSession":"no","Status":"Off"}"#,
        ),
        &[
            &place("Properties.LockDuration: found \"1 minute\"; allowed: an ISO 8601"),
            &place("Properties.MaxDeliveryCount: found 0; allowed: a whole number from 1"),
            &place("Properties.RequiresSession: found \"no\"; allowed: true or false"),
            &place("Properties.Status: found \"Off\"; allowed: \"Active\""),
        ],
    );
    check(
        &queue("7"),
        &[&place("Properties: found 7; allowed: an object")],
    );
    check(
        "{}",
        &[
            "UserConfig: found nothing",
            "UserConfig.Namespaces: found nothing",
        ],
    );
    check(
        r#"{"UserConfig":{"Namespaces":[]}}"#,
        &["UserConfig.Namespaces: found an array of 0; allowed: an array with one namespace"],
    );
    check(
        r#"{"UserConfig":{"Namespaces":[{"Queues":[{"Properties":{"LockDuration":7}}],"Topics":7}]}}"#,
        &[
            "UserConfig.Namespaces[0].Queues[0].Name: found nothing",
            "UserConfig.Namespaces[0].Queues[0].Properties.LockDuration: found 7",
            "UserConfig.Namespaces[0].Topics: found 7; allowed: an array of topics",
        ],
    );
    check("{\n  \"a\": }", &["the text: found"]);
}

#[test]
fn values_beyond_their_range_and_unknown_names_are_told() {
    let place = |rest: &str| format!("UserConfig.Namespaces[0].Queues[0].{rest}");
    check(
        &queue(
            r#"{"LockDuration":"PT9M","DefaultMessageTimeToLive":"PT0.5S","AutoDeleteOnIdle":"PT1M",
                "DuplicateDetectionHistoryTimeWindow":"P8D"}"#,
        ),
        &[
            &place(
                "Properties.LockDuration: found \"PT9M\"; allowed: an ISO 8601 duration from PT1S to PT5M",
            ),
            &place(
                "Properties.DefaultMessageTimeToLive: found \"PT0.5S\"; allowed: an ISO 8601 duration of PT1S",
            ),
            &place(
                "Properties.AutoDeleteOnIdle: found \"PT1M\"; allowed: an ISO 8601 duration of PT5M",
            ),
            &place(
                "Properties.DuplicateDetectionHistoryTimeWindow: found \"P8D\"; allowed: an ISO",
            ),
        ],
    );
}

/// Checks that a text is used, and what is told of it.
fn warned(text: &str, expected: &[&str]) {
    let checked = super::check(text, Defaults::Emulator);
    assert_eq!(checked.config.err(), None);
    let lines: Vec<String> = checked.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(lines.len(), expected.len(), "{lines:#?}");
    for (line, expected) in lines.iter().zip(expected) {
        assert!(line.starts_with(expected), "{line}");
    }
    let places = checked.warnings.iter().map(|it| (it.line, it.column));
    assert!(
        places
            .into_iter()
            .all(|(line, column)| 0 < line && 0 < column)
    );
}

#[test]
fn names_that_are_not_known_are_warnings_with_the_nearest_name() {
    const NOT_KNOWN: &str = "found a name that is not known, and has no effect; allowed:";
    let place = |rest: &str| format!("UserConfig.Namespaces[0].{rest} {NOT_KNOWN}");
    let nearest = |rest: &str, name: &str| format!("{} \"{name}\"", place(rest));
    let elsewhere = |rest: &str, name: &str| {
        let found = "found a name that belongs elsewhere, and has no effect; allowed:";
        format!("UserConfig.Namespaces[0].{rest} {found} \"{name}\" within")
    };
    // Names of files in public repositories, with which the emulator starts.
    warned(
        r#"{"Custom":{},"UserConfig":{"LoggingConfig":{},"Namespaces":[{"Name":"n","MaxAllowedConnections":100,
            "Queues":[{"Name":"q","MaxDeliveryCount":10,"Logging":{},
                "Properties":{"RequiresDuplicatedDetection":true,"lockDuration":"PT1M","Colour":"red"}}],
            "Topics":[{"Name":"t","Subscription":[]}]}]}}"#,
        &[
            &format!("Custom: {NOT_KNOWN} the name UserConfig"),
            &format!("UserConfig.LoggingConfig: {NOT_KNOWN} \"Logging\""),
            &place("MaxAllowedConnections:"),
            &elsewhere("Queues[0].MaxDeliveryCount:", "MaxDeliveryCount"),
            &elsewhere("Queues[0].Logging:", "Logging"),
            &nearest(
                "Queues[0].Properties.RequiresDuplicatedDetection:",
                "RequiresDuplicateDetection",
            ),
            &nearest("Queues[0].Properties.lockDuration:", "LockDuration"),
            &place("Queues[0].Properties.Colour:"),
            &nearest("Topics[0].Subscription:", "Subscriptions"),
        ],
    );
    warned(
        &topic(
            r#"{"Name":"a","Properties":{"FilterTyp":"Sql","FilterType":"Sql","SqlFilter":{"SqlExpresion":"1=1","SqlExpression":"1=1"}}}"#,
        ),
        &[
            &nearest(
                "Topics[0].Subscriptions[0].Rules[0].Properties.FilterTyp:",
                "FilterType",
            ),
            &nearest(
                "Topics[0].Subscriptions[0].Rules[0].Properties.SqlFilter.SqlExpresion:",
                "SqlExpression",
            ),
        ],
    );
}

#[test]
fn a_name_in_another_form_or_another_place_is_told_where_it_belongs() {
    const UNKNOWN: &str = "found a name that is not known, and has no effect; allowed:";
    const ELSEWHERE: &str = "found a name that belongs elsewhere, and has no effect; allowed:";
    // As the emulator of Event Hubs has them.
    warned(
        r#"{"UserConfig":{"NamespaceConfig":[],"LoggingConfig":{"Type":"File"},"Namespaces":[{"Name":"n"}]}}"#,
        &[
            &format!("UserConfig.NamespaceConfig: {UNKNOWN} \"Namespaces\"; did you mean it?"),
            &format!("UserConfig.LoggingConfig: {UNKNOWN} \"Logging\"; did you mean it?"),
        ],
    );
    warned(
        r#"{"Namespaces":[],"logging":{},"Subscription":[],
            "UserConfig":{"Queues":[],"Namespaces":[{"Queue":[],"Topic":[],"Rules":[],"Logging":{}}],
                "Logging":{"Type":"File","Typ":"File","Level":"Trace"}}}"#,
        &[
            &format!("Namespaces: {ELSEWHERE} \"Namespaces\" within \"UserConfig\""),
            &format!("logging: {ELSEWHERE} \"Logging\" within \"UserConfig\""),
            &format!("Subscription: {ELSEWHERE} \"Subscriptions\" within an item of \"Topics\""),
            &format!("UserConfig.Queues: {ELSEWHERE} \"Queues\" within an item of \"Namespaces\""),
            &format!("UserConfig.Namespaces[0].Queue: {UNKNOWN} \"Queues\"; did you mean it?"),
            &format!("UserConfig.Namespaces[0].Topic: {UNKNOWN} \"Topics\"; did you mean it?"),
            &format!(
                "UserConfig.Namespaces[0].Rules: {ELSEWHERE} \"Rules\" within an item of \"Subscriptions\""
            ),
            &format!("UserConfig.Namespaces[0].Logging: {ELSEWHERE} \"Logging\" within"),
            &format!("UserConfig.Logging.Typ: {UNKNOWN} \"Type\"; did you mean it?"),
            &format!("UserConfig.Logging.Level: {UNKNOWN} the name Type"),
        ],
    );
    warned(
        &topic(r#"{"Name":"r","FilterType":"Sql","LockDuration":"PT1M","Properties":{}}"#),
        &[
            &format!(
                "UserConfig.Namespaces[0].Topics[0].Subscriptions[0].Rules[0].FilterType: {ELSEWHERE} \"FilterType\" \
                 within \"Properties\" of a rule"
            ),
            "UserConfig.Namespaces[0].Topics[0].Subscriptions[0].Rules[0].LockDuration:",
            "UserConfig.Namespaces[0].Topics[0].Subscriptions[0].Rules[0].Properties.FilterType:",
        ],
    );
    check(
        r#"{"UserConfig":{"Namespaces":[{"Name":"n"}],"Logging":"File"}}"#,
        &["UserConfig.Logging: found \"File\"; allowed: an object"],
    );
}

#[test]
fn a_number_or_a_boolean_in_another_form_is_told_in_which_it_would_be_right() {
    let place = |rest: &str| format!("UserConfig.Namespaces[0].Queues[0].Properties.{rest}");
    check(
        &queue(
            r#"{"MaxDeliveryCount":3.0,"MaxSizeInMegabytes":"1024","MaxMessageSizeInKilobytes":0.0,
                "RequiresSession":"true","EnablePartitioning":"yes"}"#,
        ),
        &[
            &place(
                "MaxDeliveryCount: found 3.0; allowed: a whole number from 1 to 2147483647, such as 3, without a decimal point",
            ),
            &place(
                "MaxSizeInMegabytes: found \"1024\"; allowed: a whole number from 1 to 1099511627776, such as 1024, without \
                 quotation marks",
            ),
            &place(
                "MaxMessageSizeInKilobytes: found 0.0; allowed: a whole number from 1 to 102400",
            ),
            &place(
                "RequiresSession: found \"true\"; allowed: true or false, without quotation marks",
            ),
            &place("EnablePartitioning: found \"yes\"; allowed: true or false"),
        ],
    );
}

#[test]
fn an_entity_that_forwards_to_itself_is_a_warning_with_its_place() {
    let back = "by which messages come back here: each is forwarded 4 times and then dead-lettered; allowed: another";
    let at = "UserConfig.Namespaces[0]";
    warned(
        r#"{"UserConfig":{"Namespaces":[{"Name":"n",
            "Queues":[{"Name":"q","Properties":{"ForwardTo":"Q"}},{"Name":"other","Properties":{"ForwardTo":"q"}},
                {"Name":"dead","Properties":{"ForwardDeadLetteredMessagesTo":"dead"}}],
            "Topics":[{"Name":"t","Subscriptions":[{"Name":"s","Properties":{"ForwardTo":"t"}},
                {"Name":"own","Properties":{"ForwardTo":"T/Subscriptions/own"}},
                {"Name":"fine","Properties":{"ForwardTo":"t/Subscriptions/own"}}]}]}]}}"#,
        &[
            &format!("{at}.Queues[0].Properties.ForwardTo: found \"Q\", {back}"),
            &format!(
                "{at}.Queues[2].Properties.ForwardDeadLetteredMessagesTo: found \"dead\", {back}"
            ),
            &format!("{at}.Topics[0].Subscriptions[0].Properties.ForwardTo: found \"t\", {back}"),
            &format!(
                "{at}.Topics[0].Subscriptions[1].Properties.ForwardTo: found \"T/Subscriptions/own\", {back}"
            ),
        ],
    );
}

#[test]
fn keys_without_effect_are_mistakes() {
    let rules = r#"[{"Name":"r","Rights":["Send"],"PrimaryKey":"k"}]"#;
    let at = "UserConfig.Namespaces[0].Queues[0]";
    check(
        &queue(&format!(r#"{{"AuthorizationRules":{rules}}}"#)),
        &[&format!(
            "{at}.Properties.AuthorizationRules: found keys, which have no effect here; allowed: \"AuthorizationRules\" beside"
        )],
    );
    let with = |root: &str, user: &str, queue: &str, subscription: &str| {
        format!(
            r#"{{{root}"UserConfig":{{{user}"Namespaces":[{{"Name":"n","Queues":[{{{queue}"Name":"q"}}],
                "Topics":[{{"Name":"t","Subscriptions":[{{{subscription}"Name":"s"}}]}}]}}]}}}}"#
        )
    };
    let some = format!(r#""AuthorizationRules":{rules},"#);
    check(&with("", "", &some, ""), &[]);
    check(
        &with(&some, "", "", ""),
        &["AuthorizationRules: found keys"],
    );
    check(
        &with("", &some, "", ""),
        &["UserConfig.AuthorizationRules: found keys"],
    );
    check(
        &with("", "", "", &some),
        &["UserConfig.Namespaces[0].Topics[0].Subscriptions[0].AuthorizationRules: found keys"],
    );
    let misspelled = format!(r#""AuthorisationRule":{rules},"#);
    check(
        &with("", "", &misspelled, ""),
        &[&format!(
            "{at}.AuthorisationRule: found a name that is not known: these keys would have no effect; allowed: \"AuthorizationRules\""
        )],
    );
    let second = r#""AuthorizationRules":[{"Name":"r","Rights":["Send"],"PrimaryKey":"k","SecondKey":"l"}],"#;
    check(
        &with("", "", second, ""),
        &[&format!(
            "{at}.AuthorizationRules[0].SecondKey: found a name that is not known; allowed: \"SecondaryKey\""
        )],
    );
}

#[test]
fn a_filter_is_taken_as_the_emulator_takes_it() {
    let of = |rule: &str| {
        let text = topic(rule);
        let checked = super::check(&text, Defaults::Emulator);
        let config = checked.config.unwrap();
        let filter = config.namespaces[0].topics[0].subscriptions[0].rules[0]
            .filter
            .clone();
        let warnings = checked.warnings.iter().map(ToString::to_string);
        (filter, warnings.collect::<Vec<_>>().join("\n"))
    };
    for kind in ["TrueFilter", "SqlFilter"] {
        let (filter, warning) = of(&format!(
            r#"{{"Name":"r","Properties":{{"FilterType":"{kind}","SqlFilter":{{"SqlExpression":"1=0"}}}}}}"#
        ));
        assert_eq!(filter, ConfiguredFilter::All, "{kind}");
        assert!(warning.contains("takes all messages"), "{warning}");
    }
    let (filter, warning) =
        of(r#"{"Name":"r","Properties":{"FilterType":"Sql","CorrelationFilter":{"Label":"l"}}}"#);
    assert!(matches!(filter, ConfiguredFilter::Correlation(_)));
    assert!(
        warning.contains("no \"SqlFilter\", and a \"CorrelationFilter\", which is used"),
        "{warning}"
    );
    for (given, warned) in [
        ("", "nothing, and no filter, which takes all messages"),
        (
            r#""FilterType":null,"SqlFilter":null"#,
            "nothing, and no filter",
        ),
        (
            r#""SqlFilter":{"SqlExpression":"a = 1"}"#,
            "nothing, and a \"SqlFilter\", which is used",
        ),
        (
            r#""CorrelationFilter":{"Label":"l"},"SqlFilter":null"#,
            "nothing, and a \"CorrelationFilter\", which is used",
        ),
    ] {
        let (filter, warning) = of(&format!(r#"{{"Name":"r","Properties":{{{given}}}}}"#));
        let is_taken = match &filter {
            ConfiguredFilter::All => !given.contains(r#"Filter":{"#),
            ConfiguredFilter::Sql(text) => given.contains(text),
            ConfiguredFilter::Correlation(filter) => filter.label.as_deref() == Some("l"),
        };
        assert!(is_taken, "{given}: {filter:?}");
        assert!(warning.contains(warned), "{given}: {warning}");
    }
    let place = "UserConfig.Namespaces[0].Topics[0].Subscriptions[0].Rules[0].Properties";
    // It does not say which of the two is meant.
    check(
        &topic(
            r#"{"Name":"r","Properties":{"SqlFilter":{"SqlExpression":"1=1"},"CorrelationFilter":{"Label":"l"}}}"#,
        ),
        &[&format!(
            "{place}.FilterType: found nothing; allowed: \"Sql\""
        )],
    );
    check(
        &topic(r#"{"Name":"r","Properties":{"FilterType":"Sql"}}"#),
        &[&format!(
            "{place}.SqlFilter: found nothing; allowed: a SqlFilter with a SqlExpression, as FilterType is \"Sql\""
        )],
    );
    check(
        &topic(r#"{"Name":"r","Properties":{"FilterType":"FalseFilter"}}"#),
        &[&format!("{place}.FilterType: found \"FalseFilter\"")],
    );
}

#[test]
fn a_null_in_a_correlation_filter_is_as_if_it_were_absent() {
    let rule = |properties: &str| {
        topic(&format!(
            r#"{{"Name":"r","Properties":{{"FilterType":"Correlation","CorrelationFilter":{{{properties}}}}}}}"#
        ))
    };
    let config = parse(&rule(
        r#""Label":null,"Properties":{"p":null,"q":"v"},"To":"t""#,
    ))
    .unwrap();
    let expected = ConfiguredCorrelationFilter {
        to: Some("t".to_owned()),
        properties: vec![("q".to_owned(), Constant::Text("v".to_owned()))],
        ..ConfiguredCorrelationFilter::default()
    };
    let rules = &config.namespaces[0].topics[0].subscriptions[0].rules;
    assert_eq!(rules[0].filter, ConfiguredFilter::Correlation(expected));
    let place = "UserConfig.Namespaces[0].Topics[0].Subscriptions[0].Rules[0].Properties";
    check(
        &rule(r#""Label":null,"Properties":{"p":null}"#),
        &[&format!(
            "{place}.CorrelationFilter: found an object; allowed: a filter that names"
        )],
    );
    check(
        &rule(r#""Properties":{"p":["v"],"q":"w"}"#),
        &[&format!(
            "{place}.CorrelationFilter.Properties.p: found an array"
        )],
    );
}

#[test]
fn properties_of_another_kind_of_entity_are_warnings_with_their_place() {
    const OTHER: &str = "and that has no effect; allowed: the properties";
    warned(
        r#"{"UserConfig":{"Namespaces":[{"Name":"n",
            "Queues":[{"Name":"q","Properties":{"DeadLetteringOnFilterEvaluationExceptions":true,"LockDuration":"PT1M",
                "DefaultRuleDescription":{},"UserMetadata":"mine"}}],
            "Topics":[{"Name":"t","Properties":{"LockDuration":"PT1M","RequiresSession":false,"EnablePartitioning":true},
                "Subscriptions":[{"Name":"s","Properties":{"MaxDeliveryCount":3,"RequiresDuplicateDetection":true,
                    "EnableBatchedOperations":true}}]}]}]}}"#,
        &[
            &format!(
                "UserConfig.Namespaces[0].Queues[0].Properties.DeadLetteringOnFilterEvaluationExceptions: \
                 found a property that a queue does not have, {OTHER} of a queue"
            ),
            &format!(
                "UserConfig.Namespaces[0].Queues[0].Properties.DefaultRuleDescription: \
                 found a property that a queue does not have, {OTHER} of a queue"
            ),
            &format!(
                "UserConfig.Namespaces[0].Topics[0].Properties.LockDuration: \
                 found a property that a topic does not have, {OTHER} of a topic"
            ),
            &format!(
                "UserConfig.Namespaces[0].Topics[0].Properties.RequiresSession: \
                 found a property that a topic does not have, {OTHER} of a topic"
            ),
            &format!(
                "UserConfig.Namespaces[0].Topics[0].Subscriptions[0].Properties.RequiresDuplicateDetection: \
                 found a property that a subscription does not have, {OTHER} of a subscription"
            ),
        ],
    );
}

#[test]
fn each_mistake_in_sql_has_its_place() {
    let text = topic(
        r#"{"Name":"a","Properties":{"FilterType":"Sql","SqlFilter":{"SqlExpression":"color ="}}},
           {"Name":"b","Properties":{"FilterType":"Sql","SqlFilter":{"SqlExpression":"sys.Nothing = 1"},
               "Action":{"SqlExpression":"SET"}}}"#,
    );
    let place = |rule: usize, rest: &str| {
        format!(
            "UserConfig.Namespaces[0].Topics[0].Subscriptions[0].Rules[{rule}].Properties.{rest}.SqlExpression: found "
        )
    };
    check(
        &text,
        &[
            &place(0, "SqlFilter"),
            &place(1, "SqlFilter"),
            &place(1, "Action"),
        ],
    );
    let mistakes = parse(&text).unwrap_err();
    let lines: Vec<usize> = mistakes.iter().map(|it| it.line).collect();
    assert_eq!(lines, [1, 2, 3], "{mistakes:#?}");
}

#[test]
fn a_missing_comma_and_a_log_that_the_emulator_has_not_are_mistakes() {
    check(
        "{\"UserConfig\":{\"Namespaces\":[{\"Name\":\"n\" \"Queues\":[]}]}}",
        &["the text: found"],
    );
    check("{'UserConfig':{}}", &["the text: found"]);
    let logging = |kind: &str| {
        format!(
            r#"{{"UserConfig":{{"Namespaces":[{{"Name":"n"}}],"Logging":{{"Type":"{kind}"}}}}}}"#
        )
    };
    for kind in ["File", "file", "CONSOLE", "File,Console", "Console, File"] {
        check(&logging(kind), &[]);
    }
    check(
        &logging("Syslog"),
        &["UserConfig.Logging.Type: found \"Syslog\"; allowed: \"File\", \"Console\""],
    );
}

#[test]
fn a_byte_order_mark_is_passed_over() {
    let text = format!("\u{feff}{}", queue("{}"));
    check(&text, &[]);
    let mistakes = parse("\u{feff}{\n  \"a\": }").unwrap_err();
    assert_eq!((mistakes[0].line, mistakes[0].column), (2, 8));
}

#[test]
fn the_service_s_name_of_a_property_is_taken_too() {
    for name in [
        "DeadLetteringOnFilterEvaluationExceptions",
        "EnableDeadLetteringOnFilterEvaluationExceptions",
    ] {
        let text = format!(
            r#"{{"UserConfig":{{"Namespaces":[{{"Name":"n","Topics":[{{"Name":"t","Subscriptions":[{{"Name":"s",
                "Properties":{{"{name}":false}}}}]}}]}}]}}}}"#
        );
        warned(&text, &[]);
        let config = parse(&text).unwrap();
        let properties = &config.namespaces[0].topics[0].subscriptions[0].properties;
        assert!(!properties.dead_lettering_on_filter_evaluation);
    }
}

#[test]
fn defaults_are_the_emulator_s_or_the_service_s() {
    let file = |defaults: &str| {
        format!(
            r#"{{"UserConfig":{{"Namespaces":[{{"Name":"n","Queues":[{{"Name":"q"}},{{"Name":"r","Properties":{{"DefaultMessageTimeToLive":"PT5M"}}}}],
                "Topics":[{{"Name":"t","Subscriptions":[{{"Name":"s"}}]}}]}}]{defaults}}}}}"#
        )
    };
    let seen = |text: &str, defaults: Defaults| {
        let checked = super::check(text, defaults);
        let config = checked.config.unwrap();
        let [namespace] = &config.namespaces[..] else {
            panic!("{config:?}");
        };
        let (queue, topic) = (&namespace.queues[0].properties, &namespace.topics[0]);
        let subscription = &topic.subscriptions[0].properties;
        let live = [
            queue.default_time_to_live,
            topic.properties.default_time_to_live,
            subscription.default_time_to_live,
        ];
        assert!(live.iter().all(|it| *it == live[0]));
        let given = namespace.queues[1].properties.default_time_to_live;
        assert_eq!(given, Millis::from_secs(300));
        (live[0], queue.max_delivery_count, checked.expiring)
    };
    let one = Expiring {
        queues: 1,
        topics: 1,
        subscriptions: 1,
    };
    let emulator = (Millis::from_secs(3_600), 3, one);
    let service = (Millis::MAX, 10, Expiring::default());
    let (as_service, as_emulator) = (r#","Defaults":"service""#, r#","Defaults":"emulator""#);
    assert_eq!(seen(&file(""), Defaults::Emulator), emulator);
    assert_eq!(seen(&file(""), Defaults::Service), service);
    assert_eq!(seen(&file(as_service), Defaults::Emulator), service);
    assert_eq!(seen(&file(as_emulator), Defaults::Service), emulator);
    check(
        &file(r#","Defaults":"azure""#),
        &["UserConfig.Defaults: found \"azure\"; allowed: \"emulator\" or \"service\""],
    );
}

#[test]
fn forwarding_targets_that_the_file_does_not_have_are_told_apart() {
    let text = r#"{"UserConfig":{"Namespaces":[{"Name":"n","Queues":[
        {"Name":"a","Properties":{"ForwardTo":"B","ForwardDeadLetteredMessagesTo":"none"}},{"Name":"b"},
        {"Name":"c","Properties":{"ForwardTo":"T/subscriptions/S"}}],
        "Topics":[{"Name":"t","Subscriptions":[{"Name":"s"}]}]}]}}"#;
    let checked = super::check(text, Defaults::Emulator);
    assert!(checked.config.is_ok());
    let [absent] = &checked.absent_targets[..] else {
        panic!("{checked:?}");
    };
    assert_eq!((absent.line, absent.column), (2, 83));
    assert!(absent.to_string().contains("found \"none\""), "{absent}");
}

#[test]
fn values_of_filters_have_the_types_that_json_has_not() {
    let values = [
        Scalar::Timestamp(17_000_000_001_234_567),
        Scalar::Timestamp(i64::MAX),
        Scalar::Duration(-36_000_000_001),
        Scalar::Duration(i64::MAX),
        Scalar::Uuid([7; 16]),
        Scalar::Ulong(u64::MAX),
        Scalar::Long(-3),
        Scalar::Double(3.0),
        Scalar::Double(f64::NEG_INFINITY),
        Scalar::Boolean(true),
        Scalar::Text("2026-11-23T12:00:00Z".into()),
    ];
    for value in values {
        let written = constant_to_json(&value).unwrap();
        let text = topic(&format!(
            r#"{{"Name":"r","Properties":{{"FilterType":"Correlation","CorrelationFilter":{{"Properties":{{"p":{written}}}}}}}}}"#
        ));
        let config = parse(&text).unwrap_or_else(|mistakes| panic!("{written}: {mistakes:?}"));
        let rule = &config.namespaces[0].topics[0].subscriptions[0].rules[0];
        let Ok(Filter::Correlation(filter)) = rule.compile(Timestamp::EPOCH).map(|it| it.filter)
        else {
            panic!("{rule:?}");
        };
        assert_eq!(
            *filter.fields().properties[0].1.scalar(),
            value,
            "{written}"
        );
    }
    assert_eq!(constant_to_json(&Scalar::Null), None);
    let place = "UserConfig.Namespaces[0].Topics[0].Subscriptions[0].Rules[0].Properties.CorrelationFilter.Properties.p";
    for (value, wrong) in [
        (r#"{"Type":"date","Value":1}"#, "Type"),
        (r#"{"Type":"uuid","Value":"7"}"#, "Value"),
        (r#"{"Type":"dateTime","Value":"soon"}"#, "Value"),
        (r#"{"Type":"duration","Value":"1 minute"}"#, "Value"),
        (r#"{"Type":"duration","Value":"P1M"}"#, "Value"),
        (r#"{"Type":"double","Value":"1"}"#, "Value"),
        (r#"{"Type":"uuid"}"#, "Value"),
    ] {
        check(
            &topic(&format!(
                r#"{{"Name":"r","Properties":{{"FilterType":"Correlation","CorrelationFilter":{{"Properties":{{"p":{value}}}}}}}}}"#
            )),
            &[&format!("{place}.{wrong}: found ")],
        );
    }
}

#[test]
fn what_the_emulator_passes_over_is_no_mistake() {
    // All properties of the emulator's schema and of templates for the service.
    let text = r#"{ "$schema": "https://example.com/Config-schema.json",
      "UserConfig": { "Namespaces": [ { "Name": "sbemulatorns", "_remark": "ours",
        "Queues": [ { "Name": "queue.1", "Properties": {
           "DeadLetteringOnMessageExpiration": false, "DefaultMessageTimeToLive": "PT1H",
           "DuplicateDetectionHistoryTimeWindow": "PT20S", "ForwardDeadLetteredMessagesTo": "",
           "ForwardTo": "", "LockDuration": "PT1M", "MaxDeliveryCount": 3,
           "RequiresDuplicateDetection": false, "RequiresSession": false,
           "EnableBatchedOperations": true, "UserMetadata": "m", "EnableExpress": false } } ],
        "Topics": [ { "Name": "topic.1", "Properties": {
             "DefaultMessageTimeToLive": "PT1H", "DuplicateDetectionHistoryTimeWindow": "PT20S",
             "RequiresDuplicateDetection": false, "SupportOrdering": true },
           "Subscriptions": [ { "Name": "subscription.1", "Properties": {
               "DeadLetteringOnMessageExpiration": false, "DefaultMessageTimeToLive": "PT1H",
               "LockDuration": "PT1M", "MaxDeliveryCount": 3, "RequiresSession": false,
               "ForwardDeadLetteredMessagesTo": "", "ForwardTo": "" },
             "Rules": [ { "Name": "app-prop-filter-1", "Properties": {
               "FilterType": "Correlation", "CorrelationFilter": {
                 "ContentType": "application/text", "CorrelationId": "id1", "Label": "subject1",
                 "MessageId": "msgid1", "ReplyTo": "someQueue", "ReplyToSessionId": "sessionId",
                 "SessionId": "session1", "To": "xyz", "RequiresPreprocessing": false,
                 "Properties": { "prop3": "value3" } } } },
               { "Name": "user-prop-filter-1", "Properties": { "FilterType": "Sql",
                 "SqlFilter": { "SqlExpression": "sys.MessageId = '123456'", "CompatibilityLevel": 20 },
                 "Action": { "SqlExpression": "SET sys.To = 'Entity'", "RequiresPreprocessing": true } } } ] } ] } ] } ],
        "Logging": { "Type": "File", "Level": "Trace" } } }"#;
    check(text, &[]);
}

#[test]
fn a_mistake_has_its_line_and_column() {
    let check = |text: &str, expected: &[(usize, usize)]| {
        let mistakes = parse(text).unwrap_err();
        let places = mistakes
            .iter()
            .map(|mistake| (mistake.line, mistake.column));
        assert_eq!(places.collect::<Vec<_>>(), expected, "{mistakes:#?}");
    };
    check("{\n  \"a\": }", &[(2, 8)]);
    check("", &[(1, 1), (1, 1)]);
    check(
        r#"{ "UserConfig": { // comments are counted, ä as one character
            "Namespaces": [{ "Queues": [
              { "Name": "ü", "Properties": { "LockDuration": 7 } },
              {}
            ]}]}}"#,
        &[(3, 62), (4, 15)],
    );
}

#[test]
fn a_name_that_is_there_twice_is_told() {
    let text = queue(r#"{"MaxDeliveryCount":5,"LockDuration":"PT5S","MaxDeliveryCount":7}"#);
    let checked = super::check(&text, Defaults::Emulator);
    let config = checked.config.unwrap();
    assert_eq!(
        config.namespaces[0].queues[0].properties.max_delivery_count,
        7
    );
    let [warning] = &checked.warnings[..] else {
        panic!("{:?}", checked.warnings);
    };
    let expected = "UserConfig.Namespaces[0].Queues[0].Properties.MaxDeliveryCount: found \"MaxDeliveryCount\" once more, which is used; \
                    allowed: each name once";
    assert!(warning.to_string().ends_with(expected), "{warning}");
}

#[test]
fn names_are_azure_s_and_differ_in_more_than_case() {
    let names = |names: &[&str]| {
        let queues: Vec<String> = names
            .iter()
            .map(|name| format!(r#"{{"Name":"{name}"}}"#))
            .collect();
        format!(
            r#"{{"UserConfig":{{"Namespaces":[{{"Queues":[{}]}}]}}}}"#,
            queues.join(",")
        )
    };
    assert!(parse(&names(&["a", "a~b/c.d-e_f", "-a", "a--"])).is_ok());
    check(
        &names(&["Orders", "orders"]),
        &["UserConfig.Namespaces[0].Queues[1].Name: found \"orders\""],
    );
    check(
        &names(&["a b", "a//b", ""]),
        &["UserConfig", "UserConfig", "UserConfig"],
    );
}

fn topic(rules: &str) -> String {
    format!(
        r#"{{"UserConfig":{{"Namespaces":[{{"Topics":[{{"Name":"t","Subscriptions":[{{"Name":"s","Rules":[{rules}]}}]}}]}}]}}}}"#
    )
}

#[test]
fn topics_have_subscriptions_and_rules() {
    let text = topic(
        r#"{"Name":"a","Properties":{"FilterType":"Correlation","CorrelationFilter":{"Label":"l","Properties":{"p":"v","n":1.5}}}},
           {"Name":"b","Properties":{"FilterType":"Sql","SqlFilter":{"SqlExpression":"1=1"},"Action":{"SqlExpression":"SET a = 1"}}}"#,
    );
    let topic = parse(&text).unwrap().namespaces[0].topics[0].clone();
    let rules = &topic.subscriptions[0].rules;
    let mut properties = vec![
        ("p".to_owned(), Constant::Text("v".to_owned())),
        ("n".to_owned(), Constant::Number("1.5".to_owned())),
    ];
    properties.sort_by(|a, b| a.0.cmp(&b.0));
    let correlation = ConfiguredCorrelationFilter {
        label: Some("l".to_owned()),
        properties,
        ..ConfiguredCorrelationFilter::default()
    };
    assert_eq!(rules[0].filter, ConfiguredFilter::Correlation(correlation));
    assert_eq!(rules[1].filter, ConfiguredFilter::Sql("1=1".to_owned()));
    assert_eq!(rules[1].action.as_deref(), Some("SET a = 1"));
}

#[test]
fn a_rule_that_cannot_be_is_told_and_not_dropped() {
    let place =
        |rest: &str| format!("UserConfig.Namespaces[0].Topics[0].Subscriptions[0].Rules[{rest}");
    check(
        &topic(
            r#"{"Name":"r","Properties":{"FilterType":7}},
               {"Name":"R","Properties":{"FilterType":"Sql"}},
               {"Name":"c","Properties":{"FilterType":"Correlation","CorrelationFilter":{}}},
               {"Name":"d"}"#,
        ),
        &[
            &place("0].Properties.FilterType: found 7; allowed: \"Sql\""),
            &place("1].Name: found \"R\""),
            &place("1].Properties.SqlFilter: found nothing; allowed: a SqlFilter"),
            &place("2].Properties.CorrelationFilter: found an object; allowed: a filter"),
            &place("3].Properties: found nothing; allowed: an object"),
        ],
    );
}

#[test]
fn the_type_of_a_filter_is_read_in_any_letter_case() {
    for kind in ["sql", "SQL"] {
        let text = format!(
            r#"{{"UserConfig":{{"Namespaces":[{{"Name":"n","Topics":[{{"Name":"t","Subscriptions":[{{"Name":"s","Rules":[
               {{"Name":"r","Properties":{{"FilterType":"{kind}","SqlFilter":{{"SqlExpression":"1=0"}}}}}}]}}]}}]}}],"Logging":{{"Type":"File"}}}}}}"#
        );
        let checked = super::check(&text, Defaults::Emulator);
        let warning = checked
            .warnings
            .iter()
            .map(ToString::to_string)
            .collect::<String>();
        assert!(warning.contains("which is read as \"Sql\""), "{warning}");
        let config = checked.config.unwrap();
        let rule = &config.namespaces[0].topics[0].subscriptions[0].rules[0];
        assert_eq!(
            rule.filter,
            ConfiguredFilter::Sql("1=0".to_owned()),
            "{kind}"
        );
    }
}

#[test]
fn the_only_namespace_may_have_any_name_as_in_the_emulator() {
    for name in ["my_ns", "my.ns", ""] {
        let text = format!(
            r#"{{"UserConfig":{{"Namespaces":[{{"Name":"{name}","Queues":[{{"Name":"q"}}]}}],"Logging":{{"Type":"File"}}}}}}"#
        );
        let checked = super::check(&text, Defaults::Emulator);
        let warnings: Vec<String> = checked.warnings.iter().map(ToString::to_string).collect();
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].contains("which is not used"), "{warnings:?}");
        let config = checked.config.unwrap();
        assert_eq!(config.namespaces[0].name, "");
        assert_eq!(config.namespaces[0].queues.len(), 1);
    }
}
