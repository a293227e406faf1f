//! Filter, clip, gather and limit: paths through loaded chunks.

use serde_json::json;
use zvf_catalog::{Diagnostics, ObjectFragment, ObjectSet, RowSelection};
use zvf_model::generation::Generation;

use super::{
    TestStore, chunks, floats, fragments, manifest, object_index, poll_ready, resolved, run, store,
    values, xs,
};
use crate::{
    batch::loaded::LoadedChunks,
    exec::{
        clip::{BorderClip, ClipOperator, InterpolatedVertex, PathPart},
        context::ExecContext,
        filter::{Filter, RowFilter},
        gather::Gather,
        limit::Limit,
        path::Path,
        whole_paths::WholePathGather,
    },
    geometry::{Bbox, Mode},
    predicate::Predicate,
    query::{Clip, Query},
    result::{Parts, QueryResult},
};

/// Calls `test` with the operators of a query and object 7 as one segment of five vertices.
fn with_segment(
    query: &Query,
    test: impl FnOnce(&RowFilter<'_>, Option<&BorderClip<'_>>, &RowSelection, &LoadedChunks),
) {
    let memory = store("polyline", "implicit_sequential");
    let query = resolved(&memory, query);
    let (schema, chunks) = chunks(&query);
    let diagnostics = Diagnostics::new(false);
    let context = ExecContext::new(&query, &diagnostics);
    let objects = poll_ready(context.all_objects()).unwrap().unwrap();
    let mut loaded = LoadedChunks::default();
    for chunk in chunks {
        let number = objects.number_of(&chunk.chunk).unwrap();
        loaded.add(number, Some(chunk));
    }
    let filter = RowFilter::open(Some(Filter), &schema, Some(&objects), context);
    let filter = poll_ready(filter).unwrap();
    let clip = (query.area_mode == Mode::Clip).then_some(ClipOperator);
    let clip = BorderClip::open(clip, &query, &schema).unwrap();
    let path = Path::new(0, objects.fragments(0));
    let manifests = query.manifests().unwrap();
    let segments = path.segments(&loaded, &manifests, &diagnostics).unwrap();
    assert_eq!(segments.len(), 1);
    test(&filter, clip.as_ref(), &segments[0], &loaded);
}

/// Ranges as pairs.
fn pairs(ranges: &[core::ops::Range<usize>]) -> Vec<(usize, usize)> {
    ranges
        .iter()
        .map(|range| (range.start, range.end))
        .collect()
}

fn in_box(bbox: &str, mode: Mode) -> Query {
    Query::new().region(Bbox::parse(bbox).unwrap()).mode(mode)
}

#[test]
fn filter_selects_whole_paths_by_region() {
    let selects = |bbox, mode, expected: &[(usize, usize)]| {
        with_segment(&in_box(bbox, mode), |filter, _, segment, loaded| {
            let selected = filter.path(0, segment, loaded).unwrap();
            assert_eq!(pairs(&selected), expected, "{bbox}");
        });
    };
    // Between two vertices, a segment touches the box.
    selects("9,0,10,2", Mode::Touch, &[(0, 5)]);
    selects("9,2,10,3", Mode::Touch, &[]);
    selects("0,0,20,2", Mode::Within, &[(0, 5)]);
    selects("0,0,17,2", Mode::Within, &[]);
}

#[test]
fn filter_selects_parts_of_paths_by_predicate() {
    let selects = |mode, text: &str, expected: &[(usize, usize)]| {
        let query = Query::new()
            .filter(Predicate::parse(text).unwrap())
            .mode(mode);
        with_segment(&query, |filter, _, segment, loaded| {
            let selected = filter.path(0, segment, loaded).unwrap();
            assert_eq!(pairs(&selected), expected, "{text}");
        });
    };
    let text = "radius < 2.5 or radius > 5.5";
    selects(Mode::Touch, text, &[(0, 5)]);
    selects(Mode::Within, text, &[]);
    selects(Mode::Clip, text, &[(0, 2), (4, 5)]);
    selects(Mode::Within, "radius > 0", &[(0, 5)]);
    selects(Mode::Touch, "radius > 9", &[]);
}

