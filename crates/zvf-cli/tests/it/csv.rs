//! CSV files, compared as text.

use std::{fs, io::Write as _};

use crate::{
    results::{graph, in_axes, mesh, nothing, paths, points, text, words, written},
    stores::Bench,
};

#[test]
fn points_have_a_column_per_channel() {
    let expected = "\
x,y,z,object_id,vertex.radius,vertex.kind,vertex.rgb[0],vertex.rgb[1],vertex.rgb[2],vertex.flag,vertex.big,vertex.half,vertex.wave,fragment.label
0.1,2.0,-3.0,7,0.1,\"a,\"\"b\"\"\",255,0,1,true,9007199254740993,1.5,1.0-2.5j,été
1e20,0.0,5e-7,-1,,,2,3,4,false,-1,,0.0+0.1j,été
7.0,8.0,9.0,-2,NaN,\"\",,,,true,5,-0.099975586,-0.0+NaNj,β
";
    assert_eq!(text(&points(), "a.csv"), expected);
}

/// Tables were read whole, whatever --memory.
#[test]
fn tables_of_points_are_read_in_batches_within_the_memory() {
    let bench = Bench::new();
    let rows = (0..20_000_u32).map(|row| {
        let (x, y) = (row * 7919 % 1009, row * 104_729 % 997);
        format!("{x}.5,{y},{},{row},n{}", row % 7, row % 50)
    });
    let lines: Vec<String> = ["x,y,object_id,q,name".to_owned()]
        .into_iter()
        .chain(rows)
        .collect();
    bench.file("a.csv", &lines.join("\n"));
    bench.file(
        "a.objects.csv",
        "object_id,object.kind\n0,a\n1,b\n2,a\n3,\n4,e\n5,f\n6,g\n",
    );
    let create = |store: &str, file: &str, more: &[&str]| {
        let line = [
            "create",
            store,
            "--kind",
            "points",
            "--from",
            file,
            "--chunk-shape",
            "300,300",
        ];
        bench.says(&[&line[..], more].concat());
    };
    create(
        "@whole.zv",
        "@a.csv",
        &["--rename", "q=size", "--unit", "micrometer"],
    );
    let expected = bench.result("@whole.zv", &[]);
    assert!(
        expected.starts_with("x,y,object_id,vertex.name,vertex.size\n"),
        "{}",
        &expected[..60]
    );
    for file in ["@b.parquet", "@b.arrow", "@b.csv"] {
        bench.says(&["query", "@whole.zv", "-o", file, "--quiet"]);
    }
    let new: &[&str] = &["--rename", "q=size", "--unit", "micrometer"];
    for (file, more) in [
        ("@a.csv", new),
        ("@b.parquet", &[]),
        ("@b.arrow", &[]),
        ("@b.csv", &[]),
    ] {
        create("@part.zv", file, &[more, &["--memory", "1MiB"]].concat());
        assert!(bench.result("@part.zv", &[]) == expected, "{file}");
        let info = bench.json(&["info", "@part.zv"]);
        assert_eq!(info["axis_details"][0]["unit"], "micrometer", "{file}");
        fs::remove_dir_all(bench.path("part.zv")).unwrap();
    }
    let line = [
        "create",
        "@part.zv",
        "--kind",
        "points",
        "--from",
        "@a.csv",
        "--workers",
        "2",
    ];
    bench.says(&line);
}

