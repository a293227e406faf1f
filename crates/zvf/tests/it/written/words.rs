//! New words of link attributes.

use zvf::{CreateOptions, Dataset, Editor, Query, Store};
use zvf_build::{
    Column, Design, Geometry, GeometryBuilder, GeometryKind, NumericColumn, OutOfBounds, WritePlan,
};

use crate::block_on;

/// Returns a graph of one object on a line, with a word for each link.
fn graph(id: i64, places: &[f32], links: &[i64], words: &[&str]) -> GeometryBuilder {
    let values = places.iter().flat_map(|place| [*place, 1.0]);
    let mut geometry = Geometry::builder(NumericColumn::float32(2, values))
        .object_ids(vec![id; places.len()])
        .links(2, links.to_vec());
    let words = words.iter().map(|word| Some((*word).to_owned()));
    geometry.link.push(Column::text("kind", words));
    geometry
}

/// Returns the word of each link by the places of its ends, sorted.
async fn links(store: &Store) -> Vec<(String, String)> {
    let dataset = Dataset::open(store.clone()).await.unwrap();
    let result = dataset.query(&Query::new()).await.unwrap();
    assert_eq!(result.skipped, []);
    let places = result.positions.to_vec::<f32>().unwrap();
    let ends = result.links.unwrap().ends;
    let mut links: Vec<_> = ends
        .chunks_exact(2)
        .enumerate()
        .map(|(at, ends)| {
            let mut places: Vec<f32> = ends.iter().map(|end| places[*end as usize * 2]).collect();
            places.sort_by(f32::total_cmp);
            let word = result.link[0].text_at(at).unwrap().to_owned();
            (format!("{places:?}"), word)
        })
        .collect();
    links.sort();
    links
}

fn link(ends: [f32; 2], word: &str) -> (String, String) {
    (format!("{ends:?}"), word.to_owned())
}

#[test]
fn a_new_word_extends_the_dictionaries_of_all_link_arrays() {
    block_on(async {
        let none: [(&str, &[u8]); 0] = [];
        let store = Store::from_memory(none).unwrap();
        let mut design = Design::new(GeometryKind::Graphs);
        design.chunk_shape = Some(vec![10.0; 2]);
        design.bounds = Some((vec![0.0; 2], vec![40.0; 2]));
        let words = ["axon", "dendrite", "axon"];
        let geometry = graph(1, &[1.0, 2.0, 11.0, 12.0], &[0, 1, 1, 2, 2, 3], &words);
        let plan = WritePlan::new(geometry.build().unwrap(), design).unwrap();
        let options = CreateOptions::new().seal(false);
        zvf::create_from_plan(&store, plan, &options).await.unwrap();
        let mut expected = vec![
            link([1.0, 2.0], "axon"),
            link([2.0, 11.0], "dendrite"),
            link([11.0, 12.0], "axon"),
        ];
        expected.sort();
        assert_eq!(links(&store).await, expected);

        let editor = Editor::open(store.clone()).await.unwrap();
        let bounds = OutOfBounds::Reject;
        // Inside a chunk, between two, and between two that no link has joined before.
        for (id, places, word) in [
            (2, [3.0, 4.0], "glia"),
            (3, [5.0, 15.0], "soma"),
            (4, [6.0, 26.0], "spine"),
        ] {
            let more = graph(id, &places, &[0, 1], &[word]);
            editor.append(&more.build().unwrap(), bounds).await.unwrap();
            expected.push(link(places, word));
            expected.sort();
            assert_eq!(links(&store).await, expected, "{word}");
        }
    });
}
