//! The description of the API.

use super::*;

#[test]
fn the_description_has_every_path_and_no_unknown_reference() {
    let document = serde_json::to_value(routes::document()).unwrap();
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    let paths = document["paths"].as_object().unwrap();
    assert!(10 < paths.len() && paths.keys().all(|path| path.starts_with(PREFIX)));
    let text = document.to_string();
    for reference in text.split("\"#/components/schemas/").skip(1) {
        let name = reference.split('"').next().unwrap();
        assert!(
            document["components"]["schemas"][name].is_object(),
            "{name}"
        );
    }
}
