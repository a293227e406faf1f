//! `zvf serve` and `zvf view`, as a user runs it. `crates/zvf-serve` tests the protocol and the layers.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, Command, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::{sample::nifti, stores::Bench};

fn bench() -> Bench {
    let bench = Bench::new();
    bench.file("a.csv", "x,y,z,fa\n1,2,3,0.5\n4,5,6,0.25\n7,8,8,1\n");
    bench.says(&[
        "create", "@a.zv", "--kind", "points", "--from", "@a.csv", "--quiet",
    ]);
    bench
}

#[test]
fn a_server_prints_its_link_and_ends_with_sigint() {
    let bench = bench();
    let volume = nifti([-0.5, 0.5, 0.5], [20.0, 0.0, -3.0]);
    fs::write(bench.path("scan.nii"), volume).unwrap();
    let (volume, store) = (bench.path("scan.nii"), bench.path("a.zv"));
    let (child, started) = started(
        Command::new(env!("CARGO_BIN_EXE_zvf"))
            .args(["serve", "--port", "0", "--json", "--quiet"])
            .args([store, volume]),
    );
    let address = started["address"].as_str().unwrap();
    let link = started["neuroglancer"].as_str().unwrap();
    assert!(link.ends_with(&format!("#!{address}/state.json")), "{link}");
    assert_eq!(started["state"]["layers"][0]["name"], "a");
    // Factors relate lengths, and shifts are those of a corner of voxel 0, 0, 0.
    let scan = &started["state"]["layers"][1]["source"]["transform"];
    let rows = [
        [-1.0, 0.0, 0.0, 20.25],
        [0.0, 1.0, 0.0, -0.25],
        [0.0, 0.0, 1.0, -3.25],
    ];
    assert_eq!(scan["matrix"], json!(rows));
    assert_eq!(scan["inputDimensions"]["x"], json!([0.0005, "m"]));
    assert_eq!(scan["outputDimensions"]["x"], json!([0.001, "m"]));
    let host = address.strip_prefix("http://").unwrap();
    let response = response(host, "/a/annotations/info");
    assert!(
        response.contains("\"annotation_type\":\"point\""),
        "{response}"
    );
    end(child);
}

#[test]
fn a_page_shows_stores_and_ends_with_sigint() {
    let bench = bench();
    let (child, started) = started(
        Command::new(env!("CARGO_BIN_EXE_zvf"))
            .args(["view", "--port", "0", "--json"])
            .args([bench.path("a.zv"), bench.path("a.zv")]),
    );
    let address = started["address"].as_str().unwrap();
    let link = format!("{address}/view?store=a/store&store=a_2/store");
    assert_eq!(started["link"], link);
    let host = address.strip_prefix("http://").unwrap();
    let page = response(host, "/view?store=a/store");
    assert!(page.contains("Content-Security-Policy"), "{page}");
    // Layers are not planned, and objects are those of the store.
    let root = response(host, "/a_2/store/zarr.json");
    let stored = fs::read_to_string(bench.path("a.zv/zarr.json")).unwrap();
    assert!(root.ends_with(&stored), "{root}");
    end(child);
    let why = bench.refused(&["view", "@b.zv", "--port", "0", "--json"]);
    assert!(why.contains("b.zv does not exist"), "{why}");
}

/// Starts a server, and returns what it prints.
fn started(command: &mut Command) -> (Child, Value) {
    let streams = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = streams.spawn().unwrap();
    let mut line = String::new();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    out.read_line(&mut line).unwrap();
    (child, serde_json::from_str(&line).unwrap())
}

/// Requests a path.
fn response(host: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(host).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nConnection: close\r\nHost: {host}\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
    response
}

/// Ends a server with SIGINT.
fn end(child: Child) {
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn what_cannot_be_served_is_refused() {
    let bench = bench();
    let why = bench.refused(&["serve", "@b.zv", "--port", "0"]);
    assert!(why.contains("b.zv does not exist"), "{why}");
    let why = bench.refused(&["serve", "@a.zv", "--port", "0", "--bind", "0.0.0.0"]);
    assert!(
        why.contains("other machines can reach") && why.contains("--token"),
        "{why}"
    );
    let why = bench.refused(&["serve", "@a.zv", "--port", "0", "--token", "short"]);
    assert!(why.contains("8 to 128"), "{why}");
}
