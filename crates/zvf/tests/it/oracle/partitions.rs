//! Queries in independent parts.

use zvf::{Column, ColumnValues, NumericColumn, Query, QueryPartition, QueryResult, Shape};
use zvf_testkit::stores::Made;

use super::columns::{Verdict, ensure};
use crate::stores::open;

/// A result as rows of text.
#[derive(Default)]
struct Rows {
    vertices: Vec<String>,
    /// The object and the vertices of each path.
    paths: Vec<String>,
    /// The vertices at the ends of each link, and its attributes.
    links: Vec<String>,
    objects: Vec<String>,
}

impl Rows {
    #[expect(clippy::cast_possible_truncation, reason = "made-up stores are small")]
    fn add(&mut self, result: &QueryResult) {
        let at = self.vertices.len();
        let columns: Vec<&Column> = result.vertex.iter().chain(&result.fragment).collect();
        for row in 0..result.positions.len() {
            let id = result.object_ids.as_ref().and_then(|ids| ids.get(row));
            let values = values(&columns, row);
            let position = result.positions.row(row).unwrap();
            self.vertices.push(format!("{position:?} {id:?} {values}"));
        }
        let own = &self.vertices[at..];
        if let Some(parts) = &result.parts {
            for (path, object) in parts.offsets.windows(2).zip(&parts.objects) {
                let vertices = &own[path[0] as usize..path[1] as usize];
                self.paths.push(format!("{object} {vertices:?}"));
            }
        }
        if let Some(links) = &result.links {
            let columns: Vec<&Column> = result.link.iter().collect();
            let ends = links.ends.chunks(links.width as usize);
            for (row, ends) in ends.enumerate() {
                let ends: Vec<&String> = ends.iter().map(|end| &own[*end as usize]).collect();
                self.links
                    .push(format!("{ends:?} {}", values(&columns, row)));
            }
        }
        let columns: Vec<&Column> = result.object.iter().collect();
        for (row, id) in result.objects.iter().enumerate() {
            self.objects.push(format!("{id} {}", values(&columns, row)));
        }
    }
}

fn values(columns: &[&Column], row: usize) -> String {
    let value = |column: &&Column| match &column.values {
        _ if column.is_null(row) => format!("{}: null", column.name),
        ColumnValues::Dictionary { .. } => format!("{}: {:?}", column.name, column.text_at(row)),
        ColumnValues::Numeric(numbers) => {
            format!("{}: {:?}", column.name, numbers.row(row).unwrap())
        }
    };
    let values: Vec<String> = columns.iter().map(value).collect();
    values.join(", ")
}

fn coordinates(positions: &NumericColumn) -> Vec<f64> {
    let doubles = positions.to_vec::<f64>();
    let singles = || positions.to_vec::<f32>().unwrap();
    doubles.unwrap_or_else(|| singles().into_iter().map(f64::from).collect())
}

/// Checks that the parts of a query are its result, each row once.
pub(super) async fn check(made: &Made, query: &Query, result: &QueryResult) -> Verdict {
    let dataset = open(made).await;
    for count in [1, 2, 5, 64] {
        let parts = dataset
            .partitions(query, count)
            .await
            .map_err(|error| format!("in {count} parts: {error:?}"))?;
        ensure!(!parts.is_empty() && parts.len() <= count, "{parts:?}");
        let mut found = Rows::default();
        let mut counted = Some(0);
        for part in &parts {
            let parsed: Result<QueryPartition, _> = part.to_string().parse();
            ensure!(parsed.as_ref() == Ok(part), "{parsed:?}, expected {part:?}");
            let result = dataset
                .query(&part.query(query))
                .await
                .map_err(|error| format!("{part:?}: {error:?}"))?;
            found.add(&result);
            counted = counted.zip(part.rows).map(|(sum, rows)| sum + rows);
            let Some(bounds) = &part.bounds else {
                continue;
            };
            for position in coordinates(&result.positions).chunks(bounds.axes()) {
                let ends = bounds.lo().iter().zip(bounds.hi());
                let is_inside = position.iter().zip(ends).all(|(at, (lo, hi))| {
                    // Positions of made-up stores may be NaN, which no box contains.
                    at.is_nan() || (lo..=hi).contains(&at)
                });
                ensure!(is_inside, "{position:?} is outside of {bounds:?}");
            }
        }
        let mut expected = Rows::default();
        expected.add(result);
        let is_linked = result.links.is_some() && query.shape != Some(Shape::Points);
        if is_linked {
            found.vertices.sort();
            expected.vertices.sort();
            found.links.sort();
            expected.links.sort();
        }
        let about = format!("{} parts of {count}: {parts:?}", parts.len());
        ensure!(found.vertices == expected.vertices, "vertices of {about}");
        ensure!(found.paths == expected.paths, "paths of {about}");
        ensure!(found.links == expected.links, "links of {about}");
        // Several parts may have vertices of one object.
        for objects in [&mut found.objects, &mut expected.objects] {
            objects.sort();
            objects.dedup();
        }
        ensure!(found.objects == expected.objects, "objects of {about}");
        let is_exact = query.region.is_none() && query.filter.is_none() && !is_linked;
        if let Some(rows) = counted.filter(|_| is_exact) {
            let vertices = result.positions.len() as u64;
            ensure!(rows == vertices, "{vertices} vertices in {about}");
        }
    }
    Ok(())
}
