//! `zvf create --from` of precomputed data: exports come back, and the store has the values of the
//! first one. `cargo xtask conformance --precomputed` reads what other programs write.

use std::{collections::BTreeMap, fmt::Write as _, fs};

use crate::stores::Bench;

const AXES: &str = "x:nanometer,y:nanometer,z:nanometer";
const EXPORTS: [(&str, &[&str]); 2] = [("@files", &[]), ("@shards", &["--sharded"])];

/// Creates a store of tables in nanometres.
fn create(bench: &Bench, kind: &str, chunks: &str) {
    let line = ["create", "@a.zv", "--kind", kind, "--from", "@a.csv"];
    let more = ["--axes", AXES, "--chunk-shape", chunks, "--quiet"];
    bench.says(&[&line[..], &more].concat());
}

/// Exports the store and creates another one from a folder of the export.
fn again(bench: &Bench, target: &str, options: &[&str], layer: &str, create: &[&str]) {
    let line = ["export", "precomputed", "@a.zv", target, "--quiet"];
    assert_eq!(bench.code(&[&line[..], options].concat()), Some(0));
    let source = format!("{target}/{layer}");
    let line = [
        "create",
        "@b.zv",
        "--overwrite",
        "--quiet",
        "--from",
        &source,
    ];
    bench.says(&[&line[..], create].concat());
}

/// Drops the columns of a table whose names are given.
fn without(table: &str, names: &[&str]) -> String {
    let mut lines = table
        .lines()
        .map(|line| line.split(',').collect::<Vec<_>>());
    let header = lines.next().unwrap();
    let kept: Vec<usize> = (0..header.len())
        .filter(|at| !names.contains(&header[*at]))
        .collect();
    let mut text = String::new();
    for line in std::iter::once(header).chain(lines) {
        let fields: Vec<&str> = kept.iter().map(|at| line[*at]).collect();
        writeln!(text, "{}", fields.join(",")).unwrap();
    }
    text
}

/// A coordinate with few digits that differs for every number.
fn spread(at: u32, step: u32) -> f64 {
    f64::from(at * step % 7919) / 8.0
}

#[test]
fn points_come_back_with_their_properties() {
    let bench = Bench::new();
    let mut table =
        "x,y,z,vertex.FA,vertex.depth,vertex.kind,vertex.rgb[0],vertex.rgb[1],vertex.rgb[2]\n"
            .to_owned();
    for at in 0..6000_u32 {
        let [x, y, z] = [37, 23, 11].map(|step| spread(at, step));
        let kind = ["soma", "axon"][usize::from(at % 3 == 0)];
        let fa = f64::from(at) / 64.0;
        let (depth, green) = (i64::from(at) - 70, at % 256);
        writeln!(
            table,
            "{x:?},{y:?},{z:?},{fa:?},{depth},{kind},1,{green},255"
        )
        .unwrap();
    }
    bench.file("a.csv", &table);
    create(&bench, "points", "300,300,300");
    // Colours of csv are 64-bit integers, so that they are three properties.
    let expected = bench.result("@a.zv", &[]);
    let names = |text: &str| text.replace("rgb[0]", "rgb_0").replace("rgb[1]", "rgb_1");
    let expected = names(&expected).replace("rgb[2]", "rgb_2");
    for (target, options) in EXPORTS {
        again(
            &bench,
            target,
            options,
            "annotations",
            &["--chunk-shape", "300,300,300"],
        );
        let found = bench.result("@b.zv", &[]);
        assert!(
            found
                .lines()
                .next()
                .unwrap()
                .contains("vertex.annotation_id"),
            "{found}"
        );
        let found = without(&found, &["vertex.annotation_id"]);
        assert_eq!(sorted(&found), sorted(&expected), "{target}");
        // The folder of the export has one layer.
        let line = [
            "create",
            "@c.zv",
            "--overwrite",
            "--quiet",
            "--from",
            target,
        ];
        bench.says(&line);
    }
}

/// Sorts the columns of a table by name, and its rows.
fn sorted(table: &str) -> Vec<String> {
    let mut lines = table
        .lines()
        .map(|line| line.split(',').collect::<Vec<_>>());
    let header = lines.next().unwrap();
    let order: BTreeMap<&str, usize> = header.iter().copied().zip(0..).collect();
    let mut rows: Vec<String> = std::iter::once(header.clone())
        .chain(lines)
        .map(|line| {
            let fields: Vec<&str> = order.values().map(|at| line[*at]).collect();
            fields.join(",")
        })
        .collect();
    rows[1..].sort_unstable();
    rows
}

