//! `zvf create --from` of damaged files of nearly every format. Each file is read, or refused with
//! an error, without a panic, a long run or a part of a store. Fuzz targets parse the formats that
//! are missing here: .pial, .edgelist, and folders of geff and of precomputed data.

use std::{
    fs,
    time::{Duration, Instant},
};

use zvf_cli::{CommandFailure, StopFlag, report};
use zvf_testkit::{sample, stores::Random};

use crate::stores::Bench;

/// Damaged files of each format in CI.
const CASES: u32 = 40;
/// A file of a few kilobytes takes milliseconds.
const LONGEST: Duration = Duration::from_secs(20);

/// Writes a file of each format, and returns the names with the kinds of their geometry.
fn files(bench: &Bench) -> Vec<(&'static str, &'static str)> {
    bench.file(
        "points.csv",
        "x,y,z,vertex.object,fa,name\n1,1,0.5,7,2.5,a\n2,5,1.5,7,3.5,b\n3,2,2.5,9,4.5,\n9,9,9,9,0.5,c\n",
    );
    bench.file(
        "mesh.obj",
        "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 2 3\nf 1 3 4\nf 2 3 4\n",
    );
    bench.file(
        "swc.swc",
        "1 1 0 0 0 1 -1\n2 3 1 0 0 1 1\n3 3 2 0 0 1 2\n4 3 1 1 0 1 2\n",
    );
    bench.file(
        "paths.csv",
        "x,y,z,object\n0,0,0.5,1\n1,0,0,1\n2,1,0,1\n5,5,5,2\n6,5,5,2\n",
    );
    let made = [
        (
            "points.csv",
            "points",
            &["csv", "npz", "arrow", "parquet", "geoparquet", "las", "laz"][..],
        ),
        ("mesh.obj", "mesh", &["gii", "ply", "obj", "stl"]),
        ("swc.swc", "skeletons", &["swc"]),
        ("paths.csv", "polylines", &["trx", "trk", "tck"]),
    ];
    let mut files = Vec::new();
    for (from, kind, ends) in made {
        let (from, store) = (format!("@{from}"), format!("@{kind}.zv"));
        bench.says(&["create", &store, "--kind", kind, "--from", &from, "--quiet"]);
        for end in ends {
            let is_missing = matches!(*end, "arrow" | "parquet" | "geoparquet")
                && cfg!(not(feature = "parquet"));
            if !is_missing {
                // Formats without text list the names as left out.
                let query = ["query", &store, "-o", &format!("@in.{end}"), "--quiet"];
                assert_eq!(bench.code(&query), Some(0), "{end}");
                files.push((*end, kind));
            }
        }
    }
    // Edges, as their programs write them.
    bench.file(
        "in.graphml",
        "<?xml version=\"1.0\"?><graphml><key id=\"x\" for=\"node\" attr.name=\"x\" attr.type=\"double\"/>\
         <key id=\"y\" for=\"node\" attr.name=\"y\" attr.type=\"double\"/><graph edgedefault=\"undirected\">\
         <node id=\"a\"><data key=\"x\">1</data><data key=\"y\">2</data></node>\
         <node id=\"b\"><data key=\"x\">3.5</data><data key=\"y\">-1</data></node>\
         <edge source=\"a\" target=\"b\"/></graph></graphml>",
    );
    files.push(("graphml", "graphs"));
    files
}

fn damaged(intact: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = intact.to_vec();
    for _ in 0..=random.below(3) {
        let at = random.below(bytes.len().max(1));
        match random.below(6) {
            0 if !bytes.is_empty() => bytes[at] ^= 1 << random.below(8),
            1 if !bytes.is_empty() => {
                bytes[at] = [0, 0xff, b'<', b'"', b',', b'9'][random.below(6)];
            }
            2 => bytes.truncate(at),
            3 => {
                let end = (at + 1 + random.below(16)).min(bytes.len());
                bytes.drain(at.min(end)..end);
            }
            4 => {
                let end = (at + 1 + random.below(64)).min(bytes.len());
                let again = bytes[at.min(end)..end].to_vec();
                bytes.splice(at..at, again);
            }
            _ => {
                // A length or count of four bytes.
                let number = [u32::MAX, 1 << 31, 0x7fff_ffff, 0][random.below(4)];
                let end = (at + 4).min(bytes.len());
                bytes[at.min(end)..end].copy_from_slice(&number.to_le_bytes()[..end - at.min(end)]);
            }
        }
    }
    bytes
}

#[test]
fn damaged_input_is_read_or_refused() {
    let bench = Bench::new();
    let files = files(&bench);
    let before = bench.names();
    let mut random = Random::new(0x00da_3a9e);
    for (end, kind) in files {
        let input = bench.path(&format!("in.{end}"));
        let intact = fs::read(&input).unwrap();
        let store = bench.path("out.zv");
        let words = ["zvf", "create", store.to_str().unwrap(), "--kind", kind]
            .into_iter()
            .chain(["--from", input.to_str().unwrap()]);
        let line: Vec<std::ffi::OsString> = words.map(Into::into).collect();
        let (mut read, mut refused, mut named) = (0, 0, 0);
        for case in 0..=sample::cases(CASES) {
            let bytes = match case {
                0 => intact.clone(),
                _ => damaged(&intact, &mut random),
            };
            fs::write(&input, &bytes).unwrap();
            let start = Instant::now();
            let outcome = report(line.clone(), &StopFlag::default());
            let took = start.elapsed();
            assert!(took < LONGEST, "{end}: {took:?} for {bytes:?}");
            match outcome {
                Ok(_) => {
                    read += 1;
                    fs::remove_dir_all(&store).unwrap();
                }
                Err(CommandFailure::Failed(text) | CommandFailure::Usage(text)) => {
                    assert!(case > 0, "{end}: the intact file is refused: {text}");
                    // An error of the geometry does not name the file.
                    named += u32::from(text.contains(&format!("in.{end}")));
                    refused += 1;
                }
                Err(other) => panic!("{other:?}"),
            }
            assert_eq!(bench.names(), before, "{end}: something is left");
        }
        fs::write(&input, &intact).unwrap();
        assert!(
            read > 0 && refused > 0 && named > 0,
            "{end}: {read} read, {refused} refused, {named} by name"
        );
    }
}