/// A result that exceeds --memory was refused.
#[test]
fn tables_larger_than_the_memory_are_written_in_batches() {
    let bench = Bench::new();
    let rows = (0..40_000_u32).map(|row| {
        let (x, y) = (row / 20 * 7919 % 1009, row % 20 + row / 20 * 104_729 % 977);
        // Text that looks like numbers in some batches.
        let code = if x < 300 { "seven" } else { "7" };
        format!("{x}.5,{y},{},{row},n{},{code}", row / 20, row % 50)
    });
    let header = "x,y,object_id,q,name,code".to_owned();
    let lines: Vec<String> = [header].into_iter().chain(rows).collect();
    bench.file("a.csv", &lines.join("\n"));
    let objects = (0..2000).map(|id| format!("{id},k{}", id % 3));
    let header = "object_id,object.kind".to_owned();
    let lines: Vec<String> = [header].into_iter().chain(objects).collect();
    bench.file("a.objects.csv", &lines.join("\n"));
    let members = (0..2000).step_by(2).map(|id| format!("1,{id}"));
    let lines: Vec<String> = ["group,object_id".to_owned()]
        .into_iter()
        .chain(members)
        .collect();
    bench.file("a.groups.csv", &lines.join("\n"));
    for kind in ["points", "polylines", "graphs"] {
        if kind == "graphs" {
            let links = (1..40_000).map(|row| format!("{},{row}", row - 1));
            let header = "links[0],links[1]".to_owned();
            let lines: Vec<String> = [header].into_iter().chain(links).collect();
            bench.file("a.links.csv", &lines.join("\n"));
        }
        let line = ["create", "@a.zv", "--kind", kind, "--from", "@a.csv"];
        let shape = [
            "--chunk-shape",
            "100,100",
            "--overwrite",
            "--yes",
            "--quiet",
        ];
        bench.says(&[&line[..], &shape].concat());
        for end in ["csv", "parquet", "arrow"] {
            let read = |name: &str, memory: &[&str]| {
                let (file, back) = (format!("@{name}.{end}"), format!("@{name}_{end}.csv"));
                let line = ["query", "@a.zv", "-o", &file, "--quiet"];
                bench.says(&[&line[..], memory].concat());
                bench.says(&["convert", &file, &back, "--kind", kind, "--quiet"]);
                ["", ".links", ".objects", ".groups"].map(|part| {
                    let table = bench.path(&format!("{name}_{end}{part}.csv"));
                    fs::read_to_string(table).unwrap_or_default()
                })
            };
            let [whole, parts] = [read("whole", &[]), read("parts", &["--memory", "2MiB"])];
            assert_eq!(whole[0].lines().count(), 40_001, "{kind} {end}");
            assert!(whole == parts, "{kind} {end}");
            assert_eq!(whole[1].is_empty(), kind != "graphs");
            assert_eq!(parts[2].lines().count(), 2001, "{kind} {end}");
            assert_eq!(parts[3].lines().count(), 1001, "{kind} {end}");
        }
        let nothing = [
            "query",
            "@a.zv",
            "--where",
            "q < 0",
            "-o",
            "@none.csv",
            "--quiet",
        ];
        bench.says(&nothing);
        let none = fs::read_to_string(bench.path("none.csv")).unwrap();
        assert!(
            none.starts_with("x,y,") && none.lines().count() == 1,
            "{none}"
        );
    }
}

#[test]
fn objects_and_groups_are_tables_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let found = written(&points(), folder.path(), "a.csv").unwrap();
    let names = ["a.csv", "a.objects.csv", "a.groups.csv"];
    assert_eq!(found.files, names.map(|name| folder.path().join(name)));
    assert_eq!(found.left_out, [""; 0]);
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    let objects = "object_id,object.length,object.count\n7,0.1,18446744073709551615\n12,,\n";
    assert_eq!(read("a.objects.csv"), objects);
    assert_eq!(read("a.groups.csv"), "group,object_id\n5,12\n5,7\n");
}

#[test]
fn rows_of_paths_name_part_and_object() {
    let expected = "\
x,y,part,object_id
0.0,0.5,0,4
1.0,1.5,0,4
2.0,2.5,0,4
3.0,3.5,1,9
4.0,4.5,2,9
0.1,5.5,2,9
";
    assert_eq!(text(&paths(), "a.csv"), expected);
}

#[test]
fn links_are_a_table_with_their_attributes() {
    let folder = tempfile::tempdir().unwrap();
    written(&graph(), folder.path(), "a.csv").unwrap();
    let links = fs::read_to_string(folder.path().join("a.links.csv")).unwrap();
    assert_eq!(links, "links[0],links[1],link.weight\n1,0,1\n2,1,\n3,0,3\n");
    written(&mesh(4), folder.path(), "b.csv").unwrap();
    let links = fs::read_to_string(folder.path().join("b.links.csv")).unwrap();
    assert_eq!(links, "links[0],links[1],links[2],links[3]\n0,1,2,3\n");
}

