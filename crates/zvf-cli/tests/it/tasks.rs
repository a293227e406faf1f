//! Plans of tasks that a fake scheduler runs: in random order, some twice at once, some killed.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::process::ExitStatusExt as _,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use serde_json::Value;

fn zvf(words: &[&str]) -> Command {
    let mut process = Command::new(env!("CARGO_BIN_EXE_zvf"));
    process.args(words).stdin(Stdio::null());
    process
}

/// Runs a command that succeeds; returns its standard output.
#[track_caller]
fn run(words: &[&str]) -> String {
    let output = zvf(words).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}: {stderr}");
    String::from_utf8(output.stdout).unwrap()
}

/// Runs a command that fails; returns its exit code and error.
#[track_caller]
fn fail(words: &[&str]) -> (Option<i32>, String) {
    let output = zvf(words).output().unwrap();
    assert!(!output.status.success(), "{words:?}");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), stderr)
}

fn json(words: &[&str]) -> Value {
    serde_json::from_str(&run(words)).unwrap()
}

/// A sequence of numbers that looks random and is the same in every run.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(end).unwrap()).unwrap()
    }
}

/// Runs the tasks of a plan as a bad cluster would: in random order, each task started twice at
/// once and often killed, until the plan says that nothing is missing. Returns the number of
/// killed processes.
pub(crate) fn schedule(plan: &str, numbers: &mut Numbers) -> usize {
    let start = |task: usize| -> Child {
        let mut process = zvf(&["task", "run", plan, "--index", &task.to_string()]);
        process.stdout(Stdio::null()).stderr(Stdio::null());
        process.spawn().unwrap()
    };
    let mut killed = 0;
    let mut is_first = true;
    for round in 0.. {
        let status = zvf(&["task", "status", plan, "--json"]).output().unwrap();
        let report: Value = serde_json::from_slice(&status.stdout).unwrap();
        let missing = report["missing"].as_array().unwrap();
        assert_eq!(status.status.success(), missing.is_empty());
        let mut missing: Vec<usize> = missing
            .iter()
            .map(|task| usize::try_from(task.as_u64().unwrap()).unwrap())
            .collect();
        if missing.is_empty() {
            return killed;
        }
        while !missing.is_empty() {
            let task = missing.swap_remove(numbers.below(missing.len()));
            let mut both = [start(task), start(task)];
            // The first task is killed at once, before it can end on any machine. After a few rounds the
            // cluster works.
            if is_first || round < 5 && numbers.below(3) > 0 {
                if !is_first {
                    // From 0.1 to 25.6 ms: tasks take 5 ms on one machine and 50 ms on another.
                    thread::sleep(Duration::from_micros(100 << numbers.below(9)));
                }
                is_first = false;
                for child in both.iter_mut().take(1 + numbers.below(2)) {
                    child.kill().unwrap();
                }
            }
            for child in &mut both {
                let ended = child.wait().unwrap();
                // SIGKILL; the others ended before it.
                killed += usize::from(ended.signal() == Some(9));
            }
        }
    }
    killed
}

fn files(folder: &Path, prefix: &str, found: &mut BTreeMap<String, Vec<u8>>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{prefix}{}", entry.file_name().into_string().unwrap());
        if entry.file_type().unwrap().is_dir() {
            files(&entry.path(), &format!("{name}/"), found);
        } else {
            found.insert(name, fs::read(entry.path()).unwrap());
        }
    }
}

/// Checks that two stores have equal files. Transactions have unique names, so of stores with
/// `transactions` those parts are left out.
#[track_caller]
fn check_equal(one: &str, other: &str, transactions: bool) {
    let read = |store: &str| {
        let mut found = BTreeMap::new();
        files(Path::new(store), "", &mut found);
        if transactions {
            let reserved: Vec<&String> = found
                .keys()
                .filter(|name| name.starts_with(".zvf/"))
                .collect();
            assert!(
                reserved
                    .iter()
                    .all(|name| name.starts_with(".zvf/log/") || *name == ".zvf/lock"),
                "{reserved:?}"
            );
            found.retain(|name, _| !name.starts_with(".zvf/"));
            let root = found.get_mut("zarr.json").unwrap();
            let mut json: Value = serde_json::from_slice(root).unwrap();
            json["attributes"]["zvf"]["id"] = Value::Null;
            *root = json.to_string().into_bytes();
        }
        found
    };
    let (one, other) = (read(one), read(other));
    assert!(one.len() > 20);
    let names = |files: &BTreeMap<String, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&one), names(&other));
    let differ: Vec<&String> = one
        .iter()
        .filter(|(name, bytes)| other.get(*name) != Some(*bytes))
        .map(|(name, _)| name)
        .collect();
    assert!(differ.is_empty(), "{differ:?}");
}

