//! Graphs: `GraphML`, edge lists and geff.

use std::{fs, path::Path};

use zvf::{Column, ColumnValues, GeometryBuilder, NumericColumn};
use zvf_files::{FileDescription, FileReadOptions};

use crate::{
    damage::{chain, flips, prefixes, refused},
    samples::{self, GRAPHML, NODES},
};

fn read(
    path: &Path,
    options: &FileReadOptions,
) -> Result<(GeometryBuilder, FileDescription), String> {
    let mut reader = zvf_files::open(path, options).map_err(|error| chain(&error))?;
    let geometry = zvf_files::read_whole(reader.as_mut()).map_err(|error| chain(error.as_ref()))?;
    Ok((geometry.into_builder(), reader.description().clone()))
}

fn read_text(name: &str, text: &str) -> (GeometryBuilder, FileDescription) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, text).unwrap();
    read(&path, &FileReadOptions::default()).unwrap()
}

#[track_caller]
fn column<'a>(columns: &'a [Column], name: &str) -> &'a Column {
    let found = columns.iter().find(|column| column.name == name);
    found.unwrap_or_else(|| panic!("{name} among {columns:?}"))
}

fn numbers(column: &Column) -> &NumericColumn {
    let ColumnValues::Numeric(numbers) = &column.values else {
        panic!("{} is text", column.name);
    };
    numbers
}

#[test]
fn graphml_has_nodes_edges_and_their_attributes() {
    let (graph, description) = read_text("a.graphml", GRAPHML);
    assert_eq!(
        graph.positions,
        NumericColumn::float64(2, [0.5, 1.0, 2.0, 3.0, 4.0, 5.0])
    );
    assert_eq!(graph.links.ends, [0, 1, 1, 2]);
    assert!(description.directed);
    let ids = column(&graph.vertex, "node_id");
    assert_eq!(ids.texts().flatten().collect::<Vec<_>>(), ["a", "b", "c"]);
    let degrees = numbers(column(&graph.vertex, "mean degree"));
    assert_eq!(degrees.to_vec::<i32>().unwrap(), [7, 9, 7]);
    assert_eq!(numbers(column(&graph.vertex, "seen")).bytes, [1, 0, 1]);
    let weights = numbers(column(&graph.link, "weight"));
    assert_eq!(weights.to_vec::<f32>().unwrap(), [1.5, 2.5]);
    let kinds = column(&graph.link, "kind");
    assert_eq!((kinds.text_at(0), kinds.is_null(1)), (Some("road"), true));
    assert!(!description.header.contains_key("names"));
    assert_eq!(description.header["graph"]["title"], "roads & paths");
}

#[test]
fn axes_name_the_coordinates_of_nodes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.graphml");
    fs::write(&path, GRAPHML).unwrap();
    let mut options = FileReadOptions::default();
    options.axes = ["y", "x", "mean degree"].map(str::to_owned).to_vec();
    let (graph, description) = read(&path, &options).unwrap();
    let expected = [1.0, 0.5, 7.0, 3.0, 2.0, 9.0, 5.0, 4.0, 7.0];
    assert_eq!(graph.positions, NumericColumn::float64(3, expected));
    assert_eq!(description.axes[2].name, "mean degree");
    options.axes = vec!["lon".to_owned()];
    let error = read(&path, &options).unwrap_err();
    assert!(error.contains("no attributes lon"), "{error}");
}