#[test]
fn a_predicate_returns_only_its_rows_unless_a_mode_is_set() {
    let rows = |query: Query, expected: &[(usize, usize)]| {
        let query = query.filter(Predicate::parse("radius < 2.5 or radius > 5.5").unwrap());
        with_segment(&query, |filter, _, segment, loaded| {
            let selected = filter.path(0, segment, loaded).unwrap();
            assert_eq!(pairs(&selected), expected);
        });
    };
    rows(Query::new(), &[(0, 2), (4, 5)]);
    // The region selects among the parts.
    let bbox = Bbox::parse("16,0,20,2").unwrap();
    rows(Query::new().region(bbox), &[(4, 5)]);
    rows(Query::new().region(bbox).mode(Mode::Touch), &[(0, 5)]);
}

#[test]
fn clip_splits_paths_at_the_border() {
    with_segment(
        &in_box("6,0,15,2", Mode::Clip),
        |filter, clip, segment, loaded| {
            let selected = filter.path(0, segment, loaded).unwrap();
            assert_eq!(pairs(&selected), [(0, 5)]);
            let parts = clip.unwrap().path(selected, segment, loaded);
            assert_eq!(parts.len(), 1);
            let PathPart { rows, ends } = &parts[0];
            assert_eq!(*rows, 2..4);
            let (start, end) = (ends.start.as_ref().unwrap(), ends.end.as_ref().unwrap());
            assert_eq!((&*start.position, start.t), (&[6.0, 1.0][..], 0.5));
            assert_eq!((&*end.position, end.t), (&[15.0, 1.0][..], 0.5));
        },
    );
    // A segment that enters and leaves the box between two rows has no rows.
    with_segment(
        &in_box("9,0,11,2", Mode::Clip),
        |_, clip, segment, loaded| {
            let all = core::iter::once(0..5).collect();
            let parts = clip.unwrap().path(all, segment, loaded);
            assert_eq!(parts.len(), 1);
            assert_eq!(parts[0].rows, 3..3);
            let t = |end: &Option<InterpolatedVertex>| end.as_ref().unwrap().t;
            assert_eq!(
                (t(&parts[0].ends.start), t(&parts[0].ends.end)),
                (0.25, 0.75)
            );
        },
    );
}

#[test]
fn clip_drops_what_crosses_the_border() {
    let query = in_box("6,0,15,2", Mode::Clip).clip(Clip::Drop);
    with_segment(&query, |_, clip, segment, loaded| {
        let clip = clip.unwrap();
        assert!(!clip.splits());
        let all = core::iter::once(0..5).collect();
        let parts = clip.path(all, segment, loaded);
        let rows: Vec<_> = parts.iter().map(|part| part.rows.clone()).collect();
        assert_eq!(pairs(&rows), [(2, 4)]);
    });
}

