//! Rules: codes, texts, and the generated page.

use std::fs;

use zvf_validate::{Depth, rules};

#[test]
fn codes_are_unique_and_ascend_within_their_depth() {
    for depth in Depth::ALL {
        let of_depth = rules::all().filter(|rule| rule.depth == depth);
        let codes: Vec<&str> = of_depth.map(|rule| rule.code).collect();
        assert!(!codes.is_empty());
        let prefix = format!("ZV-L{}-", depth.number());
        for pair in codes.windows(2) {
            assert!(pair[0] < pair[1], "{pair:?}");
        }
        for code in codes {
            let number = code.strip_prefix(&prefix).unwrap();
            assert!(number.len() == 3 && number.parse::<u16>().is_ok(), "{code}");
        }
    }
}

#[test]
fn a_rule_is_found_by_its_code() {
    for rule in rules::all() {
        assert_eq!(rules::find(rule.code), Some(rule));
    }
    assert_eq!(rules::find("ZV-L9-001"), None);
}

/// Titles are fragments for tables, meanings are sentences, and remedies complete a sentence.
#[test]
fn rules_say_what_is_wrong_and_what_to_do() {
    for rule in rules::all() {
        let code = rule.code;
        let (title, meaning, remedy) = (rule.title, rule.meaning.trim(), rule.remedy.text());
        assert!(
            !title.is_empty() && !title.ends_with('.') && title.len() <= 72,
            "{code}: {title}"
        );
        assert!(
            meaning.len() > 20 && meaning.ends_with('.'),
            "{code}: {meaning}"
        );
        assert!(
            remedy.len() > 10 && !remedy.ends_with('.'),
            "{code}: {remedy}"
        );
        assert!(!meaning.contains("  "), "{code}: {meaning}");
    }
}

#[test]
fn the_page_of_rules_is_current() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/rules.md");
    let found = fs::read_to_string(file).unwrap();
    assert!(found == rules::page(), "run `cargo xtask rules`");
}
