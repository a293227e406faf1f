//! Stores created and edited by the command, checked by queries.

use std::{fs, path::PathBuf};

use serde_json::Value;

use crate::{text, zvf};

/// A working folder.
pub(crate) struct Bench(tempfile::TempDir);

impl Bench {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// Returns the path of a file.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Runs a command; names that start with `@` are in the folder.
    pub(crate) fn run(&self, line: &[&str]) -> std::process::Output {
        let line: Vec<String> = line
            .iter()
            .map(|word| match word.strip_prefix('@') {
                Some(name) => self.path(name).to_str().unwrap().to_owned(),
                None => (*word).to_owned(),
            })
            .collect();
        zvf(&line.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Writes a file.
    pub(crate) fn file(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    /// Returns the output of a successful command.
    #[track_caller]
    pub(crate) fn says(&self, line: &[&str]) -> String {
        let output = self.run(line);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{line:?}: {said}");
        assert_eq!(said, "", "{line:?}");
        let address = self.0.path().to_str().unwrap();
        text(&output.stdout).replace(address, "")
    }

    /// Returns the JSON that a command prints.
    #[track_caller]
    pub(crate) fn json(&self, line: &[&str]) -> Value {
        let said = self.says(&[line, &["--json"]].concat());
        serde_json::from_str(&said).unwrap()
    }

    /// Returns the error output of a command that fails.
    #[track_caller]
    pub(crate) fn refused(&self, line: &[&str]) -> String {
        let output = self.run(line);
        assert_eq!(output.status.code(), Some(2), "{line:?}");
        assert_eq!(text(&output.stdout), "", "{line:?}");
        let address = self.0.path().to_str().unwrap();
        text(&output.stderr).replace(address, "")
    }

    /// Returns the exit code of a command.
    pub(crate) fn code(&self, line: &[&str]) -> Option<i32> {
        self.run(line).status.code()
    }

    /// Returns the result of a query, as CSV tables one after another.
    #[track_caller]
    pub(crate) fn result(&self, store: &str, of: &[&str]) -> String {
        let folder = self.path("result");
        fs::create_dir(&folder).unwrap();
        let line = [&["query", store, "--quiet", "-o", "@result/a.csv"], of].concat();
        self.says(&line);
        let mut tables = String::new();
        for part in ["", ".links", ".objects", ".groups"] {
            let table = folder.join(format!("a{part}.csv"));
            tables += &fs::read_to_string(table).unwrap_or_default();
        }
        fs::remove_dir_all(folder).unwrap();
        tables
    }

    /// Lists the names in the folder.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

/// Every kind with its tables, and their form in results: vertices by chunk and object, chunks of
/// 10 along each axis.
pub(crate) const KINDS: [(&str, [(&str, &str); 4]); 8] = [
    (
        "points",
        [
            (
                "a.csv",
                "x,y,vertex.fa\n1.5,2.0,0.5\n3.0,4.0,0.25\n12.0,1.0,8.0\n",
            ),
            ("", ""),
            ("", ""),
            ("", ""),
        ],
    ),
    (
        "points",
        [
            (
                "a.csv",
                "x,y,object_id,vertex.fa\n1.5,2.0,5,0.5\n3.0,4.0,8,0.25\n12.0,1.0,8,8.0\n",
            ),
            ("", ""),
            ("a.objects.csv", "object_id,object.kind\n5,a\n8,b\n"),
            ("a.groups.csv", "group,object_id\n0,5\n0,8\n"),
        ],
    ),
    (
        "lines",
        [
            (
                "a.csv",
                "x,y,z,part,object_id,vertex.fa\n0.0,0.0,0.0,0,5,0.5\n12.0,1.0,1.0,0,5,1.5\n3.0,3.0,3.0,1,8,2.5\n4.0,4.0,4.0,1,8,3.5\n",
            ),
            ("", ""),
            ("a.objects.csv", "object_id,object.length\n5,10.5\n8,2.5\n"),
            ("a.groups.csv", "group,object_id\n0,5\n0,8\n"),
        ],
    ),
    (
        "polylines",
        [
            (
                "a.csv",
                "x,y,z,part,object_id,vertex.fa\n0.0,0.0,0.0,0,5,0.5\n12.0,1.0,1.0,0,5,1.5\n13.0,1.0,1.0,0,5,1.5\n3.0,3.0,3.0,1,8,2.5\n4.0,4.0,4.0,1,8,3.5\n",
            ),
            ("", ""),
            ("a.objects.csv", "object_id,object.length\n5,10.5\n8,2.5\n"),
            ("a.groups.csv", "group,object_id\n0,5\n0,8\n"),
        ],
    ),
    (
        "streamlines",
        [
            (
                "a.csv",
                "x,y,z,part,object_id,vertex.kind\n0.0,0.0,0.0,0,5,a\n12.0,1.0,1.0,0,5,b\n13.0,1.0,1.0,0,5,a\n3.0,3.0,3.0,1,8,c\n4.0,4.0,4.0,1,8,a\n",
            ),
            ("", ""),
            ("a.objects.csv", "object_id,object.length\n5,10.5\n8,2.5\n"),
            ("a.groups.csv", "group,object_id\n0,5\n0,8\n"),
        ],
    ),
    (
        "skeletons",
        [
            (
                "a.csv",
                "x,y,z,object_id,vertex.radius\n0.0,0.0,0.0,5,0.5\n1.0,1.0,1.0,5,0.25\n2.0,0.0,0.0,8,1.5\n3.0,1.0,1.0,8,1.25\n",
            ),
            ("a.links.csv", "links[0],links[1]\n1,0\n3,2\n"),
            ("a.objects.csv", "object_id,object.kind\n5,a\n8,b\n"),
            ("a.groups.csv", "group,object_id\n0,5\n0,8\n"),
        ],
    ),
    (
        "graphs",
        [
            (
                "a.csv",
                "x,y,z,object_id,vertex.radius\n0.0,0.0,0.0,5,0.5\n2.0,0.0,0.0,8,1.5\n3.0,1.0,1.0,8,1.25\n11.0,1.0,1.0,5,0.25\n",
            ),
            (
                "a.links.csv",
                "links[0],links[1],link.weight\n0,3,1.5\n1,2,2.5\n",
            ),
            ("a.objects.csv", "object_id,object.kind\n5,a\n8,b\n"),
            ("a.groups.csv", "group,object_id\n0,5\n0,8\n"),
        ],
    ),
    (
        "mesh",
        [
            (
                "a.csv",
                "x,y,z,object_id\n0.0,0.0,0.0,5\n1.0,0.0,0.0,5\n0.0,1.0,0.0,5\n2.0,0.0,0.0,8\n3.0,0.0,0.0,8\n2.0,1.0,0.0,8\n",
            ),
            (
                "a.links.csv",
                "links[0],links[1],links[2],link.area\n0,1,2,0.5\n3,4,5,0.25\n",
            ),
            ("a.objects.csv", "object_id,object.kind\n5,a\n8,b\n"),
            ("a.groups.csv", "group,object_id\n0,5\n0,8\n"),
        ],
    ),
];

/// Writes the tables of a kind; returns the expected result of a query of everything.
pub(crate) fn tables(bench: &Bench, files: &[(&str, &str)]) -> String {
    let mut all = String::new();
    for (name, text) in files.iter().filter(|(name, _)| !name.is_empty()) {
        bench.file(name, text);
        all += text;
    }
    all
}
