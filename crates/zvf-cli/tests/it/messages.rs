//! Messages about mistakes with options, files and predicates.

use std::fs;

use crate::stores::Bench;

/// A square of two triangles with colours, and a vertex without a face.
const SQUARE: &str = "ply\nformat ascii 1.0\ncomment made by hand\nelement vertex 5\n\
    property float x\nproperty float y\nproperty float z\nproperty uchar red\n\
    property uchar green\nproperty uchar blue\nproperty uchar alpha\nproperty float quality\n\
    element face 2\nproperty list uchar int vertex_indices\nend_header\n\
    0 0 0 1 2 3 4 0.5\n1 0 0 1 2 3 4 0.5\n1 1 0 250 2 3 4 0.5\n0 1 0 1 2 3 4 0.5\n\
    5 5 5 9 9 9 9 0.25\n3 0 1 2\n3 0 2 3\n";

fn square() -> Bench {
    let bench = Bench::new();
    bench.file("square.ply", SQUARE);
    bench.says(&["create", "@a.zv", "--from", "@square.ply"]);
    bench
}

#[track_caller]
fn check(bench: &Bench, line: &[&str], sentence: &str) {
    let said = bench.refused(line);
    assert!(said.contains(sentence), "{said}");
}

#[test]
fn values_that_an_option_does_not_take_are_explained() {
    let bench = square();
    let query = |more: &[&str], sentence: &str| {
        check(&bench, &[&["query", "@a.zv"], more].concat(), sentence);
    };
    query(&["--object", "abc"], "--where \"object.name = 'abc'\"");
    query(&["--limit", "-1"], "write an integer, 0 or more");
    query(&["--budget", "-1"], "write an integer, 0 or more");
    query(&["--group", "-1"], "write an integer, 0 or more");
    query(&["--mode", "clip"], "add --bbox or --sphere");
    let create = ["create", "@b.zv", "--from", "@square.ply", "--axes"];
    for (axes, sentence) in [
        ("x:metr,y,z", "did you mean meter?"),
        ("x:space,y,z", "write NAME::space"),
        ("x:meter:spacial,y,z", "write space, time or channel"),
    ] {
        check(&bench, &[&create[..], &[axes]].concat(), sentence);
    }
    fs::create_dir(bench.path("clouds")).unwrap();
    fs::write(bench.path("clouds/a.las"), "").unwrap();
    check(
        &bench,
        &["create", "@b.zv", "--from", "@clouds"],
        "add each further one with zvf append",
    );
}

/// `zvf query -o` writes vertices of no object or of several, which no new store holds.
#[test]
fn vertices_of_several_objects_are_explained() {
    let bench = Bench::new();
    bench.file("in.csv", "x,y,z,object_id\n1,2,3,-2\n");
    let create = ["create", "@a.zv", "--kind", "points", "--from", "@in.csv"];
    check(&bench, &create, "zvf query --no-objects");
}

#[test]
fn predicates_with_wrong_columns_are_explained() {
    let bench = square();
    for (filter, sentence) in [
        ("quality = nan", "write `is null` or `is not null`"),
        ("rgba[4] > 1", "write vertex.rgba[0] to vertex.rgba[3]"),
        ("rgba > 1", "write vertex.rgba[0] to vertex.rgba[3]"),
        ("quality[1] > 1", "has one channel; write vertex.quality"),
        ("red > 200", "red is channel 0 of rgba"),
        ("qualty > 2", "did you mean quality?"),
        (
            "quality = zzz",
            "put text to compare with in single quotes, as 'zzz'",
        ),
    ] {
        check(&bench, &["query", "@a.zv", "--where", filter], sentence);
    }
    for line in [&["--count"][..], &[]] {
        let select = ["query", "@a.zv", "--select", "qualty"];
        check(&bench, &[&select[..], line].concat(), "did you mean");
    }
    // A query whose result has no objects did not check the name.
    for line in [
        &["--no-objects"][..],
        &["--where", "x >= 10"],
        &["--explain"],
        &["--analyze"],
        &["-o", "@out.csv"],
    ] {
        let select = ["query", "@a.zv", "--select", "object.len"];
        let sentence = "there is no attribute object.len";
        check(&bench, &[&select[..], line].concat(), sentence);
    }
    let found = bench.json(&["query", "@a.zv", "--where", "rgba[0] > 200", "--count"]);
    assert_eq!(found["vertices"], 1);
}

