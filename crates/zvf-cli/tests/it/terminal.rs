//! Questions on a terminal, which `script` of util-linux provides.
#![expect(clippy::print_stderr, reason = "a skipped test says so")]

use std::{
    io::Write as _,
    process::{Command, Stdio},
};

use crate::{stores::Bench, text};

const QUESTION: &str = "Write it anyway? [y/N]";

/// Runs a command on a terminal with `input`. Returns the exit code and everything that it
/// prints; `None` without `script`.
#[track_caller]
fn on_terminal(bench: &Bench, line: &[&str], input: &str) -> Option<(i32, String)> {
    let words: Vec<String> = line
        .iter()
        .map(|word| match word.strip_prefix('@') {
            Some(name) => format!("'{}'", bench.path(name).display()),
            None => format!("'{word}'"),
        })
        .collect();
    let command = format!("'{}' {}", env!("CARGO_BIN_EXE_zvf"), words.join(" "));
    let script = Command::new("script")
        .args(["-qec", &command, "/dev/null"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut script = match script {
        Ok(script) => script,
        Err(error) => {
            eprintln!("SKIPPED: script cannot be started: {error}; install util-linux");
            return None;
        }
    };
    script
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    let output = script.wait_with_output().unwrap();
    let said = [text(&output.stdout), text(&output.stderr)].concat();
    Some((output.status.code().unwrap(), said))
}

/// Writes 20 000 points, evenly spread.
fn spread(bench: &Bench) {
    let rows = (0..20_000).map(|row| format!("{},{},{},1\n", row % 40, row / 40 % 40, row / 1600));
    bench.file("a.csv", &format!("x,y,z,a\n{}", rows.collect::<String>()));
}

const SHAPE: [&str; 2] = ["--chunk-shape", "0.5,0.5,0.5"];

#[test]
fn absurd_plans_are_confirmed_on_a_terminal() {
    let bench = Bench::new();
    spread(&bench);
    let create = ["create", "@a.zv", "--kind", "points", "--from", "@a.csv"];
    for input in ["n\n", "\n", "maybe\n"] {
        let Some((code, said)) = on_terminal(&bench, &[&create[..], &SHAPE].concat(), input) else {
            return;
        };
        assert_eq!(code, 2, "{said}");
        assert!(said.contains("60 000 files of 20 000 chunks"), "{said}");
        assert!(said.contains(QUESTION), "{said}");
        assert!(!bench.path("a.zv").exists());
    }
    // After a yes, the creation goes on, and finds that there is a store: 60 000 files take long.
    bench.says(&[&create[..], &["--quiet"]].concat());
    for input in ["y\n", "YES\n"] {
        let line = [&create[..], &SHAPE].concat();
        let Some((code, said)) = on_terminal(&bench, &line, input) else {
            return;
        };
        assert_eq!(code, 2, "{said}");
        assert_eq!(said.matches(QUESTION).count(), 1, "{said}");
        assert!(said.contains("a store already exists"), "{said}");
    }
}

/// The chunks of a store have a fixed shape, so an addition can need very many of them.
#[test]
fn additions_of_another_scale_are_confirmed() {
    let bench = Bench::new();
    bench.file("b.csv", "x,y,z,a\n0,0,0,1\n0.1,0.1,0.1,1\n");
    let create = ["create", "@a.zv", "--kind", "points", "--from", "@b.csv"];
    bench.says(&[&create[..], &SHAPE, &["--quiet"]].concat());
    spread(&bench);
    let append = ["append", "@a.zv", "--from", "@a.csv", "--out-of-bounds"];
    let said = bench.refused(&[&append[..], &["expand"]].concat());
    for sentence in [
        "the chunks of the store, 0.5,0.5,0.5, make 60 000 files of 20 000 chunks for 20 000 vertices",
        "check whether the file has the unit of the store",
        "confirm with --yes",
    ] {
        assert!(said.contains(sentence), "{said}");
    }
    let found = bench.json(&["query", "@a.zv", "--count"]);
    assert_eq!(found["vertices"], 2);
}

/// Input that is read in batches is confirmed before it is read again.
#[test]
fn input_in_batches_is_confirmed_before_its_second_pass() {
    let bench = Bench::new();
    spread(&bench);
    let create = ["create", "@a.zv", "--kind", "points", "--quiet"];
    bench.says(&[&create[..], &["--from", "@a.csv"]].concat());
    bench.says(&["query", "@a.zv", "-o", "@a.npz", "--quiet"]);
    let line = ["create", "@a.zv", "--kind", "points", "--from", "@a.npz"];
    let line = [&line[..], &["--memory", "100KiB"], &SHAPE].concat();
    for (input, sentence) in [
        ("n\n", "60 000 files of 20 000 chunks"),
        ("y\n", "a store already exists"),
    ] {
        let Some((code, said)) = on_terminal(&bench, &line, input) else {
            return;
        };
        assert_eq!(code, 2, "{said}");
        assert_eq!(said.matches(QUESTION).count(), 1, "{said}");
        assert!(said.contains(sentence), "{said}");
    }
}
