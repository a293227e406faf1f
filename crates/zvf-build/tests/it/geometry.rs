//! Columns of geometry that disagree are refused with an error that names one of them.

use zvf_build::{
    Column, Geometry, GeometryBuilder, GeometryKind, LinkEnds, NumericColumn, VertexOwners,
};
use zvf_model::scope::Scope;

/// Starts geometry with three vertices.
fn three() -> GeometryBuilder {
    Geometry::builder(NumericColumn::float32(1, [0.0, 1.0, 2.0]))
}

/// Starts geometry whose elements of each scope are two, except for the vertices.
fn two_of_each() -> GeometryBuilder {
    three()
        .paths(vec![0, 1, 3], vec![7, 8])
        .links(2, vec![0, 1, 1, 2])
        .objects(vec![8, 7])
        .groups([(1, vec![7])].into())
}

fn column(name: &str, rows: usize) -> Column {
    Column::new(name, NumericColumn::from_values(1, vec![1_u16; rows]))
}

#[track_caller]
fn check(builder: GeometryBuilder, expected: &str) {
    let error = builder.build().unwrap_err();
    assert_eq!(error.to_string(), expected);
}

#[test]
fn paths_divide_the_vertices() {
    for (offsets, at, found) in [
        (vec![], 0, 3),
        (vec![1, 3], 0, 1),
        (vec![0, 2], 1, 2),
        (vec![0, 4], 1, 4),
        (vec![0, 2, 1, 3], 2, 1),
    ] {
        let expected = format!("part_offsets do not ascend from 0 to 3: entry {at} is {found}");
        check(three().paths(offsets, None), &expected);
    }
    let expected = "column \"part_objects\" has 2 rows, but 1 are needed";
    check(three().paths(vec![0, 3], vec![7, 8]), expected);
    let twice = three().paths(vec![0, 1, 3], vec![7, 7]);
    check(twice, "object id 7 occurs twice");
    assert!(three().paths(vec![0, 0, 3, 3], None).build().is_ok());
}

#[test]
fn ids_of_objects_fit() {
    let expected = "column \"object_ids\" has 1 rows, but 3 are needed";
    check(three().object_ids(vec![7]), expected);
    let twice = three().objects(vec![9, 7, 9]);
    check(twice, "object id 9 occurs twice");
    assert!(three().object_ids(vec![7, 8, 7]).build().is_ok());
}

#[test]
fn links_are_whole() {
    for (width, ends) in [(2, 3), (3, 4), (0, 1)] {
        let expected = format!("{ends} link ends are not a multiple of {width}");
        check(three().links(width, vec![0; ends]), &expected);
    }
    assert_eq!(LinkEnds::default().len(), 0);
}

#[test]
fn attributes_of_each_scope_fit() {
    for scope in Scope::ALL {
        let rows = if scope == Scope::Vertex { 3 } else { 2 };
        let role = format!("{} attribute", scope.name());
        let with = |columns: Vec<Column>| {
            let mut builder = two_of_each();
            *builder.columns_mut(scope) = columns;
            builder
        };
        assert!(with(vec![column("a", rows)]).build().is_ok(), "{scope:?}");
        let expected = format!("{role} \"a\" has 1 rows, but {rows} are needed");
        check(with(vec![column("a", 1)]), &expected);
        let nulls = Column {
            nulls: Some(vec![true]),
            ..column("a", rows)
        };
        check(with(vec![nulls]), &expected);
        let expected = format!("there are two {role}s called \"a\"");
        check(with(vec![column("a", rows), column("a", rows)]), &expected);
        assert!(with(vec![column("a b", rows)]).build().is_ok(), "{scope:?}");
        let expected = format!("{role} cannot be called \"\": a name is not empty");
        check(with(vec![column("", rows)]), &expected);
        let numbers = NumericColumn {
            bytes: vec![0; 2 * rows + 1],
            ..NumericColumn::from_values(1, [0_u16; 0])
        };
        let expected = format!("{role} \"a\" ends inside a row");
        check(with(vec![Column::new("a", numbers)]), &expected);
    }
}

/// They are of one scope, in two columns.
#[test]
fn attributes_of_fragments_have_one_column() {
    let expected = "fragment attribute \"a\" has 2 rows, but 3 are needed";
    check(two_of_each().fragment_rows(vec![column("a", 2)]), expected);
    let both = two_of_each().fragment(vec![column("a", 2)]);
    let expected = "there are two fragment attributes called \"a\"";
    check(both.fragment_rows(vec![column("a", 3)]), expected);
    let expected =
        "the fragment attribute \"object_id\" is reserved by the format; choose another name";
    check(
        two_of_each().fragment(vec![column("object_id", 2)]),
        expected,
    );
    let rows = two_of_each().fragment_rows(vec![column("object_id", 3)]);
    check(rows, expected);
}

#[test]
fn groups_are_rows_of_a_table() {
    let large = three().groups([(1 << 20, Vec::new())].into());
    let expected = "group number 1048576 is above 1048575; groups are rows of a table, so number them from 0 without large gaps";
    check(large, expected);
    // A group may have attributes and no members.
    let more = two_of_each().group(vec![column("a", 5)]);
    assert!(more.build().is_ok());
    let expected = "group attribute \"a\" has 4 rows, but 5 are needed";
    check(
        two_of_each().group(vec![column("a", 4), column("b", 5)]),
        expected,
    );
}

#[test]
fn changed_geometry_is_checked_again() {
    let geometry = two_of_each().vertex(vec![column("a", 3)]).build().unwrap();
    let fewer = NumericColumn::float32(1, [0.0, 1.0]);
    let unowned = GeometryBuilder {
        owners: VertexOwners::Unnamed,
        ..geometry.into_builder().positions(fewer)
    };
    let expected = "vertex attribute \"a\" has 3 rows, but 2 are needed";
    check(unowned, expected);
}

/// Files and callers have three columns that may contradict each other.
#[test]
fn columns_of_owners_are_told_apart() {
    let (points, paths) = (GeometryKind::Points, GeometryKind::Streamlines);
    let (offsets, ids) = (|| Some(vec![0, 3]), || Some(vec![7]));
    for (kind, columns, expected) in [
        (
            paths,
            (offsets(), ids(), ids()),
            "streamlines do not support object_ids: the object of a path is in part_objects",
        ),
        (paths, (None, ids(), None), "streamlines need part_offsets"),
        (
            points,
            (offsets(), None, ids()),
            "points do not support part_offsets",
        ),
        (
            points,
            (None, ids(), ids()),
            "points do not support part_objects",
        ),
    ] {
        let refused = VertexOwners::of_columns(kind, columns.0, columns.1, columns.2);
        assert_eq!(refused.unwrap_err().to_string(), expected);
    }
    let found = VertexOwners::of_columns(paths, offsets(), ids(), None).unwrap();
    assert_eq!((found.paths(), found.ids()), (1, Some([7].as_slice())));
    let found = VertexOwners::of_columns(points, None, None, ids());
    assert_eq!(found, Ok(VertexOwners::Vertices(vec![7])));
    assert_eq!(
        VertexOwners::of_columns(points, None, None, None),
        Ok(VertexOwners::Unnamed)
    );
}
