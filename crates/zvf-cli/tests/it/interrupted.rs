//! Commands that are interrupted by SIGINT and SIGTERM.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};

use crate::{stores::Bench, text};

/// Number of points, one to a chunk: commands write several files for each, and are still at it when
/// the first ones are seen, in memory as on a disk.
const POINTS: usize = 2_000;

/// Writes a table of points, each in a chunk of its own.
fn points(bench: &Bench) {
    let rows = (0..POINTS).map(|at| format!("{}.5,{}.5,{at}\n", at % 50, at / 50));
    let table: String = rows.collect();
    bench.file("a.csv", &format!("x,y,fa\n{table}"));
}

const CREATE: [&str; 9] = [
    "create",
    "@a.zv",
    "--kind",
    "points",
    "--from",
    "@a.csv",
    "--chunk-shape",
    "1,1",
    "--quiet",
];

/// Starts a command, waits until `has_begun` holds, and sends a signal. Returns the error output.
#[track_caller]
fn interrupted(
    bench: &Bench,
    line: &[&str],
    has_begun: impl Fn() -> bool,
    (signal, code): (Signal, i32),
) -> String {
    let mut child = start(bench, line);
    while !has_begun() {
        let ended = child.try_wait().unwrap();
        assert_eq!(ended, None, "{line:?} ended before the signal");
        std::thread::yield_now();
    }
    let id = Pid::from_child(&child);
    kill_process(id, signal).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = text(&output.stderr).to_owned();
    assert_eq!(output.status.code(), Some(code), "{line:?}: {said}");
    assert_eq!(text(&output.stdout), "", "{line:?}");
    said
}

