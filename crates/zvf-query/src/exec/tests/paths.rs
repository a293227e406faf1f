//! Filter, clip, gather and limit: paths through loaded chunks.

use super::{chunks, resolved, run, store, values, xs};
use crate::{
    batch::loaded::LoadedChunks,
    diagnostics::Diagnostics,
    exec::{
        clip::{BorderClip, PathPart},
        context::ExecContext,
        filter::Filter,
        gather::PathGather,
        path::Path,
    },
    geometry::{Bbox, Mode},
    memory::now,
    predicate::Predicate,
    query::{Clip, Query},
    selection::RowSelection,
};

/// Calls `test` with the operators of a query and object 7 as one segment of five vertices.
fn with_segment(
    query: &Query,
    test: impl FnOnce(&Filter<'_>, Option<&BorderClip<'_>>, &RowSelection, &LoadedChunks),
) {
    let memory = store("polyline", "implicit_sequential");
    let query = resolved(&memory, query);
    let (schema, chunks) = chunks(&query);
    let diagnostics = Diagnostics::new(false);
    let objects = now(query.objects_if(true, &diagnostics)).unwrap().unwrap();
    let mut loaded = LoadedChunks::default();
    for chunk in chunks {
        let number = objects.number_of(&chunk.chunk).unwrap();
        loaded.add(number, Some(chunk));
    }
    let context = ExecContext::new(&query, &diagnostics);
    let filter = now(Filter::open(Some(0), &schema, Some(&objects), context)).unwrap();
    let clips = query.area_mode == Mode::Clip;
    let clip = BorderClip::open(clips, &query, &schema).unwrap();
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
            let t = |end: &Option<crate::exec::clip::Between>| end.as_ref().unwrap().t;
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

#[test]
fn gather_blends_new_vertices_at_the_ends_of_parts() {
    let memory = store("polyline", "implicit_sequential");
    let query = in_box("6,0,15,2", Mode::Clip);
    let query = resolved(&memory, &query);
    let (schema, _) = chunks(&query);
    with_segment(query.query, |_, clip, segment, loaded| {
        let mut gather = PathGather::new(&query, &schema, loaded, clip, false);
        let diagnostics = Diagnostics::new(false);
        let all = core::iter::once(0..5).collect();
        for part in clip.unwrap().path(all, segment, loaded) {
            gather.push(segment, part, 7, &diagnostics).unwrap();
        }
        let whole = PathPart::whole(0..2);
        gather.push(segment, whole, 7, &diagnostics).unwrap();
        let mut batch = query.empty_answer();
        let parts = gather.finish(&mut batch);
        assert_eq!(parts.offsets, [0, 4, 6]);
        assert_eq!(parts.objects, [7, 7]);
        assert_eq!(xs(&batch), [6.0, 8.0, 12.0, 15.0, 1.0, 4.0]);
        assert_eq!(values(&batch.vertex[0]), [2.5, 3.0, 5.0, 5.5, 1.0, 2.0]);
    });
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
