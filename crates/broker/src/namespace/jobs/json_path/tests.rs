use proptest::prelude::*;

use super::*;
use crate::limits::{JSON_PATH_DEPTH_MAX, JSON_PATH_STEPS_MAX, SELECTION_TEXT_MAX};

fn steps_of(path: &str, json: &str) -> (Result<bool, TooSlow>, u64) {
    let path = JsonPath::parse(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let document = Document::read(json.as_bytes()).unwrap();
    let mut left = JSON_PATH_STEPS_MAX;
    let found = path.finds(&document, &mut left);
    (found, JSON_PATH_STEPS_MAX - left)
}

fn finds(path: &str, json: &str) -> bool {
    steps_of(path, json).0.unwrap()
}

fn refusal(path: &str) -> String {
    match JsonPath::parse(path) {
        Ok(parsed) => panic!("{path} is {parsed:?}"),
        Err(error) => error.to_string(),
    }
}

/// The document of the specification's examples [RFC 9535, 1.5].
const STORE: &str = r#"{ "store": {
    "book": [
      { "category": "reference", "author": "Nigel Rees", "title": "Sayings of the Century", "price": 8.95 },
      { "category": "fiction", "author": "Evelyn Waugh", "title": "Sword of Honour", "price": 12.99 },
      { "category": "fiction", "author": "Herman Melville", "title": "Moby Dick", "isbn": "0-553-21311-3", "price": 8.99 },
      { "category": "fiction", "author": "J. R. R. Tolkien", "title": "The Lord of the Rings",
        "isbn": "0-395-19395-8", "price": 22.99 } ],
    "bicycle": { "color": "red", "price": 399 } } }"#;

#[test]
fn queries_find_what_the_specification_says() {
    for path in [
        "$.store.book[*].author",
        "$..author",
        "$.store.*",
        "$.store..price",
        "$..book[2].title",
        "$..book[-1][?@ == 'J. R. R. Tolkien']",
        "$..book[0,1]",
        "$..book[:2]",
        "$..book[?@.isbn]",
        "$..book[?@.price<10]",
        "$..*",
        "$.store.bicycle[?@ == \"red\"]",
        "$ .store [ 'book' , \"bicycle\" ] [ ? @ .color == 'red' || @.price > 20 ]",
        "$.store.book[?@.price > 20 && !@.missing && (@.isbn || @.x)]",
        "$.store[?count(@..price) == 4]",
        "$.store.book[?length(@.title) == 9]",
        "$.store[?value(@..color) == 'red']",
        "$[?length(@.book) == 4]",
        "$..book[::-2][?@ == 'Sword of Honour']",
        "$..[?@.price == $.store.bicycle.price]",
    ] {
        assert!(finds(path, STORE), "{path}");
    }
    for path in [
        "$.book",
        "$.store.book.price",
        "$.store[0]",
        "$..book[4]",
        "$..book[-5]",
        "$..book[?@.price<5]",
        "$..book[2:2]",
        "$..book[::0]",
        "$.store[?count(@..price) == 5]",
        "$.store.bicycle[?@ > 'red']",
        "$..[?@.isbn && @.color]",
        "$.store.book[?!@.price]",
    ] {
        assert!(!finds(path, STORE), "{path}");
    }
}