/// Writes an npz file of a kind by way of a store.
pub(crate) fn input(folder: &Path, kind: &str) -> String {
    let at = |name: &str| folder.join(name).display().to_string();
    let rows = (0..900).map(|at| {
        let (path, step) = (at / 20, f64::from(at % 20));
        let word = ["soma", "axon", ""][usize::try_from(at % 3).unwrap()];
        format!("{},{path}.5,1.25,{path},0.{at},{word}\n", step * 1.5)
    });
    let header = "x,y,z,object_id,v,word\n".to_owned();
    let csv: String = [header].into_iter().chain(rows).collect();
    fs::write(at("a.csv"), csv).unwrap();
    run(&[
        "create",
        &at("a.zv"),
        "--from",
        &at("a.csv"),
        "--kind",
        kind,
    ]);
    run(&["query", &at("a.zv"), "-o", &at("a.npz")]);
    at("a.npz")
}

#[test]
fn a_bad_cluster_builds_the_same_stores_as_one_process() {
    for (kind, more, seed) in [
        ("points", &["--shard=2,2,2", "--attribute-unit=v=mm"][..], 7),
        (
            "streamlines",
            &[
                "--crs=EPSG:25832",
                "--step-links",
                "--describe=word=part of a cell",
            ],
            11,
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).display().to_string();
        let npz = input(folder.path(), kind);
        let design = [
            "--from",
            &npz,
            "--kind",
            kind,
            "--chunk-shape=8,8,8",
            "--name=n",
        ];
        let design = [&design[..], more].concat();
        run(&[&["create", &at("one.zv")][..], &design].concat());
        let plan = at("jobs/plan.json");
        let many = at("many.zv");
        let words = [
            "task",
            "plan",
            &plan,
            "--tasks=5",
            "--json",
            "create",
            &many,
        ];
        let planned = json(&[&words[..], &design].concat());
        assert_eq!(planned["tasks"], 5);
        assert_eq!(planned["committed"], false);
        let (_, said) = fail(&["info", &many]);
        assert!(said.contains("is not complete"), "{said}");
        let (code, said) = fail(&["task", "commit", &plan]);
        assert!(said.contains("of 5 tasks are not done"), "{said}");
        assert_eq!(code, Some(2));
        let mut numbers = Numbers(seed);
        let mut killed = schedule(&plan, &mut numbers);
        let report = json(&["task", "commit", &plan, "--json"]);
        assert_eq!(report["report"]["vertices"], 900);
        check_equal(&at("one.zv"), &many, false);
        // Tasks that a scheduler repeats after the commit have no effect.
        assert_eq!(
            json(&["task", "run", &plan, "--index=3", "--json"])["repeated"],
            true
        );
        assert_eq!(json(&["task", "commit", &plan, "--json"]), report);
        assert_eq!(
            json(&["task", "status", &plan, "--json"])["committed"],
            true
        );
        check_equal(&at("one.zv"), &many, false);

        run(&["pyramid", &at("one.zv"), "--levels=2"]);
        for level in [1, 2] {
            let words = ["task", "plan", &plan, "--tasks=4", "--json"];
            let planned = json(&[&words[..], &["pyramid", &many, "--levels=2"]].concat());
            assert_eq!(planned["level"], level);
            killed += schedule(&plan, &mut numbers);
            let report = json(&["task", "commit", &plan, "--json"]);
            assert_eq!(report["report"]["level"], level);
            assert_eq!(report, json(&["task", "commit", &plan, "--json"]));
        }
        check_equal(&at("one.zv"), &many, true);
        let words = [
            "task",
            "plan",
            &plan,
            "--json",
            "pyramid",
            &many,
            "--levels=2",
        ];
        let planned = json(&words);
        assert_eq!(
            (&planned["tasks"], &planned["committed"]),
            (&0.into(), &true.into())
        );
        run(&["task", "commit", &plan]);
        run(&["validate", &many, "--level=4"]);
        assert!(killed > 0, "no task was killed");
    }
}

