//! `zvf doctor`.

use std::process::Command;

use crate::{text, unpack, zvf};

#[test]
fn doctor_describes_the_build() {
    let folder = tempfile::tempdir().unwrap();
    unpack("zvf-07", "graph.zv", folder.path());
    let store = folder.path().to_str().unwrap();
    let output = zvf(&["doctor", store, "--json"]);
    assert_eq!(output.status.code(), Some(0));
    let said: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(said["ok"], true);
    assert_eq!(said["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(said["temporary"]["writable"], true);
    let cache = said["limits"]["cell_cache"].as_u64().unwrap();
    assert!((64 << 20..=1 << 30).contains(&cache));
    assert_eq!(said["store"]["generation"], "0.7");
    assert!(said["store"]["requests"].as_u64().unwrap() > 0);
    let backends = said["backends"].as_array().unwrap();
    let s3 = backends.iter().find(|it| it["address"] == "s3:").unwrap();
    assert_eq!(s3["built_in"], cfg!(feature = "aws"));
    let output = zvf(&["doctor"]);
    assert!(text(&output.stdout).contains("0.6, 0.7, 0.8.0, 0.8.1, 0.9, 0.10"));
}

#[test]
fn doctor_reports_problems() {
    let output = zvf(&["doctor", "absent.zv"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("absent.zv does not exist"));
}

#[test]
#[cfg(unix)]
fn doctor_reports_a_missing_temporary_folder() {
    let output = Command::new(env!("CARGO_BIN_EXE_zvf"))
        .arg("doctor")
        .env("TMPDIR", "absent-folder")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("set TMPDIR"));
}
