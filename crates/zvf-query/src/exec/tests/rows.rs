//! Filter, gather, limit and object columns: vertices of chunks.

use zvf_catalog::{Diagnostics, Selection};

use super::{chunks, poll_ready, resolved, run, store, values, xs};
use crate::{
    batch::vertices::Owners,
    exec::{
        context::ExecContext,
        filter::{Filter, RowFilter},
        gather::Gather,
        limit::Limit,
    },
    geometry::{Bbox, Mode, Sphere},
    predicate::Predicate,
    query::{Query, Shape},
};

/// The rows of both chunks that the filter of a query selects.
fn selected(query: &Query) -> Vec<Vec<u64>> {
    let memory = store("point_cloud", "implicit_sequential");
    let query = resolved(&memory, query);
    let (schema, chunks) = chunks(&query);
    let diagnostics = Diagnostics::new(false);
    let context = ExecContext::new(&query, &diagnostics);
    let objects = poll_ready(context.all_objects()).unwrap();
    let filter = RowFilter::open(Some(Filter), &schema, objects.as_deref(), context);
    let filter = poll_ready(filter).unwrap();
    let rows = chunks.iter().map(|chunk| {
        let owners = context.owners_of(objects.as_ref(), chunk);
        let selected = filter.select(chunk, owners.unwrap()).unwrap();
        selected.rows.iter().map(|run| run.row).collect()
    });
    rows.collect()
}

fn filtered(predicate: &str) -> Query {
    Query::new().filter(Predicate::parse(predicate).unwrap())
}

#[test]
fn filter_selects_by_region() {
    let bbox = Bbox::parse("4,0,12,2").unwrap();
    assert_eq!(selected(&Query::new().region(bbox)), [vec![1, 2], vec![0]]);
    let sphere = Sphere::new(&[8.0, 1.0], 4.0).unwrap();
    assert_eq!(
        selected(&Query::new().region(sphere)),
        [vec![1, 2], vec![0]]
    );
}

#[test]
fn filter_selects_by_predicates_on_vertices_and_their_objects() {
    assert_eq!(
        selected(&filtered("radius > 2")),
        [vec![2, 3], vec![0, 1, 2]]
    );
    let mixed = "vertex.radius > 5 or object.lanes = 1";
    assert_eq!(selected(&filtered(mixed)), [vec![3], vec![1, 2]]);
    let bbox = Bbox::parse("0,0,20,2").unwrap();
    assert_eq!(selected(&filtered(mixed).region(bbox)), [vec![], vec![1]]);
}

#[test]
fn filter_without_a_node_passes_all() {
    let memory = store("point_cloud", "implicit_sequential");
    let query = filtered("radius > 2");
    let query = resolved(&memory, &query);
    let (schema, chunks) = chunks(&query);
    let filter = RowFilter::all(&schema);
    assert!(filter.passes_all());
    let selected = filter.select(&chunks[0], Owners::default()).unwrap();
    assert_eq!(selected.rows.len(), 4);
}

#[test]
fn filter_marks_rows_for_joins() {
    let memory = store("graph", "explicit");
    let query = filtered("radius > 2").region(Bbox::parse("0,0,20,2").unwrap());
    let query = resolved(&memory, &query);
    let (schema, chunks) = chunks(&query);
    let diagnostics = Diagnostics::new(false);
    let context = ExecContext::new(&query, &diagnostics);
    let filter = RowFilter::open(Some(Filter), &schema, None, context);
    let filter = poll_ready(filter).unwrap();
    let chunk = &chunks[0];
    // Only the first fragment is requested.
    let runs = chunk.runs();
    let rows = runs.iter().filter(|run| run.fragment == 0).collect();
    let marks = filter.mark(chunk, &rows, &Owners::default()).unwrap();
    assert_eq!(marks.is_member, [true, true, true, false]);
    assert_eq!(
        marks.passes.as_deref(),
        Some(&[false, false, true, false][..])
    );
    assert_eq!(
        marks.inside.as_deref(),
        Some(&[true, true, true, false][..])
    );
    let selected: Vec<bool> = (0..5).map(|index| marks.is_selected(index)).collect();
    assert_eq!(selected, [false, false, true, false, false]);
}

