//! PLY files, read back by an independent reader.

use zvf::{Links, QueryResult};
use zvf_files::FileFault;

use crate::results::{
    bytes, graph, in_axes, lacking, mesh, nothing, numbers, paths, points, rows, words, written,
};

/// An element as declared in the header, and its rows as numbers.
#[derive(Debug, PartialEq)]
struct Element {
    name: String,
    properties: Vec<String>,
    rows: Vec<Vec<f64>>,
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (bytes, rest) = self.0.split_first_chunk().unwrap();
        self.0 = rest;
        *bytes
    }

    fn value(&mut self, scalar: &str) -> f64 {
        match scalar {
            "char" => i8::from_le_bytes(self.take()).into(),
            "uchar" => u8::from_le_bytes(self.take()).into(),
            "short" => i16::from_le_bytes(self.take()).into(),
            "ushort" => u16::from_le_bytes(self.take()).into(),
            "int" => i32::from_le_bytes(self.take()).into(),
            "uint" => u32::from_le_bytes(self.take()).into(),
            "float" => f32::from_le_bytes(self.take()).into(),
            "double" => f64::from_le_bytes(self.take()),
            _ => panic!("ply has no type {scalar}"),
        }
    }
}

fn elements(result: &QueryResult) -> Vec<Element> {
    let bytes = bytes(result, "a.ply");
    let end = b"end_header\n";
    let at = bytes
        .windows(end.len())
        .position(|window| window == end)
        .unwrap();
    let header = core::str::from_utf8(&bytes[..at]).unwrap();
    let mut lines = header.lines();
    assert_eq!(lines.next(), Some("ply"));
    assert_eq!(lines.next(), Some("format binary_little_endian 1.0"));
    let mut elements: Vec<(usize, Element)> = Vec::new();
    for line in lines {
        let words: Vec<_> = line.split(' ').collect();
        match words[..] {
            ["comment", ..] => {}
            ["element", name, count] => {
                let name = name.to_owned();
                let (properties, rows) = (Vec::new(), Vec::new());
                let element = Element {
                    name,
                    properties,
                    rows,
                };
                elements.push((count.parse().unwrap(), element));
            }
            ["property", ..] => {
                let (_, element) = elements.last_mut().unwrap();
                element.properties.push(words[1..].join(" "));
            }
            _ => panic!("{line}"),
        }
    }
    let mut reader = Reader(&bytes[at + end.len()..]);
    let elements = elements
        .into_iter()
        .map(|(count, mut element)| {
            for _ in 0..count {
                let mut row = Vec::new();
                for property in &element.properties {
                    let words: Vec<_> = property.split(' ').collect();
                    if let ["list", count, scalar, _] = words[..] {
                        let mut left = reader.value(count);
                        while left > 0.0 {
                            row.push(reader.value(scalar));
                            left -= 1.0;
                        }
                    } else {
                        row.push(reader.value(words[0]));
                    }
                }
                element.rows.push(row);
            }
            element
        })
        .collect();
    assert!(reader.0.is_empty());
    elements
}

/// Returns the bits of numbers, so that NaN equals itself.
fn bits(rows: &[Vec<f64>]) -> Vec<Vec<u64>> {
    let rows = rows.iter();
    rows.map(|row| row.iter().map(|value| value.to_bits()).collect())
        .collect()
}

#[test]
fn scalar_attributes_are_properties() {
    let found = elements(&points());
    let [vertices] = &found[..] else {
        panic!("{found:?}");
    };
    assert_eq!(vertices.name, "vertex");
    let properties = [
        "float x",
        "float y",
        "float z",
        "int object_id",
        "float radius",
        "float red",
        "float green",
        "float blue",
        "uchar flag",
        "double big",
        "float half",
    ];
    let mut result = points();
    result.vertex[4] = numbers("big", 1, &[9_007_199_254_740_992_i64, -1, 5]);
    let found = elements(&result);
    assert_eq!(found[0].properties, properties);
    let nan = f64::NAN;
    let (tenth, half) = (f64::from(0.1_f32), -0.099_975_585_937_5);
    let expected = [
        vec![
            tenth,
            2.0,
            -3.0,
            7.0,
            tenth,
            255.0,
            0.0,
            1.0,
            1.0,
            9_007_199_254_740_992.0,
            1.5,
        ],
        vec![
            f64::from(1e20_f32),
            0.0,
            f64::from(5e-7_f32),
            -1.0,
            nan,
            2.0,
            3.0,
            4.0,
            0.0,
            -1.0,
            nan,
        ],
        vec![7.0, 8.0, 9.0, -2.0, nan, nan, nan, nan, 1.0, 5.0, half],
    ];
    assert_eq!(bits(&found[0].rows), bits(&expected));
}

#[test]
fn data_without_a_ply_type_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let found = written(&points(), folder.path(), "a.ply").unwrap();
    let expected = [
        "vertex.kind: text is not supported by ply",
        "vertex.big: integers beyond 53 bits are not supported by ply",
        "vertex.wave: complex numbers are not supported by ply",
        "fragment.label: text is not supported by ply",
        "object.length: not supported by ply",
        "object.count: not supported by ply",
        "group.5: not supported by ply",
    ];
    assert_eq!(found.left_out, expected);
}

