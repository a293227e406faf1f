//! OBJ files, compared as text.

use zvf_cli::formats::ResultWriteError;

use crate::answers::{graph, in_axes, mesh, numbers, paths, points, text, written};

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
    let expected = "v 2 1 0\nv 12 11 10\nv 22 21 20\nv 32 31 30\nl 2 1\nl 3 2\nl 4 1\n";
    assert_eq!(text(&graph(), "a.obj"), expected);
}

#[test]
fn axes_with_other_names_keep_their_order() {
    let mut answer = in_axes(3);
    answer.axes = ["depth", "y", "x"].map(str::to_owned).to_vec();
    assert_eq!(
        text(&answer, "a.obj"),
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

#[test]
fn omitted_data_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let found = written(&graph(), folder.path(), "a.obj").unwrap();
    let expected = ["object_id: not held by obj", "link.weight: not held by obj"];
    assert_eq!(found.left_out, expected);
    let found = written(&points(), folder.path(), "a.obj").unwrap();
    assert_eq!(found.left_out.len(), 12);
    assert_eq!(found.left_out[11], "group.5: not held by obj");
}

#[test]
fn other_numbers_of_axes_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    for axes in [1, 4, 5] {
        let error = written(&in_axes(axes), folder.path(), "a.obj").unwrap_err();
        assert!(matches!(error, ResultWriteError::Axes(found) if found == axes as usize));
        let says = format!("obj holds 2 or 3 axes, not {axes}; write ply, csv or npz");
        assert_eq!(error.to_string(), says);
    }
    let mut answer = in_axes(2);
    answer.positions = crate::answers::rows(2, &[[0.0_f32, 1.0]; 4]);
    let error = written(&answer, folder.path(), "a.obj").unwrap_err();
    assert!(error.to_string().contains("complex64"), "{error}");
    answer.positions = crate::answers::rows(2, &[0_u8; 4]);
    answer.vertex = vec![numbers("n", 1, &[1_u8, 2])];
    assert!(written(&answer, folder.path(), "a.obj").is_ok());
}