#[test]
fn errors_of_graphml_name_place_and_reason() {
    let with = |from: &str, to: &str| {
        assert!(GRAPHML.contains(from));
        refused("a.graphml", GRAPHML.replace(from, to).as_bytes())
    };
    let deep = "<a>".repeat(40);
    let cases = [
        (
            with("target=\"c\"", "target=\"z\""),
            "ends in the node \"z\"",
        ),
        (
            with("<node id=\"c\">", "<node id=\"a\">"),
            "\"a\" occurs twice",
        ),
        (
            with("<data key=\"d1\">5</data>", ""),
            "the node \"c\" has no number y",
        ),
        (
            with(">5</data>", ">five</data>"),
            "\"five\" is not a number",
        ),
        (with(">5</data>", ">nan</data>"), "a coordinate is NaN"),
        (
            with("key=\"d4\">2.5", "key=\"d9\">2.5"),
            "no element key declares it",
        ),
        (
            with("attr.type=\"int\"", "attr.type=\"vector\""),
            "attr.type is vector",
        ),
        (with("\"directed\"", "\"both\""), "edgedefault is both"),
        (with(" source=\"b\"", ""), "no attribute source"),
        (
            with(
                "</graph>",
                "</graph><graph edgedefault=\"directed\"></graph>",
            ),
            "several graphs",
        ),
        (
            with("<node id=\"c\">", "<hyperedge/><node id=\"c\">"),
            "hyperedges",
        ),
        (with("<graph ", &format!("{deep}<graph ")), "nested deeper"),
        (
            with("<graphml", "<!DOCTYPE a [<!ENTITY b 'c'>]><graphml"),
            "defines entities",
        ),
        (
            with("attr.name=\"x\"", "attr.name=\"lon\""),
            "no attributes x, y",
        ),
        (refused("a.graphml", b"<graphml/>"), "an element graph"),
    ];
    for (error, reason) in cases {
        assert!(error.contains(reason), "{reason:?} not in {error:?}");
    }
}

/// A default of a megabyte is kept once, and not for each of 10,000 nodes.
#[test]
fn defaults_are_kept_once() {
    let long = "a".repeat(1 << 20);
    let nodes = (0..10_000).map(|id| {
        format!("<node id='{id}'><data key='x'>{id}</data><data key='y'>0</data></node>")
    });
    let key = |name: &str, of: &str| {
        format!("<key id='{name}' for='node' attr.name='{name}' attr.type='{of}'>")
    };
    let text = format!(
        "<graphml>{}</key>{}</key>{}<default>{long}</default></key><graph edgedefault='undirected'>{}</graph></graphml>",
        key("x", "double"),
        key("y", "double"),
        key("label", "string"),
        nodes.collect::<String>()
    );
    let (graph, _) = read_text("a.graphml", &text);
    let labels = column(&graph.vertex, "label");
    assert_eq!(labels.text_at(9_999).map(str::len), Some(1 << 20));
}

/// Regression test: a file of 600 kB took all memory, because 4,000 attributes of its last edge had a cell
/// for each edge.
#[test]
fn attributes_of_few_rows_are_limited_before_they_have_all_rows() {
    let folder = tempfile::tempdir().unwrap();
    let key = |id: &str, of: &str| {
        format!("<key id='{id}' for='{of}' attr.name='{id}' attr.type='double'/>")
    };
    let keys = (0..2000).map(|at| key(&format!("k{at}"), "node"));
    let cells = (0..2000).map(|at| format!("<data key='k{at}'>{at}</data>"));
    let place = "<data key='x'>1</data><data key='y'>2</data>";
    let nodes = (0..2000).map(|id| format!("<node id='{id}'>{place}</node>"));
    let graphml = format!(
        "<graphml>{}{}{}<graph edgedefault='directed'>{}<node id='last'>{place}{}</node></graph></graphml>",
        key("x", "node"),
        key("y", "node"),
        keys.collect::<String>(),
        nodes.collect::<String>(),
        cells.collect::<String>(),
    );
    let list = "a b\n".repeat(2000) + "a b" + &" 1".repeat(2000) + "\n";
    let nodes = folder.path().join("n.csv");
    fs::write(&nodes, "id,x,y\na,0,0\nb,1,1\n").unwrap();
    for (name, text, with) in [
        ("a.graphml", graphml, Vec::new()),
        ("a.edgelist", list, vec![nodes]),
    ] {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        let mut options = FileReadOptions::default();
        options.with = with;
        options.unpacked = 1 << 20;
        let error = read(&path, &options).unwrap_err();
        assert!(
            error.contains("unpacks to more than 1048576 bytes"),
            "{error}"
        );
        options.unpacked = 64 << 20;
        let (graph, _) = read(&path, &options).unwrap();
        let columns = graph.vertex.iter().chain(&graph.link);
        let last = columns.clone().last().unwrap();
        assert!(columns.count() > 2000 && last.is_null(0) && !last.is_null(2000));
    }
}