fn start(bench: &Bench, line: &[&str]) -> Child {
    let line = line.iter().map(|word| match word.strip_prefix('@') {
        Some(name) => bench.path(name).into_os_string(),
        None => word.into(),
    });
    let mut command = Command::new(env!("CARGO_BIN_EXE_zvf"));
    command.args(line);
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Counts the files below a folder, up to `most`.
fn files(folder: &Path, most: usize) -> usize {
    let Ok(entries) = fs::read_dir(folder) else {
        return 0;
    };
    let mut count = 0;
    for entry in entries.flatten() {
        count += match entry.file_type() {
            Ok(kind) if kind.is_dir() => files(&entry.path(), most - count),
            _ => 1,
        };
        if count >= most {
            break;
        }
    }
    count
}

const SIGNALS: [(Signal, i32); 2] = [(Signal::INT, 130), (Signal::TERM, 143)];

fn line_of(signal: Signal) -> String {
    let name = if signal == Signal::INT {
        "SIGINT"
    } else {
        "SIGTERM"
    };
    format!("interrupted by {name}: what is committed stays, and the next run replaces the rest\n")
}

#[test]
fn create_can_be_repeated() {
    for (signal, code) in SIGNALS {
        let bench = Bench::new();
        points(&bench);
        let store = bench.path("a.zv");
        let said = interrupted(&bench, &CREATE, || files(&store, 50) >= 50, (signal, code));
        assert_eq!(said, line_of(signal));
        assert_eq!(bench.names(), ["a.csv", "a.zv"]);
        let said = bench.refused(&["info", "@a.zv"]);
        assert!(said.contains("was interrupted"), "{said}");
        bench.says(&CREATE);
        let info = bench.json(&["info", "@a.zv"]);
        assert_eq!(info["levels"][0]["vertices"], POINTS);
        assert_eq!(bench.code(&["validate", "@a.zv"]), Some(0));
    }
}

#[test]
fn pyramid_and_migrate_can_be_repeated() {
    let bench = Bench::new();
    points(&bench);
    bench.says(&CREATE);
    let store = bench.path("a.zv");
    let before = files(&store, usize::MAX);
    let pyramid = ["pyramid", "@a.zv", "--levels", "1"];
    let has_begun = || files(&store, before + 50) >= before + 50;
    let said = interrupted(&bench, &pyramid, has_begun, (Signal::INT, 130));
    assert_eq!(said, line_of(Signal::INT));
    let info = bench.json(&["info", "@a.zv"]);
    assert_eq!(info["levels"].as_array().unwrap().len(), 1);
    bench.says(&pyramid);
    let info = bench.json(&["info", "@a.zv"]);
    assert_eq!(info["levels"].as_array().unwrap().len(), 2);
    assert_eq!(bench.code(&["validate", "@a.zv"]), Some(0));

    let migrate = ["migrate", "@a.zv", "@b.zv", "--profile", "0.8"];
    let target = bench.path("b.zv");
    let said = interrupted(
        &bench,
        &migrate,
        || files(&target, 50) >= 50,
        (Signal::TERM, 143),
    );
    assert_eq!(said, line_of(Signal::TERM));
    bench.says(&migrate);
    let info = bench.json(&["info", "@b.zv"]);
    assert_eq!(info["levels"][0]["vertices"], POINTS);
}

#[test]
fn query_leaves_no_temporary_file() {
    let bench = Bench::new();
    points(&bench);
    bench.says(&CREATE);
    let is_staged = || bench.names().iter().any(|name| name.starts_with(".zvf-"));
    let mut child = start(&bench, &["query", "@a.zv", "-o", "@b.csv", "--quiet"]);
    // The query may end before the signal.
    while !is_staged() && child.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    let _ = kill_process(Pid::from_child(&child), Signal::INT);
    child.wait_with_output().unwrap();
    assert!(!is_staged(), "{:?}", bench.names());
}

/// Runs a command that cannot write files above 2 KiB, as on a full disk, and returns its error
/// output.
#[track_caller]
fn limited(bench: &Bench, line: &[&str]) -> String {
    let mut command = Command::new("sh");
    // Blocks of 512 or 1,024 bytes; without the signal, writes fail.
    command.args(["-c", "trap '' XFSZ; ulimit -f 2; exec \"$0\" \"$@\""]);
    command.arg(env!("CARGO_BIN_EXE_zvf"));
    command.args(line.iter().map(|word| match word.strip_prefix('@') {
        Some(name) => bench.path(name).into_os_string(),
        None => word.into(),
    }));
    let output = command.output().unwrap();
    let said = text(&output.stderr).to_owned();
    assert_eq!(output.status.code(), Some(2), "{line:?}: {said}");
    assert!(said.contains("File too large"), "{line:?}: {said}");
    said
}

#[test]
fn failed_writes_can_be_repeated() {
    let bench = Bench::new();
    let number = |at: u32| f64::from(at.wrapping_mul(2_654_435_761) % 1_000_003) / 7.0;
    let rows = (0..3_000).map(|at| format!("{},{},{}\n", number(at), at, number(at + 9)));
    let table: String = rows.collect();
    bench.file("a.csv", &format!("x,y,fa\n{table}"));
    let create = ["create", "@a.zv", "--kind", "points", "--from", "@a.csv"];
    limited(&bench, &create);
    bench.says(&create);
    assert_eq!(bench.code(&["validate", "@a.zv"]), Some(0));
    let before = bench.result("@a.zv", &[]);

    let migrate = ["migrate", "@a.zv", "@b.zv", "--profile", "0.8"];
    limited(&bench, &migrate);
    bench.says(&migrate);
    assert_eq!(bench.result("@b.zv", &[]), before);

    let append = ["append", "@a.zv", "--from", "@a.csv"];
    limited(&bench, &append);
    assert_eq!(bench.result("@a.zv", &[]), before);
    bench.says(&append);
    let info = bench.json(&["info", "@a.zv"]);
    assert_eq!(info["levels"][0]["vertices"], 6_000);
    assert_eq!(bench.code(&["validate", "@a.zv"]), Some(0));

    bench.file("b.csv", "old");
    limited(&bench, &["query", "@a.zv", "-o", "@b.csv"]);
    assert_eq!(fs::read_to_string(bench.path("b.csv")).unwrap(), "old");
    let staged = bench
        .names()
        .into_iter()
        .find(|name| name.starts_with(".zvf-"));
    assert_eq!(staged, None);
}

/// Returns the state of a process and the process that started it; `None` if it has ended.
#[cfg(target_os = "linux")]
fn state_and_parent(process: &str) -> Option<(char, u32)> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name of the program is in parentheses and may contain spaces.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let state = fields.next()?.chars().next()?;
    Some((state, fields.next()?.parse().ok()?))
}

/// Returns the processes that a process has started.
#[cfg(target_os = "linux")]
fn children(parent: u32) -> Vec<String> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let has_parent =
        |name: &String| state_and_parent(name).is_some_and(|(_, found)| found == parent);
    names.filter(has_parent).collect()
}

/// Returns whether a process has ended. A dead one may be left until it is waited for.
#[cfg(target_os = "linux")]
fn has_ended(process: &str) -> bool {
    state_and_parent(process).is_none_or(|(state, _)| matches!(state, 'Z' | 'X'))
}