#[test]
fn an_empty_result_is_a_header_line() {
    let folder = tempfile::tempdir().unwrap();
    let found = written(&nothing(), folder.path(), "a.csv").unwrap();
    assert_eq!(found.files, [folder.path().join("a.csv")]);
    let expected = "x,y,z,object_id,vertex.radius,vertex.kind\n";
    assert_eq!(text(&nothing(), "a.csv"), expected);
}

#[test]
fn every_number_of_axes_is_written() {
    assert_eq!(text(&in_axes(1), "a.csv"), "x\n0.25\n1.25\n");
    let five = "x,y,z,t,c\n0.25,1.25,2.25,3.25,4.25\n5.25,6.25,7.25,8.25,9.25\n";
    assert_eq!(text(&in_axes(5), "a.csv"), five);
}

/// Text is quoted if it would be read as numbers or bools.
#[test]
fn text_that_looks_like_numbers_is_quoted() {
    let mut result = in_axes(1);
    let name = |name: &str, both: &[&str]| words(name, &[0, 1], both);
    result.vertex = vec![
        name("code", &["007", "8"]),
        name("word", &["8", "a"]),
        name("flag", &["true", "false"]),
        name("blank", &["8", ""]),
    ];
    let expected = "x,vertex.code,vertex.word,vertex.flag,vertex.blank\n\
        0.25,\"007\",8,\"true\",8\n1.25,\"8\",a,\"false\",\"\"\n";
    assert_eq!(text(&result, "a.csv"), expected);
}

#[test]
fn text_with_separators_is_quoted() {
    let mut result = in_axes(1);
    result.vertex = vec![words("a,b", &[0, 1], &["two\nlines", " blank"])];
    let expected = "x,\"vertex.a,b\"\n0.25,\"two\nlines\"\n1.25,\" blank\"\n";
    assert_eq!(text(&result, "a.csv"), expected);
}

#[test]
fn tables_may_be_compressed_or_separated_by_tabs() {
    let bench = Bench::new();
    let text = "a,b,v\n1,2,0.5\n3,4,1.5\n";
    let tabs = text.replace(',', "\t");
    let packed = |text: &str| {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packer.write_all(text.as_bytes()).unwrap();
        packer.finish().unwrap()
    };
    bench.file("t.tsv", &tabs);
    fs::write(bench.path("t.csv.gz"), packed(text)).unwrap();
    fs::write(bench.path("u.TSV.gz"), packed(&tabs)).unwrap();
    let objects = packed("object_id,name\n4,x\n");
    fs::write(bench.path("o.csv.gz"), packed("a,b,object_id\n1,2,4\n")).unwrap();
    fs::write(bench.path("o.objects.csv.gz"), objects).unwrap();
    for name in ["t.tsv", "t.csv.gz", "u.TSV.gz"] {
        let from = format!("@{name}");
        bench.says(&[
            "convert", &from, "@out.csv", "--kind", "points", "--axes", "a,b",
        ]);
        let written = fs::read_to_string(bench.path("out.csv")).unwrap();
        assert_eq!(written, "a,b,vertex.v\n1,2,0.5\n3,4,1.5\n", "{name}");
    }
    let line = [
        "create",
        "@o.zv",
        "--kind",
        "points",
        "--from",
        "@o.csv.gz",
        "--axes",
        "a,b",
    ];
    bench.says(&[&line[..], &["--chunk-shape", "9,9"]].concat());
    let found = bench.result("@o.zv", &[]);
    assert!(found.contains("object_id,object.name\n4,x\n"), "{found}");
    let cut = packed(text);
    fs::write(bench.path("cut.csv.gz"), &cut[..cut.len() - 12]).unwrap();
    let line = [
        "create",
        "@c.zv",
        "--kind",
        "points",
        "--from",
        "@cut.csv.gz",
        "--axes",
        "a,b",
    ];
    let said = bench.refused(&line);
    assert!(said.starts_with("error: /cut.csv.gz"), "{said}");
}