#[test]
fn damaged_graphml_is_refused_or_read() {
    prefixes("a.graphml", GRAPHML.trim_end().as_bytes(), false);
    flips("a.graphml", GRAPHML.as_bytes(), 31);
}

fn edges(list: &str, nodes: &str) -> Result<(GeometryBuilder, FileDescription), String> {
    let folder = tempfile::tempdir().unwrap();
    let (path, table) = (
        folder.path().join("a.edgelist"),
        folder.path().join("nodes.csv"),
    );
    fs::write(&path, list).unwrap();
    fs::write(&table, nodes).unwrap();
    let mut options = FileReadOptions::default();
    options.with = vec![table];
    read(&path, &options)
}

#[test]
fn edge_lists_take_coordinates_from_a_table() {
    let lists = [
        "# comment\na b 1.5\nb 7 2\n",
        "source,target,weight\na,b,1.5\nb,7,2\n",
        "a\tb\t{'weight': 1.5}\nb\t7\t{'weight': 2}",
    ];
    for list in lists {
        let (graph, description) = edges(list, NODES).unwrap();
        assert_eq!(graph.links.ends, [0, 1, 1, 2], "{list}");
        let weights = numbers(column(&graph.link, "weight"));
        assert_eq!(weights.to_vec::<f64>().unwrap(), [1.5, 2.0], "{list}");
        assert_eq!(
            graph.positions.to_vec::<f64>().unwrap()[6..],
            [2.5, 3.0, 4.0]
        );
        let regions = column(&graph.vertex, "region");
        assert_eq!(
            (regions.text_at(0), regions.is_null(2)),
            (Some("left, upper"), true)
        );
        assert_eq!(column(&graph.vertex, "node_id").text_at(2), Some("7"));
        assert_eq!(description.axes.len(), 3);
    }
    let (graph, _) = edges(
        "a b {'weight': 1, 'name': 'x'}\nb 7 {'name': \"it's\"}\n",
        NODES,
    )
    .unwrap();
    let weights = column(&graph.link, "weight");
    assert_eq!((weights.is_null(0), weights.is_null(1)), (false, true));
    assert_eq!(column(&graph.link, "name").text_at(1), Some("it's"));
}

#[test]
fn errors_of_edge_lists_name_file_line_and_reason() {
    let cases = [
        (
            edges("a b\na z\n", NODES),
            "a.edgelist, line 2: an edge ends in the node \"z\"",
        ),
        (edges("a\n", NODES), "line 1: the number of fields is 1"),
        (
            edges("a b {'w': [1]}\n", NODES),
            "line 1: the dictionary of an edge",
        ),
        (
            edges("a b\n", "id,x,y\na,0\n"),
            "nodes.csv, line 2: fields: 2 found, 3 declared",
        ),
        (
            edges("a b\n", "id,x,y\na,0,1\na,0,1\n"),
            "\"a\" occurs twice",
        ),
        (
            edges("a b\n", "id,x,y\na,0,1\nb,0,\n"),
            "the node \"b\" has no number y",
        ),
        (
            edges("a b\n", "id,lon,lat\na,0,1\nb,0,1\n"),
            "no attributes x, y",
        ),
        (edges("", "id,x,y\n"), "holds no vertices"),
    ];
    for (found, reason) in cases {
        let error = found.unwrap_err();
        assert!(error.contains(reason), "{reason:?} not in {error:?}");
    }
    let error = refused("a.edgelist", b"a b\n");
    assert!(error.contains("--with"), "{error}");
}