/// The error did not say which spelling means which column.
#[test]
fn names_of_several_columns_list_their_spellings() {
    let bench = Bench::new();
    bench.file("a.csv", "x,y,z,object_id,len,k\n1,2,3,5,1.5,2\n");
    bench.file("a.objects.csv", "object_id,object.len,object.y\n5,2.5,1\n");
    bench.says(&["create", "@a.zv", "--kind", "points", "--from", "@a.csv"]);
    for (filter, sentence) in [
        ("len > 1", "write vertex.len or object.len\n"),
        ("y > 1", "write object.y, or Y for the axis\n"),
    ] {
        check(&bench, &["query", "@a.zv", "--where", filter], sentence);
    }
    for (filter, count) in [("Z = 3", 1), ("Z = 7", 0), ("Y = 2", 1)] {
        let found = bench.json(&["query", "@a.zv", "--where", filter, "--count"]);
        assert_eq!(found["vertices"], count, "{filter}");
    }
}

#[test]
fn formats_that_do_not_hold_a_result_say_which_ones_do() {
    let bench = square();
    check(
        &bench,
        &["query", "@a.zv", "-o", "@a.las"],
        "las holds points only; the result has faces; write ply, obj, stl or gii",
    );
    bench.file("lines.obj", "v 0 0 0\nv 1 0 0\nl 1 2\n");
    bench.says(&["create", "@b.zv", "--from", "@lines.obj"]);
    check(
        &bench,
        &["query", "@b.zv", "-o", "@b.laz"],
        "the result has edges; write ply, obj or csv",
    );
}