#[test]
fn a_bad_cluster_validates_as_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let npz = input(folder.path(), "streamlines");
    let store = at("one.zv");
    run(&[
        "create",
        &store,
        "--from",
        &npz,
        "--kind=streamlines",
        "--chunk-shape=8,8,8",
    ]);
    run(&["pyramid", &store, "--levels=1"]);
    let plan = at("jobs/plan.json");
    let mut numbers = Numbers(13);
    for (is_sound, more) in [
        (true, &[][..]),
        (false, &[]),
        (false, &["--limit=1", "--level=3"]),
    ] {
        if !is_sound {
            let mut found = BTreeMap::new();
            files(Path::new(&store), "", &mut found);
            let mut cells = found.keys().filter(|file| file.contains("vertices/c/"));
            fs::remove_file(Path::new(&store).join(cells.next().unwrap())).unwrap();
        }
        for format in [&[][..], &["--json"]] {
            let words = ["task", "plan", &plan, "--tasks=5", "validate", &store];
            let said = run(&[&words[..], more].concat());
            assert_eq!(said, format!("{plan}: 5 tasks to validate {store}\n"));
            let (code, said) = fail(&["task", "commit", &plan]);
            assert!(said.contains("5 of 5 tasks are not done"), "{said}");
            assert_eq!(code, Some(2));
            schedule(&plan, &mut numbers);
            let words = [&["validate", &store][..], more, format].concat();
            let one = zvf(&words).output().unwrap();
            let commit = [&["task", "commit", &plan][..], format].concat();
            for _ in 0..2 {
                let joined = zvf(&commit).output().unwrap();
                let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
                assert_eq!(text(&joined.stdout), text(&one.stdout));
                assert_eq!(joined.status, one.status);
                assert_eq!(joined.status.success(), is_sound);
            }
            let status = json(&["task", "status", &plan, "--json"]);
            assert_eq!(
                (&status["job"], &status["committed"]),
                (&"validate".into(), &true.into())
            );
        }
    }
}

/// Writes tables of a graph, of skeletons or of triangles. Links connect neighbouring rows, and
/// rows that are far from each other.
fn linked_tables(folder: &Path, kind: &str) -> String {
    let at = |name: &str| folder.join(name).display().to_string();
    let rows = (0..600).map(|at| {
        let (row, step) = (at / 20, f64::from(at % 20));
        format!(
            "{},{row}.5,1.25,{},0.{at}\n",
            step * 1.5,
            (at / 40) * 7 % 15
        )
    });
    let header = "x,y,z,object_id,v\n".to_owned();
    let csv: String = [header].into_iter().chain(rows).collect();
    fs::write(at("a.csv"), csv).unwrap();
    let links: Vec<String> = match kind {
        // Each vertex follows the one before in its object, or the one five before.
        "skeletons" => (0..600)
            .filter(|at| at % 40 > 0)
            .map(|at| {
                let back = if at % 40 > 5 && at % 7 == 0 { 5 } else { 1 };
                format!("{at},{}\n", at - back)
            })
            .collect(),
        "graphs" => (0..600)
            .map(|at| format!("{at},{},{at}.5\n", (at * 37 + 11) % 600))
            .collect(),
        _ => (0..598)
            .map(|at| format!("{at},{},{},{at}.5\n", at + 1, (at * 37 + 1) % 600))
            .collect(),
    };
    let links = links.concat();
    let header = match kind {
        "skeletons" => "links[0],links[1]\n",
        "graphs" => "links[0],links[1],link.w\n",
        _ => "links[0],links[1],links[2],link.w\n",
    };
    fs::write(at("a.links.csv"), [header, &links].concat()).unwrap();
    at("a.csv")
}

