//! Clips a path to a box and evaluates a predicate on rows, without a store.
#![expect(clippy::print_stdout, reason = "an example shows what it finds")]

use std::{error::Error, num::NonZeroU32};

use zvf_format::numeric::{Dtype, NumericRows};
use zvf_query::{
    geometry::Bbox,
    predicate::{CellTable, Predicate, Scope, Truth},
};

fn main() -> Result<(), Box<dyn Error>> {
    let bbox = Bbox::parse("0,0,0,10,10,10")?;
    let path = [
        [-5.0, 5.0, 5.0],
        [5.0, 5.0, 5.0],
        [15.0, 5.0, 5.0],
        [15.0, 20.0, 5.0],
    ];
    for (at, ends) in path.windows(2).enumerate() {
        match bbox.clip_segment([&ends[0], &ends[1]]) {
            None => println!("segment {at} stays outside"),
            Some(inside) => println!("segment {at}: {inside:?}"),
        }
    }

    let radius: Vec<u8> = [0.5_f32, 2.5, f32::NAN, 4.0]
        .iter()
        .flat_map(|v| v.to_le_bytes())
        .collect();
    let rows = NumericRows::parse(&radius, Dtype::parse("float32")?, NonZeroU32::MIN)?;
    let mut table = CellTable::default();
    table.add_numbers(Scope::Vertex, "radius", rows)?;
    let bound = Predicate::parse("vertex.radius between 1 and 3")?.bind(&table)?;
    let chosen: Vec<usize> = (0..4)
        .filter(|row| bound.evaluate(&table, *row) == Truth::True)
        .collect();
    println!("rows {chosen:?}");
    Ok(())
}