#[test]
fn points_of_objects_come_back_with_their_objects() {
    let bench = Bench::new();
    let mut table = "x,y,z,object_id\n".to_owned();
    for at in 0..200_u32 {
        let [x, y, z] = [37, 23, 11].map(|step| spread(at, step));
        writeln!(table, "{x:?},{y:?},{z:?},{}", 5 + at % 3).unwrap();
    }
    bench.file("a.csv", &table);
    bench.file(
        "a.objects.csv",
        "object_id,object.name,object.size\n5,a,0.5\n6,b,1.5\n7,c,2.5\n",
    );
    create(&bench, "points", "300,300,300");
    let line = ["export", "precomputed", "@a.zv", "@out", "--quiet"];
    assert_eq!(bench.code(&line), Some(0));
    // The folder of the export also has the properties of the objects.
    bench.says(&[
        "create",
        "@b.zv",
        "--from",
        "@out",
        "--chunk-shape",
        "300,300,300",
        "--quiet",
    ]);
    let tables = |store: &str| {
        let result = bench.result(store, &[]);
        let (vertices, objects) = result.split_once("object_id,object.").unwrap();
        let vertices = sorted(&without(vertices, &["vertex.annotation_id"]));
        (vertices, sorted(&format!("object_id,object.{objects}")))
    };
    assert_eq!(tables("@b.zv"), tables("@a.zv"));
}

/// Paths of two to six points with an attribute of their object.
fn paths(bench: &Bench, length: impl Fn(u32) -> u32) {
    let mut table = "x,y,z,part,object_id,vertex.fa\n".to_owned();
    let mut objects = "object_id,object.size\n".to_owned();
    let mut row = 0;
    for path in 0..300_u32 {
        let object = 3 + path * 2;
        writeln!(objects, "{object},{:?}", f64::from(path) / 4.0).unwrap();
        for _ in 0..length(path) {
            let [x, y, z] = [37, 23, 11].map(|step| spread(row, step) / 10.0 * 8.0);
            let [x, y, z] = [x, y, z].map(|along| (along * 8.0).round() / 8.0);
            writeln!(
                table,
                "{x:?},{y:?},{z:?},{path},{object},{:?}",
                f64::from(row) / 8.0
            )
            .unwrap();
            row += 1;
        }
    }
    bench.file("a.csv", &table);
    bench.file("a.objects.csv", &objects);
}

/// Returns the vertices and the objects of a store of paths.
fn path_tables(bench: &Bench, store: &str, dropped: &[&str]) -> (String, Vec<String>) {
    let result = bench.result(store, &[]);
    let (vertices, objects) = result.split_once("object_id,object.").unwrap();
    let objects = without(&format!("object_id,object.{objects}"), dropped);
    (without(vertices, dropped), sorted(&objects))
}

#[test]
fn lines_and_streamlines_come_back_from_annotations() {
    for (kind, is_lines) in [("lines", true), ("streamlines", false)] {
        let bench = Bench::new();
        paths(&bench, |path| if is_lines { 2 } else { 2 + path % 5 });
        create(&bench, kind, "300,300,300");
        // Annotations have no values of vertices; their direction is a colour.
        let dropped = [
            "vertex.fa",
            "object.annotation_id",
            "object.orientation[0]",
            "object.orientation[1]",
            "object.orientation[2]",
        ];
        let expected = path_tables(&bench, "@a.zv", &dropped);
        for (target, options) in EXPORTS {
            let more = ["--kind", kind, "--chunk-shape", "300,300,300"];
            again(&bench, target, options, "annotations", &more);
            assert_eq!(
                path_tables(&bench, "@b.zv", &dropped),
                expected,
                "{kind} {target}"
            );
        }
    }
}

#[test]
fn streamlines_come_back_from_skeletons_with_values_of_vertices() {
    let bench = Bench::new();
    paths(&bench, |path| 2 + path % 5);
    create(&bench, "streamlines", "300,300,300");
    let dropped = ["vertex.dir[0]", "vertex.dir[1]", "vertex.dir[2]"];
    let expected = path_tables(&bench, "@a.zv", &dropped);
    for (target, options) in EXPORTS {
        let more = ["--kind", "streamlines", "--chunk-shape", "300,300,300"];
        again(&bench, target, options, "skeletons", &more);
        assert_eq!(path_tables(&bench, "@b.zv", &dropped), expected, "{target}");
    }
    let why = bench.refused(&["create", "@c.zv", "--from", "@files"]);
    let expected = "several layers, in the folders annotations, skeletons; name one of them";
    assert!(why.contains(expected), "{why}");
}