/// Ids that are different texts stay different, and integers of attributes are not rounded.
#[test]
fn ids_and_large_integers_of_graphs_are_kept() {
    let large = ["9223372036854775809", "18446744073709551615"];
    for ids in [["1.1", "1.10"], ["007", "7"], large] {
        let [one, two] = ids;
        let node = |id: &str, x: u8| {
            format!("<node id='{id}'><data key='x'>{x}</data><data key='y'>0</data></node>")
        };
        let text = format!(
            "<graphml><key id='x' attr.type='double'/><key id='y' attr.type='double'/>\
             <graph edgedefault='directed'>{}{}\
             <edge id='{one}' source='{one}' target='{two}'/>\
             <edge id='{two}' source='{two}' target='{one}'/></graph></graphml>",
            node(one, 0),
            node(two, 1)
        );
        let (graph, _) = read_text("a.graphml", &text);
        let list = format!("{one} {two} {}\n{two} {one} {}\n", large[0], large[1]);
        let nodes = format!("id,x,y\n{one},0,0\n{two},1,0\n");
        let (listed, _) = edges(&list, &nodes).unwrap();
        for (columns, name, expected) in [
            (&graph.vertex, "node_id", ids),
            (&graph.link, "edge_id", ids),
            (&listed.vertex, "node_id", ids),
            (&listed.link, "weight", large),
        ] {
            let texts: Vec<&str> = column(columns, name).texts().flatten().collect();
            assert_eq!(texts, expected, "{name}");
        }
    }
    // Coordinates are numbers all the same.
    let nodes = format!("id,x,y\na,0.5,0\nb,{},0\n", large[1]);
    let (graph, _) = edges("a b\n", &nodes).unwrap();
    let expected = [0.5, 0.0, 18_446_744_073_709_551_615.0, 0.0];
    assert_eq!(graph.positions, NumericColumn::float64(2, expected));
}

fn geff(folder: &Path, change: impl Fn(&str, &mut Vec<u8>)) {
    for (name, mut bytes) in samples::geff_members() {
        change(name, &mut bytes);
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        if bytes != b"absent" {
            fs::write(path, bytes).unwrap();
        }
    }
}

#[test]
fn geff_has_nodes_edges_and_their_properties() {
    let folder = tempfile::tempdir().unwrap();
    geff(folder.path(), |_, _| {});
    let (graph, description) = read(folder.path(), &FileReadOptions::default()).unwrap();
    assert_eq!(
        graph.positions,
        NumericColumn::float64(2, [0.0, 0.5, 1.0, 1.5, 2.0, 2.5])
    );
    assert_eq!(graph.links.ends, [0, 1, 1, 2]);
    assert_eq!(graph.owners.ids(), Some([0, 0, 0].as_slice()));
    assert!(description.directed);
    assert_eq!(
        (
            description.axes[0].kind.as_str(),
            description.axes[1].unit.as_deref()
        ),
        ("time", Some("micrometer"))
    );
    assert_eq!(
        column(&graph.vertex, "cell type")
            .texts()
            .flatten()
            .collect::<Vec<_>>(),
        ["ab", "cd", "e"]
    );
    let score = column(&graph.vertex, "score");
    assert_eq!(score.nulls, Some(vec![false, true, false]));
    assert_eq!(numbers(score).to_vec::<f64>().unwrap(), [1.0, 2.0, 3.0]);
    let ids = numbers(column(&graph.vertex, "node_id"));
    assert_eq!(ids.to_vec::<u64>().unwrap(), [4, 9, 5]);
    assert_eq!(
        numbers(column(&graph.link, "w")).to_vec::<f32>().unwrap(),
        [0.5, 0.25]
    );
    assert_eq!(description.attributes["vertex"]["score"]["unit"], "mm");
    assert_eq!(description.notes.len(), 1, "{:?}", description.notes);
    assert!(description.notes[0].contains("vertex.polygon"));
}

