//! Opening of stores by address, and the features that addresses need.

use zvf_store::{OpenError, OpenOptions, Store};

#[test]
fn paths_must_be_folders() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    assert_eq!(Store::open(path).unwrap().to_string(), path);
    assert!(Store::open(&format!("file://{path}")).is_ok());
    let error = Store::open(&format!("{path}/absent")).unwrap_err();
    assert!(matches!(error, OpenError::NotFound(_)), "{error:?}");
    let file = format!("{path}/file");
    std::fs::write(&file, b"x").unwrap();
    let error = Store::open(&file).unwrap_err();
    assert!(matches!(error, OpenError::NotAFolder(_)), "{error:?}");
}

#[track_caller]
fn check_feature(address: &str, feature: &str, compiled: bool) {
    let opened = OpenOptions::default().anonymous(true).open(address);
    match opened {
        Err(OpenError::Feature { feature: named, .. }) => {
            assert!(!compiled);
            assert_eq!(named, feature);
        }
        Err(OpenError::Configuration { .. }) | Ok(_) => assert!(compiled, "{address}"),
        Err(error) => panic!("{error:?}"),
    }
}

#[test]
fn the_error_for_a_disabled_scheme_names_its_feature() {
    check_feature("http://localhost/x", "http", cfg!(feature = "http"));
    check_feature("https://localhost/x", "http", cfg!(feature = "http"));
    check_feature("s3://bucket/x", "aws", cfg!(feature = "aws"));
    check_feature("gs://bucket/x", "gcp", cfg!(feature = "gcp"));
    check_feature("az://container/x", "azure", cfg!(feature = "azure"));
}

#[test]
fn a_memory_store_opens_and_rejects_invalid_keys() {
    assert!(Store::open("memory:").is_ok());
    let error = Store::from_memory([("../x", "x")]).unwrap_err();
    assert!(matches!(error, OpenError::Configuration { .. }));
}

#[cfg(all(feature = "aws", feature = "gcp", feature = "azure"))]
#[test]
fn public_buckets_open_without_credentials() {
    let options = OpenOptions::default().anonymous(true);
    assert!(options.open("s3://bucket/store.zv").is_ok());
    assert!(options.open("gs://bucket/store.zv").is_ok());
    let options = options.option("azure_storage_account_name", "account");
    assert!(options.open("az://container/store.zv").is_ok());
}

#[test]
fn local_stores_have_no_options_of_networks() {
    let folder = tempfile::tempdir().unwrap();
    let new = folder.path().join("new.zv").display().to_string();
    let old = folder.path().display().to_string();
    let options = OpenOptions::default().option("aws_region", "eu-central-1");
    for opened in [
        options.open(&old),
        options.open("memory:"),
        options.create(&new),
    ] {
        let error = opened.unwrap_err();
        assert!(matches!(&error, OpenError::Option(name) if name == "aws_region"));
        assert!(error.to_string().contains("aws_region"));
    }
    assert!(!folder.path().join("new.zv").exists());
}