/// Object 7 leaves chunk 0.0 for one vertex in chunk 1.1, far from the box, and comes back. Only the
/// vertex of object 9 in chunk 1.1 is read, so the ends of object 7 in chunk 0.0 are no neighbours,
/// although the line between them crosses the box.
#[test]
fn clip_does_not_join_the_ends_around_an_unread_piece() {
    let mut memory = TestStore::new(Generation::V0_9, "polyline", "implicit_sequential");
    let near = floats(&[3.0, 3.0, 1.0, 5.0, 5.0, 1.0, 3.0, 3.0]);
    let far = floats(&[12.0, 12.0, 15.0, 15.0]);
    let cells = [([0, 0], near), ([1, 1], far)];
    memory.cells("0/vertices", json!({"dtype": "float32"}), &cells);
    let cells = [
        ([0, 0], fragments(&[0..2, 2..3, 3..4])),
        ([1, 1], fragments(&[0..1, 1..2])),
    ];
    memory.cells("0/vertex_fragments", json!({}), &cells);
    let manifests = [
        manifest(&[([0, 0], 0), ([1, 1], 0), ([0, 0], 1)]),
        manifest(&[([0, 0], 2), ([1, 1], 1)]),
    ];
    object_index(&mut memory, &manifests);
    let (result, rounds, _) = run(&memory, &in_box("2.9,2.9,3.1,3.1", Mode::Clip));
    let parts = result.parts.as_ref().unwrap();
    assert_eq!(
        (&*parts.objects, &*parts.offsets),
        (&[7, 9][..], &[0, 2, 4][..])
    );
    let rounded = xs(&result).into_iter().map(|x| (x * 10.0).round());
    assert_eq!(rounded.collect::<Vec<_>>(), [30.0, 29.0, 30.0, 31.0]);
    // Chunk 1.1 was read in part.
    let is_part = |path: &String| path.starts_with("0/vertices/c/1/1 ");
    assert!(rounds.iter().flatten().any(is_part), "{rounds:?}");
}

#[test]
fn gather_blends_new_vertices_at_the_ends_of_parts() {
    let memory = store("polyline", "implicit_sequential");
    let query = in_box("6,0,15,2", Mode::Clip);
    let query = resolved(&memory, &query);
    let (schema, _) = chunks(&query);
    with_segment(query.query, |_, clip, segment, loaded| {
        let mut gather = Gather { owners: false }.paths(&query, &schema, loaded, clip);
        let diagnostics = Diagnostics::new(false);
        let all = core::iter::once(0..5).collect();
        for part in clip.unwrap().path(all, segment, loaded) {
            gather.push(segment, part, 7, &diagnostics).unwrap();
        }
        let whole = PathPart::whole(0..2);
        gather.push(segment, whole, 7, &diagnostics).unwrap();
        let mut batch = query.empty_result();
        let parts = gather.finish(&mut batch);
        assert_eq!(parts.offsets, [0, 4, 6]);
        assert_eq!(parts.objects, [7, 7]);
        assert_eq!(xs(&batch), [6.0, 8.0, 12.0, 15.0, 1.0, 4.0]);
        assert_eq!(values(&batch.vertex[0]), [2.5, 3.0, 5.0, 5.5, 1.0, 2.0]);
    });
}

/// Copies paths whole, up to a limit. Returns the batch, its parts, the objects listed, and the
/// number of skipped pieces.
fn copied(
    paths: impl Fn(&ObjectSet) -> Vec<Vec<ObjectFragment>>,
    limit: Option<u64>,
) -> (QueryResult, Parts, Vec<usize>, usize) {
    let memory = store("polyline", "implicit_sequential");
    let query = Query::new();
    let query = resolved(&memory, &query);
    let (schema, chunks) = chunks(&query);
    let diagnostics = Diagnostics::new(true);
    let context = ExecContext::new(&query, &diagnostics);
    let objects = poll_ready(context.all_objects()).unwrap().unwrap();
    let mut loaded = LoadedChunks::default();
    for chunk in chunks {
        let number = objects.number_of(&chunk.chunk).unwrap();
        loaded.add(number, Some(chunk));
    }
    let pieces = paths(&objects);
    let paths: Vec<Path<'_>> = pieces.iter().map(|pieces| Path::new(0, pieces)).collect();
    let gather = WholePathGather {
        schema: &schema,
        objects: &objects,
        loaded: &loaded,
        manifests: &query.manifests().unwrap(),
        budget: u64::MAX,
    };
    let (mut builder, mut listed) = (query.vertices(&schema, false), Vec::new());
    let (mut limit, list) = (Limit::new(limit), |index| listed.push(index));
    let parts = gather
        .copy(&paths, &mut limit, &mut builder, list, &diagnostics)
        .unwrap();
    let mut batch = query.empty_result();
    builder.finish(&mut batch);
    (batch, parts, listed, diagnostics.finish().0.len())
}