/// Integers that float64 would round become text beside rows without a value.
#[test]
fn large_integers_of_geff_are_kept_beside_missing_rows() {
    let large = [1_u64 << 60 | 1, 0, u64::MAX];
    let with = |shape: &str, values: Vec<u64>| {
        let folder = tempfile::tempdir().unwrap();
        geff(folder.path(), |file, bytes| match file {
            "nodes/props/score/values/.zarray" => {
                let text = String::from_utf8(bytes.clone()).unwrap();
                *bytes = text.replace(">i2", "<u8").replace("[3]", shape).into();
            }
            "nodes/props/score/values/0" => {
                *bytes = values
                    .iter()
                    .flat_map(|value| value.to_le_bytes())
                    .collect();
            }
            _ => {}
        });
        if shape != "[3]" {
            let chunks = folder.path().join("nodes/props/score/values");
            fs::rename(chunks.join("0"), chunks.join("0.0")).unwrap();
        }
        read(folder.path(), &FileReadOptions::default())
    };
    let (graph, _) = with("[3]", large.to_vec()).unwrap();
    let score = column(&graph.vertex, "score");
    let texts: Vec<Option<&str>> = score.texts().collect();
    assert_eq!(
        texts,
        [
            Some("1152921504606846977"),
            None,
            Some("18446744073709551615")
        ]
    );
    // A row without a value may have any number.
    let (graph, _) = with("[3]", vec![1 << 53, u64::MAX, 7]).unwrap();
    let score = numbers(column(&graph.vertex, "score"));
    assert_eq!(score.to_vec::<f64>().unwrap()[2].to_bits(), 7f64.to_bits());
    let error = with("[3, 2]", large.repeat(2)).map(|_| ()).unwrap_err();
    assert!(error.contains("give all rows a value"), "{error}");
}

/// Absent chunks have the fill value, and take no memory beyond the rows of the array.
#[test]
fn absent_chunks_of_geff_have_the_fill_value() {
    let with = |changes: &[(&str, &str, &str)], chunks: &[(&str, &[u8])]| {
        let folder = tempfile::tempdir().unwrap();
        geff(folder.path(), |file, bytes| {
            for (_, from, to) in changes.iter().filter(|(name, ..)| *name == file) {
                let text = String::from_utf8(bytes.clone()).unwrap();
                assert!(text.contains(from), "{text}");
                *bytes = text.replace(from, to).into_bytes();
            }
        });
        for (name, bytes) in chunks {
            match bytes {
                [] => fs::remove_file(folder.path().join(name)).unwrap(),
                bytes => fs::write(folder.path().join(name), bytes).unwrap(),
            }
        }
        read(folder.path(), &FileReadOptions::default())
    };
    let missing = "nodes/props/score/missing/.zarray";
    let lineage = "nodes/props/lineage/values/.zarray";
    let score = "nodes/props/score/values/.zarray";
    // A chunk of 2 GiB for three rows.
    let chunks = ("\"chunks\": [3]", "\"chunks\": [2147483648]");
    for (fill, nulls) in [("0", None), ("true", Some(vec![true; 3]))] {
        let fill = format!("\"fill_value\": {fill}");
        let changes = [
            (missing, chunks.0, chunks.1),
            (missing, "\"fill_value\": 0", &fill),
        ];
        let (graph, _) = with(&changes, &[("nodes/props/score/missing/0", &[])]).unwrap();
        assert_eq!(column(&graph.vertex, "score").nulls, nulls);
    }
    // The second of two chunks is absent.
    let changes = [
        (lineage, "\"chunks\": [3]", "\"chunks\": [2]"),
        (lineage, "\"fill_value\": 0", "\"fill_value\": 7"),
    ];
    let present = [("nodes/props/lineage/values/0", &[4, 5][..])];
    let (graph, _) = with(&changes, &present).unwrap();
    assert_eq!(graph.owners.ids(), Some([4, 5, 7].as_slice()));
    // Nor is a fill value needed without absent chunks.
    let halves = (score, ">i2", "<f2");
    for fill in ["null", "1.5"] {
        let fill = format!("\"fill_value\": {fill}");
        let changes = [halves, (score, "\"fill_value\": 0", &fill)];
        let (graph, _) = with(&changes, &[]).unwrap();
        assert_eq!(column(&graph.vertex, "score").len(), 3);
    }
    let absent = [("nodes/props/score/values/0", &[][..])];
    let changes = [halves, (score, "\"fill_value\": 0", "\"fill_value\": 1.5")];
    let (graph, _) = with(&changes, &absent).unwrap();
    let ColumnValues::Numeric(scores) = &column(&graph.vertex, "score").values else {
        panic!("scores are numbers");
    };
    assert_eq!(scores.bytes, [0x00, 0x3e].repeat(3));
    let changes = [(score, "\"fill_value\": 0", "\"fill_value\": 1.5")];
    let error = with(&changes, &absent).unwrap_err();
    assert!(error.contains("the fill value is 1.5"), "{error}");
}

