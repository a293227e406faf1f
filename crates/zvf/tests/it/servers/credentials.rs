//! Credentials: from the environment, or anonymous.

use zvf::{Dataset, OpenOptions};
use zvf_store::{ListError, Read, ReadError, Store};

use super::{Place, block_on, report};

fn read(place: Place, bucket: &str, options: &OpenOptions) -> Result<bool, ReadError> {
    let store: Store = options.open(&place.address(bucket, "sharded")).unwrap();
    let root = zvf_model::key::Key::root().metadata().unwrap();
    let bytes = block_on(store.read_one(Read::full(root)))?;
    Ok(bytes.is_some())
}

/// Returns the error of an anonymous read of a private object.
fn denied(place: Place) -> ReadError {
    let known = OpenOptions::default().retries(0);
    let anonymous = known.clone().anonymous(true);
    assert!(read(place, "stores", &known).unwrap());
    assert!(read(place, "public", &anonymous).unwrap());
    let error = read(place, "stores", &anonymous).unwrap_err();
    assert_eq!(error.key().as_str(), "zarr.json");
    assert!(!error.is_transient(), "{error:?}");
    report(format_args!("{place:?}: what is private needs an account"));
    error
}

#[test]
#[ignore = "needs servers: cargo xtask servers"]
fn a_private_bucket() {
    let error = denied(Place::S3);
    assert!(matches!(error, ReadError::Forbidden { .. }), "{error:?}");
}

#[test]
#[ignore = "needs servers: cargo xtask servers"]
fn a_private_container() {
    let error = denied(Place::Azure);
    assert!(matches!(error, ReadError::Forbidden { .. }), "{error:?}");
}

#[test]
#[ignore = "needs servers: cargo xtask servers"]
fn a_missing_bucket_is_named() {
    for place in [Place::S3, Place::Azure] {
        let address = place.address("missing", "a.zv");
        let error = block_on(Dataset::open(address.as_str())).unwrap_err();
        let is_named = matches!(error.cause(), Some(ListError::NoBucket { .. }));
        assert!(is_named, "{address}: {error:?}");
    }
}