#[test]
fn integers_use_the_smallest_sufficient_type() {
    let mut result = in_axes(1);
    result.vertex = vec![
        numbers("a", 1, &[i8::MIN, i8::MAX]),
        numbers("b", 1, &[i16::MIN, i16::MAX]),
        numbers("c", 1, &[0, u16::MAX]),
        numbers("d", 1, &[i32::MIN, i32::MAX]),
        numbers("e", 1, &[0, u32::MAX]),
        numbers("f", 1, &[-1_i64 << 31, (1 << 31) - 1]),
        numbers("g", 1, &[0_u64, 1 << 53]),
        lacking(numbers("h", 1, &[1_i16, 2]), &[true, false]),
        lacking(numbers("i", 1, &[1_u32, u32::MAX]), &[true, false]),
        // Missing values do not count.
        lacking(numbers("j", 1, &[u64::MAX, 2]), &[true, false]),
    ];
    let found = &elements(&result)[0];
    let properties = [
        "double x", "char a", "short b", "ushort c", "int d", "uint e", "int f", "double g",
        "float h", "double i", "double j",
    ];
    assert_eq!(found.properties, properties);
    let (min, max) = (-2_147_483_648.0, 2_147_483_647.0);
    let nan = f64::NAN;
    let expected = [
        vec![
            0.25, -128.0, -32768.0, 0.0, min, 0.0, min, 0.0, nan, nan, nan,
        ],
        vec![
            1.25,
            127.0,
            32767.0,
            65535.0,
            max,
            4_294_967_295.0,
            max,
            9_007_199_254_740_992.0,
            2.0,
            4_294_967_295.0,
            2.0,
        ],
    ];
    assert_eq!(bits(&found.rows), bits(&expected));
}

#[test]
fn names_are_identifiers_and_stay_distinct() {
    let mut result = in_axes(1);
    result.vertex = ["x", "a b", "a-b", "é"]
        .map(|name| numbers(name, 1, &[0_u8, 0]))
        .to_vec();
    result.fragment = vec![numbers("x", 1, &[0_u8, 0])];
    let expected = [
        "double x",
        "uchar x_",
        "uchar a_b__u20",
        "uchar a_b__u2d",
        "uchar ___ue9",
        "uchar fragment_x",
    ];
    assert_eq!(elements(&result)[0].properties, expected);
}

#[test]
fn edges_keep_their_attributes() {
    let found = elements(&graph());
    assert_eq!(
        found[0].properties,
        ["short z", "short y", "short x", "int object_id"]
    );
    assert_eq!(found[0].rows[3], [30.0, 31.0, 32.0, 1.0]);
    assert_eq!(found[1].name, "edge");
    assert_eq!(
        found[1].properties,
        ["int vertex1", "int vertex2", "double weight"]
    );
    let expected = [
        vec![1.0, 0.0, 1.0],
        vec![2.0, 1.0, f64::NAN],
        vec![3.0, 0.0, 3.0],
    ];
    assert_eq!(bits(&found[1].rows), bits(&expected));
}

#[test]
fn paths_are_edges_between_neighbours() {
    let found = elements(&paths());
    assert_eq!(
        found[0].properties,
        ["double x", "double y", "int part", "int object_id"]
    );
    assert_eq!(found[0].rows[5], [0.1, 5.5, 2.0, 9.0]);
    assert_eq!(found[1].name, "edge");
    assert_eq!(found[1].rows, [[0.0, 1.0], [1.0, 2.0], [4.0, 5.0]]);
}

#[test]
fn faces_keep_their_winding() {
    let found = elements(&mesh(3));
    assert_eq!(found[1].name, "face");
    assert_eq!(found[1].properties, ["list uchar int vertex_indices"]);
    assert_eq!(found[1].rows, [[0.0, 1.0, 2.0], [0.0, 2.0, 3.0]]);
    assert_eq!(elements(&mesh(4))[1].rows, [[0.0, 1.0, 2.0, 3.0]]);
    let wide = &elements(&mesh(256))[1];
    assert_eq!(wide.properties, ["list uint int vertex_indices"]);
    assert_eq!(wide.rows[0].len(), 256);
}

#[test]
fn empty_results_and_every_number_of_axes_are_written() {
    let found = elements(&nothing());
    assert_eq!(found[0].rows.len(), 0);
    for axes in 1..=5 {
        let found = elements(&in_axes(axes));
        assert_eq!(found[0].properties.len(), axes as usize);
        assert_eq!(found[0].rows[1][..1], [f64::from(axes) + 0.25]);
    }
}

#[test]
fn coordinates_that_would_be_rounded_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let mut result = in_axes(1);
    result.positions = rows(1, &[0, (1_i64 << 53) + 1]);
    let error = written(&result, folder.path(), "a.ply").unwrap_err();
    assert!(matches!(
        error.fault,
        FileFault::InexactCoordinates { kind: "int64", .. }
    ));
    result.positions = rows(1, &[0, 1_i64 << 53]);
    assert_eq!(
        elements(&result)[0].rows,
        [[0.0], [9_007_199_254_740_992.0]]
    );
}

/// A graph with one end per link is unusual but valid.
#[test]
fn links_with_one_end_are_lists() {
    let mut result = in_axes(1);
    result.links = Some(Links {
        width: 1,
        ends: vec![1, 0],
    });
    result.link = vec![words("w", &[0, 0], &["a"])];
    let found = elements(&result);
    assert_eq!(found[1].rows, [[1.0], [0.0]]);
}