#[test]
fn damaged_geff_is_refused() {
    let with = |name: &str, from: &str, to: &str| {
        let folder = tempfile::tempdir().unwrap();
        geff(folder.path(), |file, bytes| {
            if file == name {
                *bytes = match from {
                    "" => to.into(),
                    from => {
                        let text = String::from_utf8(bytes.clone()).unwrap();
                        assert!(text.contains(from), "{text}");
                        text.replace(from, to).into_bytes()
                    }
                };
            }
        });
        read(folder.path(), &FileReadOptions::default())
            .map(|_| ())
            .unwrap_err()
    };
    let cases = [
        (with(".zattrs", "\"1.3\"", "\"0.4\""), "geff_version is 0.4"),
        (
            with(".zattrs", "\"x\", \"type\"", "\"w\", \"type\""),
            "no attributes t, w",
        ),
        (
            with(".zattrs", "\"score\"", "\"a/../../b\""),
            "the name of a property",
        ),
        (with("nodes/ids/0", "", "absent"), "nodes/ids/0"),
        (with("nodes/ids/0", "", "short"), "not 24"),
        (
            with("nodes/ids/.zarray", "[3]", "[4000000000000]"),
            "unpacks to more than",
        ),
        (with("nodes/ids/.zarray", "<u8", "<f8"), "ids are integers"),
        (
            with(".zattrs", "", "[1]"),
            "has no format with this extension",
        ),
        (
            with(
                "nodes/props/t/values/.zarray",
                "\"shape\": [3]",
                "\"shape\": [3, 0]",
            ),
            "cannot be used",
        ),
        (
            with("nodes/props/t/values/.zarray", "[3]", "[2]"),
            "2 found, 3 declared",
        ),
        (
            with("nodes/props/t/values/.zarray", "null", "{\"id\": \"lzma\"}"),
            "compressor is",
        ),
        (
            with("nodes/props/t/values/.zarray", "<i8", "<M8[ns]"),
            "dtype is",
        ),
        (
            with("nodes/props/t/values/.zarray", "", "absent"),
            "no array values",
        ),
        (
            with("edges/ids/.zarray", "[2, 2]", "[2, 1]"),
            "the width of edges is 1",
        ),
        (
            with("edges/ids/0.1", "", "1234567812345678"),
            "an edge ends in the node",
        ),
    ];
    for (error, reason) in cases {
        assert!(error.contains(reason), "{reason:?} not in {error:?}");
    }
    let empty = tempfile::tempdir().unwrap();
    let path = empty.path().join("a.geff");
    fs::create_dir(&path).unwrap();
    let error = read(&path, &FileReadOptions::default()).unwrap_err();
    assert!(error.contains("no attribute geff"), "{error}");
}