#[test]
fn values_are_compared_as_the_specification_says() {
    let json = r#"{"obj": {"x": "y"}, "arr": [2, 3], "n": 1, "f": 1.0, "t": "a\u0062", "none": null, "k": {"x": "y"}}"#;
    for (condition, is_true) in [
        ("$.absent1 == $.absent2", true),
        ("$.absent1 <= $.absent2", true),
        ("$.absent == 'g'", false),
        ("$.absent1 != $.absent2", false),
        ("$.absent != 'g'", true),
        ("1 <= 2", true),
        ("1 > 2", false),
        ("13 == '13'", false),
        ("'a' <= 'b'", true),
        ("'a' > 'b'", false),
        ("$.obj == $.arr", false),
        ("$.obj != $.arr", true),
        ("$.obj == $.obj", true),
        ("$.obj == $.k", true),
        ("$.arr == $.arr", true),
        ("$.obj == 17", false),
        ("$.obj <= $.arr", false),
        ("$.obj < $.arr", false),
        ("$.obj <= $.obj", true),
        ("$.arr <= $.arr", true),
        ("1 <= $.arr", false),
        ("1 >= $.arr", false),
        ("true <= true", true),
        ("true > true", false),
        ("$.n == 1.0", true),
        ("$.f == 1", true),
        ("$.n == 1e0", true),
        ("$.n == -0", false),
        ("$.arr[-1] == 3", true),
        ("$.t == 'ab'", true),
        (r#"$.t == "a\u0062""#, true),
        ("$.none == null", true),
        ("$.missing == null", false),
        ("length($.t) == 2", true),
        ("length($.n) == $.absent", true),
        ("length(length('x')) == $.absent", true),
        ("9007199254740993 == 9007199254740992", false),
    ] {
        let path = format!("$[?{condition}]");
        assert_eq!(finds(&path, json), is_true, "{condition}");
    }
    assert!(finds(r#"$["\ud83d\ude00", '\'']"#, r#"{"😀": 1}"#));
    assert!(finds("$.a[?@ == 2]", r#"{"a": [1], "a": [2]}"#));
}

#[test]
fn what_is_no_query_is_told_with_its_place() {
    for (path, place, part) in [
        ("", 1, "'$' at the beginning"),
        ("a", 1, "'$' at the beginning"),
        (" $", 1, "'$' at the beginning"),
        ("$ ", 2, "or the end"),
        ("$a", 2, "or the end"),
        ("$.", 3, "a name or '*' is expected, and the text ends"),
        ("$.1", 3, "a name or '*'"),
        ("$...a", 4, "a name or '*'"),
        ("$[", 3, "a name in quotes"),
        ("$[]", 3, "a name in quotes"),
        ("$[a]", 3, "a name in quotes"),
        ("$[1 2]", 5, "',' or ']'"),
        ("$[01]", 3, "leading zeros"),
        ("$[-0]", 3, "'-0'"),
        ("$[9007199254740992]", 3, "no integer between"),
        ("$['a", 3, "no closing quote"),
        ("$['\\x']", 5, "backslash"),
        ("$['\\\"']", 5, "backslash"),
        ("$['\\ud800']", 5, "surrogate"),
        ("$['\\u12g4']", 6, "hexadecimal"),
        ("$['\u{1}']", 4, "\\u0001"),
        ("$[?]", 4, "expected"),
        ("$[?1]", 5, "a comparison"),
        ("$[?true]", 8, "a comparison"),
        ("$[?@.* == 1]", 4, "more than one"),
        ("$[?(@.a]", 8, "')'"),
        ("$[?!1 == 2]", 5, "behind '!'"),
        ("$[?!@.a == 2]", 9, "',' or ']'"),
        ("$[?@.a = 2]", 8, "',' or ']'"),
        ("$[?match(@.a, 'x')]", 4, "'match' is no function"),
        ("$[?length (@.a) == 1]", 10, "'('"),
        ("$[?count(1) == 1]", 10, "'@' or '$'"),
        ("$[?@ == 01]", 9, "leading zeros"),
        ("$[?@ == 1.]", 11, "a digit"),
        ("$[?@ == 1e999]", 9, "no number"),
        ("$[?@ == 'ä' é]", 13, "',' or ']'"),
    ] {
        let error = refusal(path);
        let place = format!("at character {place}: ");
        assert!(
            error.starts_with(&place) && error.contains(part),
            "{path}: {error}"
        );
    }
}

#[test]
fn nesting_is_bounded_and_its_depth_costs_no_time() {
    let of = |depth: usize| format!("${}{}", "[?@".repeat(depth), "]".repeat(depth));
    assert!(JsonPath::parse(&of(JSON_PATH_DEPTH_MAX)).is_ok());
    let parentheses = |depth: usize| format!("$[?{}@{}]", "(".repeat(depth), ")".repeat(depth));
    assert!(JsonPath::parse(&parentheses(JSON_PATH_DEPTH_MAX - 1)).is_ok());
    for path in [
        of(JSON_PATH_DEPTH_MAX + 1),
        of(300),
        parentheses(JSON_PATH_DEPTH_MAX),
        format!("$[?{}", "!(".repeat(400)),
        format!("$[?{}", "length(".repeat(140)),
        format!("$[?{}", "count(@[?".repeat(100)),
        format!("$[?{}", "(@==@&&".repeat(120)),
    ] {
        assert!(refusal(&path).contains("more than 32 deep"), "{path}");
    }
}

/// Bodies of about a MiB, each of which makes some queries costly.
fn costly_bodies() -> [String; 6] {
    let nested = format!("{}{}", "[".repeat(120), "]".repeat(120));
    [
        format!("[{}0]", "0,".repeat(500_000)),
        format!("[{}0]", format!("{nested},").repeat(4_000)),
        format!("[{}0]", "{\"\":0},".repeat(140_000)),
        format!("[{}0]", "[[0,0,0,0],[0,0,0,0]],".repeat(45_000)),
        format!("{{{}\"a\":0}}", "\"b\":0,".repeat(170_000)),
        format!("[\"{}\"]", "x".repeat(1_000_000)),
    ]
}

#[test]
fn an_evaluation_ends_after_its_steps() {
    let fill = |part: &str, before: &str, after: &str| {
        let room = SELECTION_TEXT_MAX - before.len() - after.len();
        format!("{before}{}{after}", part.repeat(room / part.len()))
    };
    let paths = [
        fill("@!=@||", "$..[?", "@!=@]"),
        fill("@==@&&", "$..[?", "@!=@]"),
        fill("$..*!=1||", "$..[?count(", "1!=1]").replace("$..*!=1||", "$..x)!=0||count("),
        fill("[0,0]", "$", ".z"),
        fill("..[*]", "$", ".z"),
        fill("..*", "$", ".z"),
        fill("[*]", "$", "[?@==1]"),
        fill("[?@]", "$", ".z"),
        fill("[::2]", "$..*", ".z"),
        fill(".b", "$", ""),
        fill("0,", "$..[", "0].z"),
        fill("[?$==$]", "$..", ".z"),
        "$..[?$..[?$..[?$..[?@==$]]]]".to_owned(),
        "$..[?count($..[?count($..*)==0])==0].z".to_owned(),
        "$[?$[0]==@]".to_owned(),
        "$..[?length(@)<0]".to_owned(),
    ];
    let mut ended = 0;
    for body in costly_bodies() {
        let document = Document::read(body.as_bytes()).unwrap();
        for path in &paths {
            let Ok(path) = JsonPath::parse(path) else {
                continue;
            };
            let mut left = JSON_PATH_STEPS_MAX;
            if path.finds(&document, &mut left) == Err(TooSlow) {
                assert_eq!(left, 0);
                ended += 1;
            }
        }
    }
    assert!(20 < ended, "only {ended} were too costly");
}

#[test]
fn a_filter_on_every_value_of_a_large_document_is_evaluated() {
    let element = r#"{"id": 4711, "name": "a customer", "tags": ["a", "b"], "total": 12.5},"#;
    let json = format!("{{\"orders\": [{}0]}}", element.repeat(14_000));
    assert!(900_000 < json.len(), "{}", json.len());
    for path in [
        "$.orders[?@.total > 100]",
        "$.orders[?@.name == 'b' || @.id == 4712]",
        "$..[?@.total > 100]",
        "$..missing",
    ] {
        let (found, steps) = steps_of(path, &json);
        assert_eq!(found, Ok(false), "{path}: {steps} steps");
    }
}

#[test]
fn long_queries_and_deep_documents_need_little_stack() {
    let names = format!("${}", ".a".repeat(511));
    let nested = format!("{}1{}", "{\"a\":".repeat(127), "}".repeat(127));
    let small = std::thread::Builder::new().stack_size(1024 * 1024);
    let searching = small.spawn(move || {
        assert!(!finds(&names, &nested));
        let deep = format!("$..a[?{}@.a{}]", "@.a[?".repeat(31), "]".repeat(31));
        assert!(finds(&deep, &nested));
        let wide = format!("$[?$=={}$]", "$||$==".repeat(150));
        assert!(finds(&wide, &nested));
        let steps = format!("$..{}", "[*]".repeat(100));
        assert!(finds(&steps, &nested));
    });
    searching.unwrap().join().unwrap();
    let deeper = "[".repeat(1_000_000);
    assert!(Document::read(deeper.as_bytes()).is_err());
}

/// Paths in whose meaning both implementations agree, as texts.
fn paths() -> impl Strategy<Value = String> {
    let segment = prop_oneof![
        Just(".a".to_owned()),
        Just("..a".to_owned()),
        Just(".*".to_owned()),
        Just("..*".to_owned()),
        Just("[0]".to_owned()),
        Just("[-1]".to_owned()),
        Just("[0, 'b']".to_owned()),
        Just("[::-1]".to_owned()),
        (-4..4_i64, -4..4_i64, -3..3_i64).prop_map(|(a, b, c)| format!("[{a}:{b}:{c}]")),
    ];
    let operand = prop_oneof![
        Just("1".to_owned()),
        Just("'x'".to_owned()),
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just("@".to_owned()),
        Just("@.a".to_owned()),
        Just("@['b'][0]".to_owned()),
        Just("$[0]".to_owned()),
        Just("length(@.a)".to_owned()),
        Just("count(@..*)".to_owned()),
        Just("value(@..b)".to_owned()),
    ];
    let operator = prop_oneof![Just("=="), Just("!="), Just("<"), Just(">")];
    let compared = (operand.clone(), operator, operand);
    let compared =
        compared.prop_map(|(left, operator, right)| format!("{left} {operator} {right}"));
    let condition = prop_oneof![
        compared,
        Just("@.a".to_owned()),
        Just("!@.*".to_owned()),
        Just("@..a".to_owned())
    ];
    let condition = condition.prop_recursive(2, 6, 2, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a} && {b}")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a}||{b}")),
            inner.clone().prop_map(|a| format!("!({a})")),
            inner.prop_map(|a| format!("@[?{a}]")),
        ]
    });
    let segment = prop_oneof![
        3 => segment,
        2 => condition.prop_map(|condition| format!("[?{condition}]"))
    ];
    prop::collection::vec(segment, 0..4).prop_map(|segments| format!("${}", segments.concat()))
}