#[test]
fn whole_paths_are_copied_in_their_order() {
    let both = |objects: &ObjectSet| vec![objects.fragments(1).into(), objects.fragments(0).into()];
    let (batch, parts, _, skipped) = copied(both, None);
    assert_eq!(xs(&batch), [2.0, 15.0, 1.0, 4.0, 8.0, 12.0, 18.0]);
    let radius = values(&batch.vertex[0]);
    assert_eq!(radius, [4.0, 7.0, 1.0, 2.0, 3.0, 5.0, 6.0]);
    assert_eq!((parts.offsets, skipped), (vec![0, 2, 7], 0));
}

#[test]
fn whole_paths_fill_many_blocks_up_to_a_limit() {
    let many = |objects: &ObjectSet| vec![objects.fragments(0).to_vec(); 9000];
    for (limit, paths) in [(None, 9000), (Some(5000), 5000), (Some(1), 1), (Some(0), 0)] {
        let (batch, parts, listed, _) = copied(many, limit);
        let expected = [1.0, 4.0, 8.0, 12.0, 18.0].repeat(paths);
        assert!(xs(&batch) == expected, "{limit:?}");
        let radius = [1.0, 2.0, 3.0, 5.0, 6.0].repeat(paths);
        assert!(values(&batch.vertex[0]) == radius, "{limit:?}");
        let offsets = (0..).step_by(5).take(paths + 1);
        assert!(parts.offsets.iter().copied().eq(offsets), "{limit:?}");
        assert_eq!((parts.objects, listed), (vec![7; paths], vec![0; paths]));
    }
}

#[test]
fn absent_pieces_end_parts_of_whole_paths() {
    let broken = |objects: &ObjectSet| {
        let [first, second] = objects.fragments(0) else {
            unreachable!("two pieces")
        };
        let absent = ObjectFragment {
            fragment: 9,
            ..*first
        };
        let unread = ObjectFragment { chunk: 5, ..*first };
        vec![
            vec![*first, absent, *second],
            vec![absent],
            vec![*second, unread, unread, *first],
        ]
    };
    let (batch, parts, listed, skipped) = copied(broken, None);
    let (west, east) = ([1.0, 4.0, 8.0], [12.0, 18.0]);
    let expected = [&west[..], &east, &east, &west].concat();
    assert_eq!(xs(&batch), expected);
    assert_eq!((parts.offsets, skipped), (vec![0, 3, 5, 7, 10], 1));
    assert_eq!(listed.len(), 4);
    // Pieces of paths after the limit are not reported, but pieces of its last path are.
    let (batch, parts, _, skipped) = copied(broken, Some(1));
    assert_eq!(
        (xs(&batch).len(), parts.offsets, skipped),
        (3, vec![0, 3], 1)
    );
    let late = |objects: &ObjectSet| broken(objects).into_iter().rev().collect();
    let (batch, parts, _, skipped) = copied(late, Some(1));
    assert_eq!(
        (xs(&batch), parts.offsets, skipped),
        (east.to_vec(), vec![0, 2], 0)
    );
}

#[test]
fn a_plan_of_paths_filters_clips_and_limits() {
    let memory = store("polyline", "implicit_sequential");
    let query = in_box("6,0,15,20", Mode::Clip);
    let (result, _, operators) = run(&memory, &query);
    assert_eq!(result.parts.as_ref().unwrap().objects, [7, 9]);
    let expected = [
        "ObjectColumns",
        " Gather",
        "  Clip",
        "   Filter",
        "    PathScan",
    ];
    assert_eq!(operators[..5], expected);
    let (result, _, operators) = run(&memory, &query.limit(1));
    assert_eq!(result.parts.as_ref().unwrap().objects, [7]);
    assert_eq!(result.objects, [7]);
    assert_eq!(xs(&result), [6.0, 8.0, 12.0, 15.0]);
    assert_eq!(operators[2], "  Limit");
}