#[test]
fn files_without_streamlines_are_named() {
    let bench = Bench::new();
    let mut trk = vec![0; 1000];
    trk[..5].copy_from_slice(b"TRACK");
    for (at, value) in [
        (12, 1.0_f32),
        (16, 1.0),
        (20, 1.0),
        (440, 1.0),
        (460, 1.0),
        (480, 1.0),
        (500, 1.0),
    ] {
        trk[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }
    trk[948..951].copy_from_slice(b"RAS");
    trk[992..996].copy_from_slice(&2_i32.to_le_bytes());
    trk[996..].copy_from_slice(&1000_i32.to_le_bytes());
    fs::write(bench.path("a.trk"), trk).unwrap();
    let mut tck = b"mrtrix tracks\ndatatype: Float32LE\ncount: 0\nfile: . 67\nEND\n".to_vec();
    tck.resize(67, 0);
    tck.extend(
        [f32::INFINITY; 3]
            .iter()
            .flat_map(|number| number.to_le_bytes()),
    );
    fs::write(bench.path("a.tck"), tck).unwrap();
    for file in ["a.trk", "a.tck"] {
        let from = format!("@{file}");
        let sentence = format!("{file}: holds no vertices, and a store without vertices");
        check(&bench, &["create", "@a.zv", "--from", &from], &sentence);
    }
}

#[test]
fn levels_that_are_not_built_or_not_small_enough_are_explained() {
    let bench = square();
    let said = bench.says(&["pyramid", "@a.zv"]);
    assert!(
        said.contains("level 0 has fewer than 100 000 vertices"),
        "{said}"
    );
    assert!(said.contains("--levels N"), "{said}");
    let said = bench.says(&["query", "@a.zv", "--vertices", "3", "--count"]);
    let note = "note: no level has at most 3 vertices; level 0, the coarsest, was read";
    assert!(said.contains(note), "{said}");
    assert!(said.contains("zvf pyramid makes coarser levels"), "{said}");
    let said = bench.says(&["query", "@a.zv", "--vertices", "5", "--count"]);
    assert!(!said.contains("note"), "{said}");
}

/// Paths repeat the vertices that they share, so that a result has more than its level stores.
#[test]
fn vertices_that_paths_share_are_told_from_those_of_a_result() {
    let bench = Bench::new();
    let mut table = "x,y,z,object_id\n".to_owned();
    for track in 0..20 {
        for step in 0..50 {
            let line = format!("{step},{},0,{track}\n", f64::from(track) * 0.01);
            table.push_str(&line);
        }
    }
    bench.file("a.csv", &table);
    let create = [
        "create",
        "@a.zv",
        "--kind",
        "streamlines",
        "--from",
        "@a.csv",
    ];
    bench.says(&[&create[..], &["--chunk-shape", "100,100,100"]].concat());
    bench.says(&["pyramid", "@a.zv", "--levels", "1", "--cell", "5,5,5"]);
    let info = bench.json(&["info", "@a.zv"]);
    let stored = info["levels"][1]["vertices"].as_u64().unwrap();
    let notes = info["notes"].to_string();
    assert!(
        notes.contains("level 1 stores shared vertices once"),
        "{notes}"
    );
    let max = stored.to_string();
    let found = bench.json(&["query", "@a.zv", "--vertices", &max, "--count"]);
    assert_eq!(found["level"], 1);
    assert!(found["vertices"].as_u64().unwrap() > stored);
    let notes = found["notes"].to_string();
    assert!(notes.contains("--budget"), "{notes}");
}

fn surface(values: &str) -> String {
    let array = |intent: &str, kind: &str, shape: &str, values: &str| {
        format!(
            "<DataArray Intent=\"NIFTI_INTENT_{intent}\" DataType=\"NIFTI_TYPE_{kind}\" \
             ArrayIndexingOrder=\"RowMajorOrder\" {shape} Encoding=\"ASCII\" \
             Endian=\"LittleEndian\">{values}</DataArray>"
        )
    };
    let points = array(
        "POINTSET",
        "FLOAT32",
        "Dimensionality=\"2\" Dim0=\"3\" Dim1=\"3\"",
        "<Data>0 0 0 1 0 0 0 1 0</Data>",
    );
    let triangles = array(
        "TRIANGLE",
        "INT32",
        "Dimensionality=\"2\" Dim0=\"1\" Dim1=\"3\"",
        "<Data>0 1 2</Data>",
    );
    format!(
        "<?xml version=\"1.0\"?><GIFTI Version=\"1.0\" NumberOfDataArrays=\"3\">{points}{triangles}{values}</GIFTI>"
    )
}

const CURVATURE: &str = "<DataArray Intent=\"NIFTI_INTENT_SHAPE\" DataType=\"NIFTI_TYPE_FLOAT32\" \
    ArrayIndexingOrder=\"RowMajorOrder\" Dimensionality=\"1\" Dim0=\"3\" Encoding=\"ASCII\" \
    Endian=\"LittleEndian\"><MetaData><MD><Name>Name</Name><Value>Curvature (mm)</Value></MD>\
    </MetaData><Data>0.5 1 2</Data></DataArray>";

#[test]
fn attributes_of_every_format_can_be_renamed() {
    let bench = Bench::new();
    bench.file("a.gii", &surface(CURVATURE));
    let create = |store: &str, rename: &str| {
        bench.says(&["create", store, "--from", "@a.gii", "--rename", rename]);
    };
    create("@a.zv", "Curvature (mm)=curvature");
    create("@b.zv", "vertex.Curvature (mm)=curvature");
    for store in ["@a.zv", "@b.zv"] {
        let found = bench.json(&["query", store, "--where", "curvature > 0.75", "--count"]);
        assert_eq!(found["vertices"], 2, "{store}");
    }
    // The file that is written has the original name.
    bench.says(&["query", "@a.zv", "-o", "@b.gii"]);
    let back = fs::read_to_string(bench.path("b.gii")).unwrap();
    assert!(back.contains("Curvature (mm)"), "{back}");
    let line = [
        "create",
        "@c.zv",
        "--from",
        "@a.gii",
        "--rename",
        "Curvature=curvature",
    ];
    check(
        &bench,
        &line,
        "has no attribute Curvature; it has vertex.source_row",
    );
    bench.file("square.ply", SQUARE);
    bench.says(&[
        "create",
        "@d.zv",
        "--from",
        "@square.ply",
        "--rename",
        "quality=q",
    ]);
    let found = bench.json(&["query", "@d.zv", "--where", "q > 0.3", "--count"]);
    assert_eq!(found["vertices"], 4);
}

#[test]
fn a_file_of_an_external_array_that_is_missing_is_named() {
    let bench = Bench::new();
    let external = CURVATURE.replace(
        "Encoding=\"ASCII\"",
        "Encoding=\"ExternalFileBinary\" ExternalFileName=\"curv.bin\" ExternalFileOffset=\"0\"",
    );
    bench.file("a.gii", &surface(&external));
    let line = ["create", "@a.zv", "--from", "@a.gii"];
    check(
        &bench,
        &line,
        "ExternalFileName is curv.bin; the file does not exist",
    );
    let values: Vec<u8> = [0.5_f32, 1.0, 2.0]
        .iter()
        .flat_map(|it| it.to_le_bytes())
        .collect();
    fs::write(bench.path("curv.bin"), values).unwrap();
    bench.says(&line);
}

#[test]
fn a_file_cannot_be_given_twice() {
    let bench = Bench::new();
    bench.file("a.gii", &surface(CURVATURE));
    bench.file(
        "b.gii",
        &surface(CURVATURE).replace("Curvature", "Thickness"),
    );
    let line = ["create", "@a.zv", "--from", "@a.gii", "--with"];
    for files in [&["@a.gii"][..], &["@b.gii", "--with", "@b.gii"]] {
        check(
            &bench,
            &[&line[..], files].concat(),
            "the file is given twice",
        );
    }
}

#[test]
fn reference_systems_that_a_format_does_not_hold_are_listed() {
    let bench = Bench::new();
    bench.file("square.ply", SQUARE);
    let create = ["create", "@a.zv", "--from", "@square.ply", "--crs"];
    bench.says(&[&create[..], &["EPSG:25832", "--quiet"]].concat());
    let lost = "coordinate reference system: not supported by ";
    for end in ["ply", "obj", "stl", "gii"] {
        let file = format!("@b.{end}");
        let said = bench.says(&["query", "@a.zv", "-o", &file]);
        assert!(said.contains(&format!("{lost}{end}")), "{said}");
    }
    for end in ["npz", "csv"] {
        let file = format!("@b.{end}");
        let said = bench.says(&["query", "@a.zv", "-o", &file]);
        assert!(!said.contains(lost), "{said}");
    }
    // Frames that a format implies are kept.
    bench.file("a.csv", "x,y,z,object_id\n0,0,0,1\n1,1,1,1\n");
    let create = [
        "create",
        "@c.zv",
        "--kind",
        "streamlines",
        "--from",
        "@a.csv",
    ];
    bench.says(&create);
    bench.says(&["query", "@c.zv", "-o", "@c.trk"]);
    bench.says(&["create", "@d.zv", "--from", "@c.trk", "--quiet"]);
    let said = bench.says(&["query", "@d.zv", "-o", "@d.trk"]);
    assert!(!said.contains(lost), "{said}");
}

#[test]
fn tables_beside_a_surface_are_explained() {
    let bench = Bench::new();
    bench.file("a.gii", &surface(CURVATURE));
    bench.file("thickness.csv", "2.5\n2.25\n2.0\n");
    let create = ["create", "@a.zv", "--from", "@a.gii", "--with"];
    let sentence = "thickness.csv: a table cannot be added to a surface";
    check(
        &bench,
        &[&create[..], &["@thickness.csv"]].concat(),
        sentence,
    );
}

#[test]
fn additions_that_a_store_cannot_take_say_what_to_do() {
    let bench = Bench::new();
    bench.file("a.csv", "x,y,a\n5,5,1\n6,6,1\n");
    let create = ["create", "@a.zv", "--kind", "points", "--from", "@a.csv"];
    bench.says(&[&create[..], &["--chunk-shape", "2,2"]].concat());
    for (table, sentence) in [
        (
            "x,y,a,b\n5,5,1,1\n",
            "write it with zvf query --select NAMES",
        ),
        ("x,y,a\n-5,5,1\n", "zvf create NEW --from all.npz --bounds"),
    ] {
        bench.file("b.csv", table);
        let append = ["append", "@a.zv", "--from", "@b.csv", "--out-of-bounds"];
        check(&bench, &[&append[..], &["expand"]].concat(), sentence);
    }
}

/// "mesh need links".
#[test]
fn meshes_are_plural() {
    let bench = Bench::new();
    bench.file("a.csv", "x,y,z\n5,5,1\n6,6,1\n7,5,1\n");
    let create = ["create", "@a.zv", "--kind", "mesh", "--from", "@a.csv"];
    check(&bench, &create, "meshes need links");
}

#[test]
fn stores_below_others_are_refused() {
    let bench = square();
    let create = ["create", "@a.zv/b.zv", "--from", "@square.ply"];
    check(&bench, &create, "it is in the folder of the store /a.zv");
    check(&bench, &create, "name an address outside of it");
}

/// Their distance from the first vertex is no float32.
#[test]
fn vertices_too_far_to_draw_are_counted() {
    let bench = Bench::new();
    bench.file("a.csv", "x,y,z\n-1e38,5,1\n6,6,1\n3e38,5,1\n");
    bench.says(&["create", "@a.zv", "--kind", "points", "--from", "@a.csv"]);
    let drawn = bench.run(&["render", "@a.zv", "-o", "@a.png"]);
    let said = crate::text(&drawn.stderr);
    assert!(
        said.contains("1 vertex left out: coordinates not finite or too far away"),
        "{said}"
    );
}