/// Waits until a condition holds, for as long as a loaded machine may take.
#[cfg(target_os = "linux")]
#[track_caller]
fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let start = std::time::Instant::now();
    while !holds() {
        assert!(start.elapsed().as_secs() < 60, "{what} took too long");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

/// The task waits for its file, a pipe without a writer, when the process that started it
/// is killed.
#[cfg(target_os = "linux")]
#[test]
fn a_task_of_a_killed_process_ends() {
    let bench = Bench::new();
    let task = bench.path("task");
    let made = Command::new("mkfifo").arg(&task).status().unwrap();
    assert!(made.success());
    let mut child = Command::new(env!("CARGO_BIN_EXE_zvf"))
        .args(["task", "file", "--until-stdin-ends"])
        .arg(&task)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(std::time::Duration::from_millis(200));
    assert_eq!(
        child.try_wait().unwrap(),
        None,
        "the task has something to wait for"
    );
    drop(child.stdin.take());
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

#[cfg(target_os = "linux")]
#[test]
fn a_killed_command_leaves_no_working_process() {
    let bench = Bench::new();
    let rows = (0..300_000).map(|at| format!("{}.5,{}.5,{at}\n", at % 50, at / 50 % 40));
    let table: String = rows.collect();
    bench.file("a.csv", &format!("x,y,fa\n{table}"));
    bench.says(&CREATE);
    let line = [
        "pyramid",
        "@a.zv",
        "--levels",
        "1",
        "--workers",
        "2",
        "--overwrite",
    ];
    // On a busy machine a command may end before its tasks are seen.
    let seen = (0..20).find_map(|_| {
        let mut child = start(&bench, &line);
        let id = Pid::from_child(&child);
        loop {
            if !children(child.id()).is_empty() {
                // A process that is stopped starts no other task.
                kill_process(id, Signal::STOP).unwrap();
                let tasks = children(child.id());
                if !tasks.iter().all(|task| has_ended(task)) {
                    break Some((child, tasks));
                }
                kill_process(id, Signal::CONT).unwrap();
            }
            if child.try_wait().unwrap().is_some() {
                break None;
            }
        }
    });
    let (mut child, tasks) = seen.unwrap();
    kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
    wait_until("ending all tasks", || {
        tasks.iter().all(|task| has_ended(task))
    });
    child.wait().unwrap();
    // The remaining output is ignored.
    bench.says(&line);
}

/// A folder is in the way of a file that is written after the commit.
#[test]
fn a_committed_change_that_cannot_be_finished_is_a_warning() {
    let bench = Bench::new();
    points(&bench);
    bench.says(&CREATE);
    let way = bench.path("a.zv/.zvf/log/1.json");
    fs::create_dir_all(way.join("in the way")).unwrap();
    bench.file("b.csv", "x,y,fa\n1.25,1.25,7\n");
    let line = ["append", "@a.zv", "--from", "@b.csv", "--json"];
    let output = start(&bench, &line).wait_with_output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("the change is committed"), "{said}");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["transaction"], 1);
    let vertices = |count: usize| {
        let info = bench.json(&["info", "@a.zv"]);
        assert_eq!(info["levels"][0]["vertices"], count);
    };
    vertices(POINTS + 1);
    // The next change cannot be made before this one is finished.
    bench.refused(&["append", "@a.zv", "--from", "@b.csv"]);
    vertices(POINTS + 1);
    fs::remove_dir_all(&way).unwrap();
    let output = start(&bench, &line).wait_with_output().unwrap();
    assert_eq!(text(&output.stderr), "");
    vertices(POINTS + 2);
    let root = fs::read_to_string(bench.path("a.zv/zarr.json")).unwrap();
    assert!(!root.contains("pending"));
}

/// The export is killed, as a machine that loses its power does it, and continued.
#[test]
fn a_killed_export_is_continued() {
    let bench = Bench::new();
    points(&bench);
    // Neuroglancer needs a unit, and warns without one.
    let units = ["--axes", "x:micrometer,y:micrometer"];
    bench.says(&[CREATE.as_slice(), &units].concat());
    let export = ["export", "precomputed", "@a.zv", "@out", "--quiet"];
    bench.says(&["export", "precomputed", "@a.zv", "@whole", "--quiet"]);
    let hidden = bench.path(".out.zvf-export");
    for most in [1, 40, 200] {
        let mut child = start(&bench, &export);
        while files(&hidden, most) < most && child.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
    if !bench.path("out").exists() {
        bench.says(&export);
    }
    assert!(!hidden.exists());
    let whole = contents(&bench.path("whole"));
    assert!(whole.len() > POINTS && whole == contents(&bench.path("out")));
}

/// Returns the files below a folder, by path.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = PathBuf::from(path.file_name().unwrap());
        if path.is_dir() {
            found.extend(
                contents(&path)
                    .into_iter()
                    .map(|(below, bytes)| (name.join(below), bytes)),
            );
        } else {
            drop(found.insert(name, fs::read(&path).unwrap()));
        }
    }
    found
}