#[test]
fn gather_copies_selections_in_their_order() {
    let memory = store("point_cloud", "implicit_sequential");
    let query = Query::new();
    let query = resolved(&memory, &query);
    let (schema, chunks) = chunks(&query);
    let diagnostics = Diagnostics::new(false);
    let context = ExecContext::new(&query, &diagnostics);
    let objects = poll_ready(context.all_objects()).unwrap();
    let filter = RowFilter::all(&schema);
    let mut gather = Gather { owners: true }.chunks(&query, &schema, 2);
    let mut limit = Limit::new(Some(2));
    for chunk in chunks.iter().rev() {
        let owners = context.owners_of(objects.as_ref(), chunk).unwrap();
        let mut selected = filter.select(chunk, owners).unwrap();
        selected.rows.keep_indices(&[false, true, true, true]);
        limit.truncate(&mut selected.rows);
        gather
            .push(&selected, objects.as_deref(), &diagnostics)
            .unwrap();
        assert!(gather.full_batch().is_none());
    }
    let (batch, ids) = gather.finish();
    assert_eq!(xs(&batch), [18.0, 15.0]);
    assert_eq!(values(&batch.vertex[0]), [6.0, 7.0]);
    assert_eq!(batch.object_ids.unwrap().numbers(), [7, 9]);
    assert_eq!(ids.into_iter().collect::<Vec<_>>(), [7, 9]);
}

#[test]
fn object_columns_follow_the_ids_of_a_batch() {
    let memory = store("point_cloud", "implicit_sequential");
    let query = Query::new();
    let query = resolved(&memory, &query);
    let diagnostics = Diagnostics::new(false);
    let context = ExecContext::new(&query, &diagnostics);
    let objects = poll_ready(context.all_objects()).unwrap();
    let mut batch = query.empty_result();
    let ids = [9, 7, -1].into();
    memory.rounds();
    poll_ready(context.add_objects(&mut batch, objects.as_ref(), &ids)).unwrap();
    assert_eq!(batch.objects, [7, 9]);
    assert_eq!(values(&batch.object[0]), [2.0, 1.0]);
    let rounds = memory.rounds();
    let cells = rounds.last().unwrap();
    assert_eq!(cells, &["0/object_attributes/lanes/c/0"]);
}

#[test]
fn nearest_reads_chunks_from_the_nearest_on() {
    let memory = store("point_cloud", "implicit_sequential");
    let position = crate::geometry::Position::new(&[9.0, 1.0]).unwrap();
    let query = Query::new().nearest(position, 2).columns(Selection::none());
    let (result, rounds, operators) = run(&memory, &query);
    // At distances 1 and 3; the vertex at 4 is 5 away.
    assert_eq!(xs(&result), [8.0, 12.0]);
    assert_eq!(result.object_ids.unwrap().numbers(), [7, 7]);
    let expected = ["ObjectColumns", " Nearest", "  ChunkScan", "   ObjectScan"];
    assert_eq!(operators, expected);
    let positions = |chunk: &str| format!("0/vertices/c/{chunk}");
    let has = |chunk: &str| {
        rounds
            .iter()
            .position(|round| round.contains(&positions(chunk)))
    };
    assert!(has("0/0") < has("1/0"), "{rounds:?}");
    let far = Query::new().nearest(position, 1).columns(Selection::none());
    let (result, rounds, _) = run(&memory, &far);
    assert_eq!(xs(&result), [8.0]);
    // Chunk 1.0 begins one unit away, so it may hold one as near.
    assert!(
        rounds
            .iter()
            .flatten()
            .any(|path| path == &positions("1/0"))
    );
    let inside = crate::geometry::Position::new(&[1.0, 1.0]).unwrap();
    let one = Query::new().nearest(inside, 1).columns(Selection::none());
    let (result, rounds, _) = run(&memory, &one);
    assert_eq!(xs(&result), [1.0]);
    assert!(
        !rounds
            .iter()
            .flatten()
            .any(|path| path == &positions("1/0"))
    );
}

#[test]
fn nearest_paths_are_searched_in_spheres() {
    let memory = store("polyline", "implicit_sequential");
    let position = crate::geometry::Position::new(&[10.0, 2.0]).unwrap();
    let query = Query::new().nearest(position, 1).columns(Selection::none());
    let (result, _, operators) = run(&memory, &query);
    // The segment from (8, 1) to (12, 1) is one unit away, the one of object 9 further.
    assert_eq!(result.objects, [7]);
    assert_eq!(xs(&result), [1.0, 4.0, 8.0, 12.0, 18.0]);
    assert_eq!(
        operators
            .iter()
            .filter(|name| name.contains("Filter"))
            .count(),
        1
    );
}

#[test]
fn a_mode_does_not_change_points() {
    let bbox = Bbox::parse("4,0,12,2").unwrap();
    for mode in [Mode::Touch, Mode::Within, Mode::Clip] {
        let memory = store("point_cloud", "implicit_sequential");
        let query = Query::new().region(bbox).mode(mode).shape(Shape::Points);
        assert_eq!(xs(&run(&memory, &query).0), [4.0, 8.0, 12.0]);
        let of_object = query.objects([7]);
        let (result, _, operators) = run(&memory, &of_object);
        assert_eq!(xs(&result), [4.0, 8.0, 12.0]);
        assert!(!operators.iter().any(|name| name.contains("Clip")));
    }
}
