//! The description of the API.

use super::*;

#[test]
fn the_description_has_every_path_and_no_unknown_reference() {
    let document = serde_json::to_value(openapi::document()).unwrap();
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

#[test]
fn a_bearer_that_is_no_token_by_its_shape_is_told_from_those_that_are() {
    for unknown in ["Bearer 0123456789abcdef", "bearer a.b", "Bearer "] {
        assert!(is_unknown_bearer(unknown), "{unknown}");
    }
    for known in [
        "Bearer a.b.c",
        "Bearer SharedAccessSignature sr=a&sig=b&se=1&skn=c",
        "SharedAccessSignature sr=a&sig=b&se=1&skn=c",
        "Basic dTpw",
        "Bearer",
    ] {
        assert!(!is_unknown_bearer(known), "{known}");
    }
}