#[test]
fn tasks_store_links_that_connect_any_chunks() {
    for (kind, more, seed) in [
        ("skeletons", &["--shard=2,2,2"][..], 3),
        ("graphs", &["--attribute-unit=link.w=mm"], 5),
        ("mesh", &["--shard=2,2,2"], 9),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).display().to_string();
        let csv = linked_tables(folder.path(), kind);
        // Graphs and meshes in npz files are read in batches.
        run(&["convert", &csv, &at("a.npz"), "--kind", kind]);
        for (number, from) in [csv, at("a.npz")].iter().enumerate() {
            let (one, many) = (
                at(&format!("{number}/one.zv")),
                at(&format!("{number}/many.zv")),
            );
            let plan = at(&format!("{number}.json"));
            let design = [
                "--from",
                from,
                "--kind",
                kind,
                "--chunk-shape=8,8,8",
                "--name=n",
            ];
            let design = [&design[..], more].concat();
            run(&[&["create", &one][..], &design].concat());
            let words = [
                "task",
                "plan",
                &plan,
                "--tasks=5",
                "--json",
                "create",
                &many,
            ];
            let planned = json(&[&words[..], &design, &["--memory=1MiB"]].concat());
            assert_eq!(planned["tasks"], 5);
            let (code, said) = fail(&["task", "commit", &plan]);
            assert!(said.contains("of 5 tasks are not done"), "{said}");
            assert_eq!(code, Some(2));
            let killed = schedule(&plan, &mut Numbers(seed));
            assert!(killed > 0, "no task was killed");
            let report = json(&["task", "commit", &plan, "--json"]);
            assert_eq!(report["report"]["vertices"], 600);
            assert_eq!(json(&["task", "commit", &plan, "--json"]), report);
            check_equal(&one, &many, false);
            run(&["validate", &many, "--level=4"]);
        }
    }
}

#[test]
fn unfinished_plans_are_replaced_on_request_only() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let npz = input(folder.path(), "points");
    let (one, two, store) = (at("one.json"), at("two.json"), at("new.zv"));
    let create = [
        "create",
        &store,
        "--from",
        &npz,
        "--kind=points",
        "--chunk-shape=8,8,8",
    ];
    let plan = |to: &str, more: &[&str]| {
        let words = ["task", "plan", to, "--tasks=2"];
        zvf(&[&words[..], more, &create].concat()).output().unwrap()
    };
    assert!(plan(&one, &[]).status.success());
    run(&["task", "run", &one, "--index=0"]);
    // Neither another plan nor `zvf create` discards the work.
    let refused = plan(&two, &[]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(
        !refused.status.success() && said.contains("--restart"),
        "{said}"
    );
    let (_, said) = fail(&create);
    assert!(said.contains("--overwrite"), "{said}");
    assert_eq!(json_of_failure(&one)["missing"], serde_json::json!([1]));
    // A new plan does, on request; the old one says so.
    assert!(plan(&two, &["--restart"]).status.success());
    for verb in [
        &["run", &one, "--index=1"][..],
        &["commit", &one],
        &["status", &one],
    ] {
        let (code, said) = fail(&[&["task"][..], verb].concat());
        assert!(said.contains("plan again"), "{said}");
        assert_eq!(code, Some(2));
    }
    let (_, said) = fail(&["task", "run", &two, "--index=2"]);
    assert!(
        said.contains("the plan has 2 tasks, counted from 0"),
        "{said}"
    );
    for index in ["--index=1", "--index=0"] {
        run(&["task", "run", &two, index]);
    }
    run(&["task", "commit", &two]);
    let (_, said) = fail(&["task", "status", &at("none.json")]);
    assert!(said.contains("there is no plan"), "{said}");
    fs::write(
        at("bad.json"),
        "{\"zvf_task_plan\": 3, \"tasks\": 0, \"parts\": 1}",
    )
    .unwrap();
    let (_, said) = fail(&["task", "status", &at("bad.json")]);
    assert!(said.contains("it is not a plan"), "{said}");

    // A level is not committed after another change of the store.
    run(&[
        "task",
        "plan",
        &one,
        "--tasks=1",
        "pyramid",
        &store,
        "--levels=1",
    ]);
    run(&["delete", &store, "--object", "0"]);
    for verb in [&["run", &one, "--index=0"][..], &["commit", &one]] {
        let (_, said) = fail(&[&["task"][..], verb].concat());
        assert!(
            said.contains("plan again") || said.contains("not done"),
            "{said}"
        );
    }
    let (_, said) = fail(&[
        "task",
        "plan",
        &two,
        "create",
        &at("x.zv"),
        "--from",
        &at("a.csv"),
        "--kind=polylines",
    ]);
    assert!(said.contains("cannot be divided into tasks"), "{said}");
}

