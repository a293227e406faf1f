//! JSON of public signatures.

use std::error::Error;

use zvf_model::{error_chain::error_chain, json::Json};

#[test]
fn the_place_of_an_error_is_named_once() {
    let error = "[1,\n{".parse::<Json>().unwrap_err();
    assert_eq!(error.to_string(), "the text is not JSON");
    assert!(error.source().is_some());
    let text = error_chain(&error);
    assert_eq!(text.matches("line 2").count(), 1, "{text}");
}
