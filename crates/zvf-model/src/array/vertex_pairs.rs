//! Links between chunks as one numeric array of pairs of vertices.

use zvf_format::numeric::Kind;

use crate::{
    grid::ChunkCoord,
    key::Key,
    metadata::{Attributes, Excerpt, Fields, JsonMembers, MetadataError, MetadataFault},
    zarr::{Array, DataType},
};

/// The array `cross_chunk_links` of the profile `0.8-padded`: of int64, with a row of two
/// [numbers of vertices](VertexNumbering) for each link. Rows of −1 are unused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VertexPairs {
    /// Number of rows.
    pub rows: u64,
    /// Number of rows in a chunk of the array.
    pub chunk_rows: u64,
}

/// Number of ends of a link.
const ENDS: u64 = 2;
/// Upper bound on the chunks of the array, above that of any writer: readers list them.
const MAX_CHUNKS: u64 = 1 << 20;

impl VertexPairs {
    /// Reads array `key`.
    ///
    /// # Errors
    ///
    /// [`MetadataError`] if its values are not int64, its rows or chunks are not pairs, or it has more than
    /// a million chunks.
    pub fn parse(key: &Key, array: &Array) -> Result<Self, MetadataError> {
        let of_node = |name: &str, fault| Fields::beside(key, name, fault);
        if array.data_type != DataType::Number(Kind::Int64) {
            let found = Excerpt::of(&format!("{:?}", array.data_type));
            let with = "numbers of vertices, which are int64";
            let fault = MetadataFault::Disagrees { found, with };
            return Err(of_node("data_type", fault));
        }
        match (array.shape.as_slice(), array.decoded_shape()) {
            ([rows, ENDS], [chunk_rows, ENDS])
                if *chunk_rows > 0 && rows.div_ceil(*chunk_rows) <= MAX_CHUNKS =>
            {
                Ok(Self {
                    rows: *rows,
                    chunk_rows: *chunk_rows,
                })
            }
            _ => {
                let found = Excerpt::of(&format!("{:?}", array.shape));
                let with = "rows of two vertices, in at most a million chunks of whole rows";
                Err(of_node("shape", MetadataFault::Disagrees { found, with }))
            }
        }
    }

    /// Returns the attributes of the array.
    pub fn attributes() -> Attributes {
        JsonMembers::tagged("cross_chunk_links").finish()
    }

    /// Returns the number of chunks of the array.
    pub fn chunks(self) -> u64 {
        self.rows.div_ceil(self.chunk_rows.max(1))
    }

    /// Returns the rows in use of a chunk of the array, whose payload has those after the array's
    /// last row as well.
    pub fn rows_of(self, chunk: u64, payload: &[u8]) -> impl Iterator<Item = [i64; 2]> + '_ {
        let before = chunk.saturating_mul(self.chunk_rows);
        let used = self.rows.saturating_sub(before).min(self.chunk_rows);
        let rows = payload
            .chunks_exact(size_of::<[i64; 2]>())
            .take(usize::try_from(used).unwrap_or(usize::MAX));
        let pairs = rows.map(|row| {
            let mut ends = row.chunks_exact(size_of::<i64>()).map(|bytes| {
                let number = bytes.first_chunk::<8>();
                number.map_or(0, |bytes| i64::from_le_bytes(*bytes))
            });
            let mut next = || ends.next().unwrap_or_default();
            [next(), next()]
        });
        pairs.filter(|ends| *ends != [-1, -1])
    }
}

/// Numbers of all vertices of a level: by chunk, ascending, and by row. No document defines them;
/// this is the order of the rows of a padded array without its padding.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VertexNumbering {
    chunks: Vec<ChunkCoord>,
    /// The first vertex of each chunk, and the end of the last.
    starts: Vec<u64>,
}

impl VertexNumbering {
    /// Numbers the vertices of chunks with these numbers of rows.
    pub fn new(rows: impl IntoIterator<Item = (ChunkCoord, u64)>) -> Self {
        let mut rows: Vec<(ChunkCoord, u64)> = rows.into_iter().collect();
        rows.sort_unstable();
        let (mut chunks, mut starts, mut end) = (Vec::new(), vec![0], 0_u64);
        for (chunk, rows) in rows {
            chunks.push(chunk);
            end = end.saturating_add(rows);
            starts.push(end);
        }
        Self { chunks, starts }
    }

    /// Returns the chunks, ascending.
    pub fn chunks(&self) -> &[ChunkCoord] {
        &self.chunks
    }

    /// Returns the index of a vertex's chunk, and its row; `None` for a number of no vertex.
    pub fn place(&self, vertex: i64) -> Option<(usize, u64)> {
        let vertex = u64::try_from(vertex).ok()?;
        let after = self.starts.partition_point(|start| *start <= vertex);
        let chunk = after.checked_sub(1)?;
        // The last start is the end of all chunks.
        self.chunks.get(chunk)?;
        Some((chunk, vertex.checked_sub(*self.starts.get(chunk)?)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vertices_are_numbered_by_chunk_and_row() {
        let chunk = |at: i64| ChunkCoord::new([at, 0]);
        let numbering = VertexNumbering::new([(chunk(3), 2), (chunk(-1), 3), (chunk(2), 0)]);
        let places: Vec<_> = (-1..6).map(|vertex| numbering.place(vertex)).collect();
        let expected = [
            None,
            Some((0, 0)),
            Some((0, 1)),
            Some((0, 2)),
            Some((2, 0)),
            Some((2, 1)),
            None,
        ];
        assert_eq!(places, expected);
        assert_eq!(numbering.chunks(), [chunk(-1), chunk(2), chunk(3)]);
        assert_eq!(VertexNumbering::default().place(0), None);
    }

    #[test]
    fn rows_of_the_last_chunk_end_with_the_array() {
        let pairs = VertexPairs {
            rows: 3,
            chunk_rows: 2,
        };
        let bytes = |rows: &[[i64; 2]]| -> Vec<u8> {
            rows.iter()
                .flatten()
                .flat_map(|end| end.to_le_bytes())
                .collect()
        };
        let rows =
            |chunk, payload: &[u8]| -> Vec<[i64; 2]> { pairs.rows_of(chunk, payload).collect() };
        assert_eq!(pairs.chunks(), 2);
        assert_eq!(rows(0, &bytes(&[[1, 2], [-1, -1]])), [[1, 2]]);
        assert_eq!(rows(1, &bytes(&[[3, 4], [5, 6]])), [[3, 4]]);
        assert_eq!(rows(2, &bytes(&[[3, 4]])), [[0_i64; 2]; 0]);
    }
}