#[test]
fn skeletons_come_back_with_links_and_attributes() {
    let bench = Bench::new();
    let mut table = "x,y,z,object_id,vertex.radius\n".to_owned();
    let mut links = "links[0],links[1]\n".to_owned();
    let mut objects = "object_id,object.kind,object.length\n".to_owned();
    for tree in 0..9_u32 {
        let first = tree * 40;
        let id = 720_575_940_625_000_000_u64 + u64::from(tree);
        writeln!(
            objects,
            "{id},{},{:?}",
            ["a", "b"][usize::from(tree % 2 == 0)],
            f64::from(tree) / 4.0
        )
        .unwrap();
        for row in 0..40 {
            let [x, y, z] = [37, 23, 11].map(|step| spread(first + row, step));
            writeln!(table, "{x:?},{y:?},{z:?},{id},{:?}", f64::from(row) / 8.0).unwrap();
            if row > 0 {
                writeln!(links, "{},{}", first + row, first + row * 2 / 3).unwrap();
            }
        }
    }
    bench.file("a.csv", &table);
    bench.file("a.links.csv", &links);
    bench.file("a.objects.csv", &objects);
    create(&bench, "skeletons", "300,300,300");
    let expected = bench.result("@a.zv", &[]);
    for (target, options) in EXPORTS {
        let chunks = ["--chunk-shape", "300,300,300"];
        again(&bench, target, options, "skeletons", &chunks);
        let found = bench.result("@b.zv", &[]);
        assert_eq!(sorted_tables(&found), sorted_tables(&expected), "{target}");
        let graphs = [&chunks[..], &["--kind", "graphs"]].concat();
        let source = format!("{target}/skeletons");
        let line = [
            "create",
            "@c.zv",
            "--overwrite",
            "--quiet",
            "--from",
            &source,
        ];
        bench.says(&[&line[..], &graphs].concat());
    }
}

/// Positions and radii come back in the same unit.
#[test]
fn skeletons_in_micrometres_come_back_in_nanometres_with_their_radii() {
    let bench = Bench::new();
    let table = |scale: f64| {
        let mut table = "x,y,z,object_id,vertex.radius\n".to_owned();
        for row in 0..20_u32 {
            let [x, y, z] = [37, 23, 11].map(|step| spread(row, step) * scale);
            let radius = f64::from(1 + row) / 8.0 * scale;
            writeln!(table, "{x:?},{y:?},{z:?},5,{radius:?}").unwrap();
        }
        table
    };
    let links = (1..20).map(|row| format!("{row},{}\n", row / 2));
    bench.file(
        "a.links.csv",
        &format!("links[0],links[1]\n{}", links.collect::<String>()),
    );
    bench.file("a.objects.csv", "object_id,object.kind\n5,a\n");
    let made = |store: &str, scale: f64, unit: &str| {
        bench.file("a.csv", &table(scale));
        let axes = format!("x:{unit},y:{unit},z:{unit}");
        let shape = format!("{0},{0},{0}", 300.0 * scale);
        let line = ["create", store, "--kind", "skeletons", "--from", "@a.csv"];
        let more = ["--axes", &axes, "--chunk-shape", &shape, "--quiet"];
        bench.says(&[&line[..], &more].concat());
    };
    made("@a.zv", 1.0, "micrometer");
    made("@expected.zv", 1000.0, "nanometer");
    let expected = bench.result("@expected.zv", &[]);
    for (target, options) in EXPORTS {
        let chunks = ["--chunk-shape", "300000,300000,300000"];
        again(&bench, target, options, "skeletons", &chunks);
        let found = bench.result("@b.zv", &[]);
        assert_eq!(sorted_tables(&found), sorted_tables(&expected), "{target}");
    }
}