fn documents() -> impl Strategy<Value = serde_json::Value> {
    use serde_json::json;
    let leaf = prop_oneof![
        Just(json!(null)),
        Just(json!(true)),
        Just(json!(0)),
        Just(json!(1)),
        Just(json!(1.0)),
        Just(json!(-2.5)),
        Just(json!("x")),
        Just(json!("")),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let name = prop_oneof![Just("a"), Just("b"), Just("c")];
        let name = name.prop_map(ToOwned::to_owned);
        let members = prop::collection::btree_map(name, inner.clone(), 0..4);
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(serde_json::Value::from),
            members.prop_map(|members| members.into_iter().collect()),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn queries_find_what_another_implementation_finds(path in paths(), json in documents()) {
        let other = serde_json_path::JsonPath::parse(&path).unwrap();
        let is_found = !other.query(&json).is_empty();
        prop_assert_eq!(finds(&path, &json.to_string()), is_found, "{} in {}", path, json);
    }

    #[test]
    fn texts_are_read_or_refused(text in "[$@.?*\\[\\]()!&|=<>,:'\"\\\\a-c0-9e -]{0,60}") {
        let is_read = JsonPath::parse(&text).is_ok();
        if text.matches(['?', '(']).count() < 6 {
            let other = serde_json_path::JsonPath::parse(&text).is_ok();
            // The other one takes blanks between a function and its arguments, and knows no bounds of numbers in texts.
            prop_assert!(is_read == other || text.contains([' ', '0', 'e']), "{}", text);
        }
    }
}