/// Writes a volume of 32 x 48 x 8 voxels.
fn volume(path: &str) {
    let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (32, 48, 8), }\n";
    let mut bytes = b"\x93NUMPY\x01\0".to_vec();
    bytes.extend(u16::try_from(header.len()).unwrap().to_le_bytes());
    bytes.extend(header.bytes());
    let values = (0..32_u16 * 48 * 8).map(|at| f32::from(at.wrapping_mul(7919) % 1009) * 0.1);
    bytes.extend(values.flat_map(f32::to_le_bytes));
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_bad_cluster_samples_as_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let npz = input(folder.path(), "streamlines");
    volume(&at("v.npy"));
    let (one, many, plan) = (at("one.zv"), at("many.zv"), at("plan.json"));
    for store in [&one, &many] {
        let design = [
            "--kind=streamlines",
            "--chunk-shape=4,4,4",
            "--name=n",
            "--shard=2,1,1",
        ];
        run(&[&["create", store, "--from", &npz][..], &design].concat());
    }
    let affine = "[[1, 0, 0, 0.5], [0, 1, 0, 0.25], [0, 0, 1, 2], [0, 0, 0, 1]]";
    fs::write(at("affine.json"), affine).unwrap();
    let matrix = format!("--affine={}", at("affine.json"));
    let mut numbers = Numbers(23);
    let mut killed = 0;
    for more in [
        &["--memory=4000"][..],
        &["--overwrite", "--interp=nearest", "--outside=-1", &matrix],
        &["--reduce=object:mean", "--interp=cubic", &matrix],
        &["--reduce=object:max", "--overwrite", "--outside=edge"],
    ] {
        let volume = at("v.npy");
        let args = [&["--into=t1"][..], more].concat();
        let sampled = json(&[&["sample", &one, &volume, "--json"][..], &args].concat());
        let words = ["task", "plan", &plan, "--tasks=5", "--json", "sample"];
        let planned = json(&[&words[..], &[&many, &volume], &args].concat());
        assert_eq!(
            (&planned["job"], &planned["tasks"]),
            (&"sample".into(), &5.into())
        );
        let (_, said) = fail(&["task", "commit", &plan]);
        assert!(said.contains("of 5 tasks are not done"), "{said}");
        killed += schedule(&plan, &mut numbers);
        let report = json(&["task", "commit", &plan, "--json"]);
        assert_eq!(report["report"]["vertices"], 900);
        assert_eq!(report["report"]["chunks"], sampled["chunks"]);
        assert_eq!(report["report"]["bytes_written"], sampled["bytes_written"]);
        assert_eq!(json(&["task", "commit", &plan, "--json"]), report);
        let again = json(&["task", "run", &plan, "--index=2", "--json"]);
        assert_eq!(again["repeated"], true);
        check_equal(&one, &many, true);
    }
    assert!(killed > 0, "no task was killed");
    run(&["validate", &many, "--level=4"]);

    // Tasks count vertices outside the volume. The volume may not move.
    let words = ["task", "plan", &plan, "--tasks=1", "sample", &many];
    run(&[&words[..], &[&at("v.npy"), "--into=t2"]].concat());
    fs::rename(at("v.npy"), at("w.npy")).unwrap();
    let (_, said) = fail(&["task", "run", &plan, "--index=0"]);
    assert!(said.contains("v.npy does not exist"), "{said}");
    fs::rename(at("w.npy"), at("v.npy")).unwrap();
    let ran = run(&["task", "run", &plan, "--index=0"]);
    assert!(
        ran.contains("task 0 is done, ") && ran.contains(" outside"),
        "{ran}"
    );
    run(&["delete", &many, "--object", "0"]);
    let (code, said) = fail(&["task", "commit", &plan]);
    assert!(said.contains("plan again"), "{said}");
    assert_eq!(code, Some(2));
    let words = ["task", "plan", &plan, "sample", &many];
    let (_, said) = fail(&[&words[..], &[&at("v.npy"), "--into=t1"]].concat());
    assert!(said.contains("--overwrite"), "{said}");
}