/// Returns the positions that links join, and the rows of all tables.
fn sorted_tables(result: &str) -> (Vec<String>, Vec<String>, Vec<String>) {
    let (vertices, rest) = result.split_once("links[0]").unwrap();
    let (links, objects) = rest.split_once("object_id,object.").unwrap();
    let rows: Vec<&str> = vertices.lines().skip(1).collect();
    let mut links: Vec<String> = links
        .lines()
        .skip(1)
        .map(|line| {
            let ends = line
                .split(',')
                .map(|end| rows[end.parse::<usize>().unwrap()]);
            ends.collect::<Vec<_>>().join(" > ")
        })
        .collect();
    links.sort_unstable();
    let objects = sorted(&format!("object_id,object.{objects}"));
    (sorted(vertices), links, objects)
}

/// Writes two closed boxes of triangles.
fn boxes(bench: &Bench) {
    let mut table = "x,y,z,object_id\n".to_owned();
    let mut links = "links[0],links[1],links[2]\n".to_owned();
    for (object, first, size) in [(8, 0, 100.0), (3, 8, 640.0)] {
        for corner in 0..8_u32 {
            let along = |bit: u32| f64::from(corner >> bit & 1) * size + 50.5;
            writeln!(
                table,
                "{:?},{:?},{:?},{object}",
                along(0),
                along(1),
                along(2)
            )
            .unwrap();
        }
        for [a, b, c, d] in [
            [0, 2, 3, 1],
            [4, 5, 7, 6],
            [0, 1, 5, 4],
            [2, 6, 7, 3],
            [0, 4, 6, 2],
            [1, 3, 7, 5],
        ] {
            let [a, b, c, d] = [a, b, c, d].map(|corner| corner + first);
            writeln!(links, "{a},{b},{c}\n{a},{c},{d}").unwrap();
        }
    }
    bench.file("a.csv", &table);
    bench.file("a.links.csv", &links);
    bench.file("a.objects.csv", "object_id,object.kind\n3,large\n8,small\n");
    create(bench, "mesh", "2000,2000,2000");
}

#[test]
fn single_resolution_meshes_come_back_exactly() {
    let bench = Bench::new();
    boxes(&bench);
    let expected = bench.result("@a.zv", &[]);
    let chunks = ["--chunk-shape", "2000,2000,2000"];
    again(
        &bench,
        "@files",
        &["--mesh-format", "legacy"],
        "meshes",
        &chunks,
    );
    let found = bench.result("@b.zv", &[]);
    assert_eq!(sorted_tables(&found), sorted_tables(&expected));
}

#[test]
fn multi_resolution_meshes_come_back_within_their_steps() {
    let bench = Bench::new();
    boxes(&bench);
    let (expected, _, objects) = sorted_tables(&bench.result("@a.zv", &[]));
    for (target, options) in EXPORTS {
        again(
            &bench,
            target,
            options,
            "meshes",
            &["--chunk-shape", "2000,2000,2000"],
        );
        let (found, links, found_objects) = sorted_tables(&bench.result("@b.zv", &[]));
        assert_eq!(found_objects, objects);
        assert_eq!((found.len(), links.len()), (1 + 16, 24), "{target}");
        for (found, expected) in found[1..].iter().zip(&expected[1..]) {
            let numbers = |row: &str| -> Vec<f64> {
                row.split(',').map(|field| field.parse().unwrap()).collect()
            };
            for (found, expected) in numbers(found).into_iter().zip(numbers(expected)) {
                assert!(
                    (found - expected).abs() <= 640.0 / 65_535.0,
                    "{found} {expected}"
                );
            }
        }
    }
}

#[test]
fn damaged_sources_are_named_and_leave_no_store() {
    let bench = Bench::new();
    paths(&bench, |path| 2 + path % 5);
    create(&bench, "streamlines", "300,300,300");
    let line = ["export", "precomputed", "@a.zv", "@out", "--quiet"];
    assert_eq!(bench.code(&line), Some(0));
    fs::write(bench.path("out/skeletons/7"), [0xff; 30]).unwrap();
    let why = bench.refused(&["create", "@b.zv", "--from", "@out/skeletons"]);
    assert!(why.contains("skeletons/7: the value is damaged"), "{why}");
    assert!(!bench.path("b.zv").exists());
    let why = bench.refused(&["create", "@b.zv", "--from", "@out/skeletons/properties"]);
    assert!(why.contains("holds no precomputed skeletons"), "{why}");
    fs::create_dir(bench.path("empty")).unwrap();
    let why = bench.refused(&["create", "@b.zv", "--from", "@empty"]);
    assert!(why.contains("precomputed data"), "{why}");
}
