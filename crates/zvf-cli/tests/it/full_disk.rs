//! Commands on a full disk: a small file system in memory, which only root can mount.
#![expect(clippy::print_stderr, reason = "a skipped test says so")]

use std::{fs, path::Path, process::Command};

use crate::{stores::Bench, text, zvf};

/// A file system in memory.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    /// Mounts a file system of 1 MiB; `None` without the right to.
    fn mount() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=1m,nr_inodes=4096", "zvf-test"])
            .arg(folder.path())
            .output();
        match mounted {
            Ok(output) if output.status.success() => Some(Self(folder)),
            Ok(output) => {
                let said = String::from_utf8_lossy(&output.stderr).into_owned();
                eprintln!("SKIPPED: a small disk cannot be mounted: {said}; run the test as root");
                None
            }
            Err(error) => {
                eprintln!("SKIPPED: mount cannot be started: {error}");
                None
            }
        }
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    /// Lists everything on the disk.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn resize(&self, size: &str) {
        let status = Command::new("mount")
            .args(["-o", &format!("remount,size={size}")])
            .arg(self.0.path())
            .status();
        assert!(status.unwrap().success());
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let folder = self.0.path();
        let unmounted = Command::new("umount").arg("-l").arg(folder).status();
        if !unmounted.is_ok_and(|status| status.success()) {
            eprintln!("{} is still mounted", folder.display());
        }
    }
}

/// Returns the error output of a command that fails.
#[track_caller]
fn refused(line: &[&str]) -> String {
    let output = zvf(line);
    let said = text(&output.stderr).to_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    // No text of a library's types.
    for word in ["Os {", "StorageFull", "kind:", "Generic", "source:"] {
        assert!(!said.contains(word), "{said}");
    }
    said
}

#[track_caller]
fn done(line: &[&str]) -> String {
    let output = zvf(line);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    text(&output.stdout).to_owned()
}

/// Writes points with incompressible coordinates, about 24 bytes each in a store.
fn table(bench: &Bench, rows: u32) {
    let mut state = 7_u32;
    let mut number = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f64::from(state) / 1e7
    };
    let rows = (0..rows).map(|_| format!("{},{},{}\n", number(), number(), number()));
    bench.file("a.csv", &format!("x,y,z\n{}", rows.collect::<String>()));
}

#[test]
fn a_full_disk_names_the_store_and_leaves_nothing() {
    let Some(disk) = SmallDisk::mount() else {
        return;
    };
    let bench = Bench::new();
    table(&bench, 100_000);
    let (out, from) = (disk.path("a.zv"), bench.path("a.csv"));
    let from = from.to_str().unwrap();
    let create = [
        "create", &out, "--kind", "points", "--from", from, "--quiet",
    ];
    let said = refused(&create);
    assert!(said.contains(&out) && said.contains(" is full"), "{said}");
    assert_eq!(disk.names(), [""; 0], "{said}");

    // With room, the same command works.
    disk.resize("16m");
    done(&create);
    assert!(done(&["validate", &out]).contains("nothing found"));

    // A failed write leaves the previous file or store in place.
    let file = disk.path("b.csv");
    fs::write(&file, "before").unwrap();
    disk.resize("4m");
    let said = refused(&["query", &out, "-o", &file]);
    assert!(said.contains(&file) && said.contains(" is full"), "{said}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "before");
    let said = refused(&["append", &out, "--from", from, "--out-of-bounds", "expand"]);
    assert!(said.contains(" is full"), "{said}");
    assert_eq!(disk.names(), ["a.zv", "b.csv"]);
    let found = done(&["query", &out, "--count", "--json"]);
    let found: serde_json::Value = serde_json::from_str(&found).unwrap();
    assert_eq!(found["vertices"], 100_000);
    disk.resize("32m");
    done(&["append", &out, "--from", from, "--out-of-bounds", "expand"]);
    assert!(done(&["validate", &out]).contains("nothing found"));
    assert!(Path::new(&out).join("zarr.json").exists());
}
