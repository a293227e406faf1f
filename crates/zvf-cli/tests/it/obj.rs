//! OBJ files, compared as text.

use zvf::ObjectIds;
use zvf_files::FileFault;

use crate::results::{graph, in_axes, mesh, numbers, paths, points, text, words, written};

#[test]
fn points_are_vertices() {
    let expected = "v 0.1 2.0 -3.0\nv 1e20 0.0 5e-7\nv 7.0 8.0 9.0\n";
    assert_eq!(text(&points(), "a.obj"), expected);
}

#[test]
fn paths_are_lines_below_their_object() {
    let expected = "\
v 0.0 0.5 0
v 1.0 1.5 0
v 2.0 2.5 0
v 3.0 3.5 0
v 4.0 4.5 0
v 0.1 5.5 0
o object_4
l 1 2 3
o object_9
p 4
l 5 6
";
    assert_eq!(text(&paths(), "a.obj"), expected);
}

/// The order of axes in the store is z, y, x.
#[test]
fn edges_are_lines_and_axes_are_ordered_by_name() {
    let expected = "v 2 1 0\nv 12 11 10\nv 22 21 20\nv 32 31 30\no object_1\nl 2 1\nl 3 2\nl 4 1\n";
    assert_eq!(text(&graph(), "a.obj"), expected);
}

#[test]
fn axes_with_other_names_keep_their_order() {
    let mut result = in_axes(3);
    result.axes = ["depth", "y", "x"].map(str::to_owned).to_vec();
    assert_eq!(
        text(&result, "a.obj"),
        "v 0.25 1.25 2.25\nv 3.25 4.25 5.25\n"
    );
}

#[test]
fn faces_keep_their_winding() {
    let faces = |width| {
        let text = text(&mesh(width), "a.obj");
        let lines = text.lines().filter(|line| !line.starts_with('v'));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(faces(3), ["f 1 2 3", "f 1 3 4"]);
    assert_eq!(faces(4), ["f 1 2 3 4"]);
}

/// Links of objects are interleaved in the result. The face between two objects has none.
#[test]
fn faces_are_below_the_name_of_their_object() {
    let mut result = mesh(3);
    result.positions = crate::results::rows(3, &[0.5_f32; 24]);
    result.object_ids = Some(ObjectIds::from_numbers(vec![7, 3, 7, 3, 7, 3, -1, -2]));
    result.links.as_mut().unwrap().ends =
        vec![0, 2, 4, 1, 3, 5, 0, 1, 2, 4, 2, 0, 6, 6, 6, 7, 7, 7];
    result.objects = vec![3, 7];
    let lines = |result: &zvf::QueryResult| {
        let text = text(result, "a.obj");
        let lines = text.lines().filter(|line| !line.starts_with('v'));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let faces = |names: [&str; 2]| {
        let rows = ["f 1 2 3", "f 7 7 7", "f 8 8 8"]
            .map(str::to_owned)
            .to_vec();
        let first = [names[0].to_owned(), "f 2 4 6".to_owned()];
        let second = [names[1], "f 1 3 5", "f 5 3 1"].map(str::to_owned);
        [rows, first.to_vec(), second.to_vec()].concat()
    };
    assert_eq!(lines(&result), faces(["o object_3", "o object_7"]));
    // A reader would join a line that ends in `\` with the next one, and two names of the same words.
    for names in [
        ["soma", "soma"],
        ["soma", ""],
        ["soma", " "],
        ["soma", "a\nv 1 2 3"],
        ["soma", "a\\"],
        ["a b", "a  b"],
    ] {
        result.object = vec![words("name", &[0, 1], &names)];
        assert_eq!(lines(&result), faces(["o object_3", "o object_7"]));
    }
    result.object = vec![words("name", &[0, 1], &["soma", "vessel α"])];
    assert_eq!(lines(&result), faces(["o soma", "o vessel α"]));
    let folder = tempfile::tempdir().unwrap();
    let found = written(&result, folder.path(), "a.obj").unwrap();
    assert_eq!(found.left_out, ["object_id: not supported by obj"]);
}

/// Regression test: a reader gives vertices without links to object 0.
#[test]
fn objects_of_vertices_without_links_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let lost = |result: &zvf::QueryResult| {
        let found = written(result, folder.path(), "a.obj").unwrap();
        let mut lines = found.left_out.into_iter();
        lines.any(|line| line == "object_id: not supported by obj")
    };
    let mut result = mesh(3);
    for (ids, is_lost) in [
        ([7, 7, 7, 7, 7], true),
        ([7, 7, 7, 7, 0], false),
        ([7, 7, 7, 7, -1], true),
        ([7, 7, 7, 5, 0], true),
    ] {
        result.positions = crate::results::rows(3, &[0.5_f32; 15]);
        result.object_ids = Some(ObjectIds::from_numbers(ids.to_vec()));
        result.object = Vec::new();
        assert_eq!(lost(&result), is_lost, "{ids:?}");
    }
}

#[test]
fn omitted_data_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let found = written(&graph(), folder.path(), "a.obj").unwrap();
    // The names `object_ID` keep the ids.
    assert_eq!(found.left_out, ["link.weight: not supported by obj"]);
    let found = written(&points(), folder.path(), "a.obj").unwrap();
    assert_eq!(found.left_out.len(), 12);
    assert_eq!(found.left_out[11], "group.5: not supported by obj");
}

#[test]
fn other_numbers_of_axes_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    for axes in [1, 4, 5] {
        let error = written(&in_axes(axes), folder.path(), "a.obj").unwrap_err();
        assert!(matches!(error.fault, FileFault::Axes(found) if found == axes as usize));
        let says = format!("obj supports 2 or 3 axes, not {axes}; write ply, csv or npz");
        assert_eq!(error.to_string(), says);
    }
    let mut result = in_axes(2);
    result.positions = crate::results::rows(2, &[[0.0_f32, 1.0]; 4]);
    let error = written(&result, folder.path(), "a.obj").unwrap_err();
    assert!(error.to_string().contains("complex64"), "{error}");
    result.positions = crate::results::rows(2, &[0_u8; 4]);
    result.vertex = vec![numbers("n", 1, &[1_u8, 2])];
    assert!(written(&result, folder.path(), "a.obj").is_ok());
}
