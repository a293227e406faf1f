//! Keys cannot leave the store.

use proptest::prelude::*;
use zvf_model::key::{Key, KeyError, MAX_BYTES, MAX_SEGMENT_BYTES, MAX_SEGMENTS};

#[track_caller]
fn refused(path: &str) -> KeyError {
    Key::parse(path).unwrap_err()
}

#[test]
fn paths_outside_the_store_are_rejected() {
    for path in ["", "/", "/a", "a/", "a//b", "//"] {
        assert_eq!(refused(path), KeyError::Empty, "{path:?}");
    }
    assert_eq!(refused("."), KeyError::Relative("."));
    assert_eq!(refused("a/../b"), KeyError::Relative(".."));
    for path in ["a\\b", "a/\0", "a\nb", "\u{7f}", "\u{85}"] {
        assert!(matches!(refused(path), KeyError::Character(_)), "{path:?}");
    }
    // Dots that are not alone are names.
    assert!(Key::parse("...").is_ok());
    assert!(Key::parse("0.0.0/..a").is_ok());
}

#[test]
fn a_segment_cannot_contain_a_slash() {
    let level = Key::parse("0/vertex_attributes").unwrap();
    assert!(matches!(level.join("../../x"), Err(KeyError::Character(_))));
    assert_eq!(level.join(".."), Err(KeyError::Relative("..")));
    assert!(level.join_path("a/b").is_ok());
}

#[test]
fn length_and_depth_are_bounded() {
    let longest = "x".repeat(MAX_SEGMENT_BYTES);
    assert!(Key::parse(&longest).is_ok());
    assert_eq!(
        refused(&format!("{longest}x")),
        KeyError::LongSegment(MAX_SEGMENT_BYTES + 1)
    );
    let deep = vec!["a"; MAX_SEGMENTS];
    assert!(Key::parse(&deep.join("/")).is_ok());
    assert_eq!(
        refused(&format!("{}/a", deep.join("/"))),
        KeyError::Deep(MAX_SEGMENTS + 1)
    );
    let long = vec![longest; 5].join("/");
    assert_eq!(refused(&long), KeyError::Long(long.len()));
    assert!(long.len() > MAX_BYTES);
}

#[test]
fn parent_and_name_undo_join() {
    let key = Key::parse("0/links/+1").unwrap();
    assert_eq!(key.name(), Some("+1"));
    assert_eq!(key.parent(), Some(Key::parse("0/links").unwrap()));
    assert_eq!(Key::parse("0").unwrap().parent(), Some(Key::root()));
    assert_eq!(Key::root().parent(), None);
    assert_eq!(Key::root().name(), None);
    assert_eq!(Key::root().to_string(), ".");
    assert_eq!(Key::root().metadata().unwrap().as_str(), "zarr.json");
}

proptest! {
    #[test]
    fn every_key_stays_below_the_root(path in "(\\PC|[./\\\\\0]){0,40}") {
        let Ok(key) = Key::parse(&path) else {
            return Ok(());
        };
        prop_assert_eq!(key.as_str(), path.as_str());
        prop_assert!(path.len() <= MAX_BYTES);
        prop_assert!(!path.contains(['\\', '\0']));
        for segment in path.split('/') {
            prop_assert!(!matches!(segment, "" | "." | ".."));
        }
        // In terms of the standard library: only normal components.
        let plain = |part| matches!(part, std::path::Component::Normal(_));
        prop_assert!(std::path::Path::new(&path).components().all(plain));
        prop_assert_eq!(key.parent().unwrap().join(key.name().unwrap()).unwrap(), key);
    }
}