#[test]
fn a_bad_cluster_migrates_as_one_process() {
    let mut killed = 0;
    for (kind, seed) in [("streamlines", 3), ("graphs", 5), ("mesh", 7)] {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).display().to_string();
        let from = match kind {
            "streamlines" => input(folder.path(), kind),
            _ => linked_tables(folder.path(), kind),
        };
        let design = ["--chunk-shape=4,4,4", "--kind", kind, "--from", &from];
        run(&[&["create", &at("old.zv")][..], &design].concat());
        if kind != "mesh" {
            run(&["pyramid", &at("old.zv"), "--levels=1"]);
        }
        let mut source = at("old.zv");
        for (number, profile) in ["0.8", "0.9"].iter().enumerate() {
            let (one, many) = (at(&format!("1/{number}.zv")), at(&format!("2/{number}.zv")));
            let plan = at(&format!("{number}.json"));
            let args = ["--profile", profile, "--compression=zstd"];
            let migrated = json(&[&["migrate", &source, &one, "--json"][..], &args].concat());
            let words = ["task", "plan", &plan, "--tasks=5", "--json", "migrate"];
            let planned = json(&[&words[..], &[&source, &many], &args].concat());
            assert_eq!(
                (&planned["job"], &planned["tasks"]),
                (&"migrate".into(), &5.into())
            );
            let (_, said) = fail(&["info", &many]);
            assert!(said.contains("is not complete"), "{said}");
            killed += schedule(&plan, &mut Numbers(seed));
            let report = json(&["task", "commit", &plan, "--json"]);
            assert_eq!(report["report"], migrated);
            assert_eq!(json(&["task", "commit", &plan, "--json"]), report);
            check_equal(&one, &many, false);
            source = many;
        }
        let (_, said) = fail(&["task", "plan", "p.json", "migrate", &at("old.zv"), &source]);
        assert!(said.contains("choose another address"), "{said}");
        let words = ["task", "plan", "p.json", "migrate", "--overwrite"];
        let (_, said) = fail(&[&words[..], &[&at("old.zv"), &source]].concat());
        assert!(said.contains("tasks cannot overwrite a store"), "{said}");
    }
    assert!(killed > 0, "no task was killed");
}

/// The status of a plan with missing tasks.
fn json_of_failure(plan: &str) -> Value {
    let output = zvf(&["task", "status", plan, "--json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn tasks_export_what_one_command_exports() {
    for (kind, more, seed) in [
        ("points", &[][..], 3),
        ("streamlines", &["--sharded", "--url=http://localhost"], 5),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).display().to_string();
        let (store, npz) = (at("b.zv"), input(folder.path(), kind));
        let words = ["create", &store, "--kind", kind, "--from", &npz];
        run(&[&words[..], &["--chunk-shape=8,8,8"]].concat());
        let contents = |folder: &str| {
            let mut found = BTreeMap::new();
            files(Path::new(folder), "", &mut found);
            found
        };
        let (one, many, plan) = (at("one"), at("many"), at("plan.json"));
        let export = ["export", "precomputed", &store];
        let whole = json(&[&export[..], &[&one, "--json"], more].concat());
        let words = ["task", "plan", &plan, "--tasks=5", "--json"];
        let planned = json(&[&words[..], &export, &[&many], more].concat());
        assert_eq!(planned["job"], "export precomputed");
        assert_eq!(planned["tasks"], 5);
        let (code, said) = fail(&["task", "commit", &plan]);
        assert!(said.contains("of 5 tasks are not done"), "{said}");
        assert_eq!(code, Some(2));
        let words = ["task", "plan", &plan, "--tasks=5"];
        let again = [&words[..], &export, &[&many], more].concat();
        let (_, said) = fail(&again);
        assert!(said.contains("is reserved by an unfinished plan"), "{said}");
        let words = ["task", "plan", &plan, "--tasks=5", "--restart"];
        run(&[&words[..], &export, &[&many], more].concat());
        schedule(&plan, &mut Numbers(seed));
        assert!(!Path::new(&many).exists());
        let mut report = json(&["task", "commit", &plan, "--json"])["report"].take();
        assert!(contents(&one) == contents(&many), "{kind}");
        for (layer, other) in report["layers"]
            .as_array_mut()
            .unwrap()
            .iter_mut()
            .zip(whole["layers"].as_array().unwrap())
        {
            layer["folder"] = other["folder"].clone();
        }
        report["folder"] = whole["folder"].clone();
        assert_eq!(report, whole);
        assert!(run(&["task", "commit", &plan]).contains(": committed"));
        let repeated = json(&["task", "run", &plan, "--index=3", "--json"]);
        assert_eq!(repeated["repeated"], true);
        let status = json(&["task", "status", &plan, "--json"]);
        assert_eq!(status["committed"], true);
        assert!(contents(&one) == contents(&many), "{kind}");
    }
}
