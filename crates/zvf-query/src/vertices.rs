//! Vertices on their way from chunks into an answer.

use zvf_model::{fetch::CellSource, grid::ChunkCoord};

use crate::{
    answer::{Answer, NO_OBJECT, Rows as AnswerRows, SEVERAL_OBJECTS},
    build::{ColumnBuilder, bytes_of, push_rows},
    chunk::Chunk,
    error::QueryError,
    missing::Ledger,
    objects::Objects,
    schema::{Names, Schema},
};

/// A vertex of a chunk, as one of its fragments names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Row of the chunk's buffer.
    pub(crate) row: u64,
    /// Where in the chunk's memory it is.
    pub(crate) place: usize,
    pub(crate) fragment: u32,
}

impl Chunk {
    /// Its vertices, by fragment, then as the fragment has them; only those in
    /// memory, and of the fragments that were asked for.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        let mut entries = Vec::new();
        match &self.bins {
            Some(bins) => bins
                .iter()
                .for_each(|fragment| self.push_fragment(*fragment, &mut entries)),
            None => (0..self.fragments.len())
                .for_each(|fragment| self.push_fragment(fragment, &mut entries)),
        }
        entries
    }

    /// The vertices of one fragment that are in memory.
    pub(crate) fn push_fragment(&self, fragment: u32, entries: &mut Vec<Entry>) {
        let Some(rows) = self.fragments.rows(fragment) else {
            return;
        };
        let entry = |row| {
            let place = self.held.place(row)?;
            Some(Entry {
                row,
                place,
                fragment,
            })
        };
        entries.extend(rows.iter().filter_map(entry));
    }
}

/// The objects of a chunk's fragments, by fragment: rows of the object index.
#[derive(Clone, Debug, Default)]
pub(crate) struct Owners {
    by_fragment: Vec<Owner>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Owner {
    #[default]
    None,
    /// The row of the only one.
    One(usize),
    Several,
}

impl Owners {
    pub(crate) fn new(pairs: impl IntoIterator<Item = (u32, usize)>) -> Self {
        let mut by_fragment: Vec<Owner> = Vec::new();
        for (fragment, row) in pairs {
            let Ok(fragment) = usize::try_from(fragment) else {
                continue;
            };
            if by_fragment.len() <= fragment {
                by_fragment.resize(fragment.saturating_add(1), Owner::None);
            }
            if let Some(owner) = by_fragment.get_mut(fragment) {
                *owner = match *owner {
                    Owner::None => Owner::One(row),
                    Owner::One(same) if same == row => Owner::One(row),
                    _ => Owner::Several,
                };
            }
        }
        Self { by_fragment }
    }

    pub(crate) fn of(&self, fragment: u32) -> Owner {
        let fragment = usize::try_from(fragment).ok();
        let owner = fragment.and_then(|fragment| self.by_fragment.get(fragment));
        owner.copied().unwrap_or_default()
    }

    /// The id to give for a fragment, [`NO_OBJECT`] where objects are not known.
    pub(crate) fn id(&self, fragment: u32, objects: Option<&Objects>) -> i64 {
        match self.of(fragment) {
            Owner::None => NO_OBJECT,
            Owner::One(place) => objects
                .and_then(|objects| objects.id(place))
                .unwrap_or(NO_OBJECT),
            Owner::Several => SEVERAL_OBJECTS,
        }
    }
}

/// Vertices put together.
#[derive(Debug)]
pub(crate) struct VertexBuilder {
    positions: AnswerRows,
    vertex: Vec<(usize, ColumnBuilder)>,
    fragment: Vec<(usize, ColumnBuilder)>,
    pub(crate) object_ids: Option<Vec<i64>>,
    /// Chunk and row of each, when somebody follows links from there.
    origins: Option<Vec<(ChunkCoord, u64)>>,
    rows: usize,
}

impl VertexBuilder {
    /// For what of `schema` an answer shows.
    pub(crate) fn new<A: CellSource>(schema: &Schema<A>, shown: &Names, objects: bool) -> Self {
        let axes = u32::try_from(schema.axes).unwrap_or(1);
        let builders = |attributes: &[crate::schema::Attribute<A>], names: &[String]| {
            let attributes = attributes.iter().enumerate();
            let shown = attributes.filter(|(_, attribute)| names.contains(&attribute.name));
            let builder = |(at, attribute): (usize, &crate::schema::Attribute<A>)| {
                let builder = ColumnBuilder::new(&attribute.name, &attribute.metadata);
                (at, builder)
            };
            shown.map(builder).collect()
        };
        Self {
            positions: AnswerRows::new(schema.dtype.kind(), axes),
            vertex: builders(&schema.vertex, &shown.vertex),
            fragment: builders(&schema.fragment, &shown.fragment),
            object_ids: objects.then(Vec::new),
            origins: None,
            rows: 0,
        }
    }

    /// Keeps in mind where vertices came from.
    pub(crate) fn with_origins(mut self) -> Self {
        self.origins = Some(Vec::new());
        self
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Bytes put together so far, roughly.
    pub(crate) fn size(&self) -> u64 {
        let columns = self.vertex.iter().chain(&self.fragment);
        let columns = columns.map(|(_, column)| column.size());
        let ids = self.object_ids.as_ref().map_or(0, Vec::len);
        let ids = ids.saturating_mul(size_of::<i64>());
        let rows = self.positions.bytes.len().saturating_add(ids);
        u64::try_from(columns.fold(rows, usize::saturating_add)).unwrap_or(u64::MAX)
    }

    /// Appends vertices of a chunk.
    pub(crate) fn push<A: CellSource>(
        &mut self,
        schema: &Schema<A>,
        chunk: &Chunk,
        entries: &[Entry],
        object: impl Fn(u32) -> i64,
        ledger: &Ledger,
    ) -> Result<(), QueryError> {
        push_rows(
            &mut self.positions.bytes,
            &chunk.positions,
            schema.dtype,
            self.positions.columns,
            entries.iter().map(|entry| entry.place),
        );
        if !self.vertex.is_empty() {
            let places: Vec<_> = entries.iter().map(|entry| Some(entry.place)).collect();
            for (at, builder) in &mut self.vertex {
                let cell = chunk.vertex.get(*at).and_then(Option::as_ref);
                if let Some(attribute) = schema.vertex.get(*at)
                    && let Err(damage) = builder.push(attribute, &chunk.chunk, cell, &places)
                {
                    ledger.missing(damage)?;
                    builder.skip_to(self.rows.saturating_add(entries.len()));
                }
            }
        }
        if !self.fragment.is_empty() {
            let place = |entry: &Entry| usize::try_from(entry.fragment).ok();
            let places: Vec<_> = entries.iter().map(place).collect();
            for (at, builder) in &mut self.fragment {
                let cell = chunk.fragment.get(*at).and_then(Option::as_ref);
                if let Some(attribute) = schema.fragment.get(*at)
                    && let Err(damage) = builder.push(attribute, &chunk.chunk, cell, &places)
                {
                    ledger.missing(damage)?;
                    builder.skip_to(self.rows.saturating_add(entries.len()));
                }
            }
        }
        if let Some(origins) = &mut self.origins {
            origins.extend(entries.iter().map(|entry| (chunk.chunk.clone(), entry.row)));
        }
        if let Some(ids) = &mut self.object_ids {
            ids.extend(entries.iter().map(|entry| object(entry.fragment)));
        }
        self.rows = self.rows.saturating_add(entries.len());
        Ok(())
    }

    /// Appends a vertex between others, which are rows put in before.
    pub(crate) fn blend(&mut self, position: &[f64], rows: &[(usize, f64)]) {
        let kind = self.positions.kind;
        let bytes = position.iter().flat_map(|value| match kind {
            zvf_format::numeric::Kind::Float32 | zvf_format::numeric::Kind::Float64 => {
                bytes_of(*value, kind)
            }
            _ => vec![0; kind.size()],
        });
        self.positions.bytes.extend(bytes);
        for (_, builder) in self.vertex.iter_mut().chain(&mut self.fragment) {
            builder.blend(rows);
        }
        let heaviest = rows
            .iter()
            .copied()
            .reduce(|best, row| match row.1 > best.1 {
                true => row,
                false => best,
            });
        if let (Some(ids), Some((row, _))) = (&mut self.object_ids, heaviest) {
            ids.push(ids.get(row).copied().unwrap_or(NO_OBJECT));
        }
        if let (Some(origins), Some((row, _))) = (&mut self.origins, heaviest)
            && let Some(origin) = origins.get(row).cloned()
        {
            origins.push(origin);
        }
        self.rows = self.rows.saturating_add(1);
    }

    /// Keeps these rows, in this order.
    pub(crate) fn gather(&mut self, rows: &[usize]) {
        let mut bytes = Vec::new();
        let size = self.positions.row_size();
        bytes.reserve(rows.len().saturating_mul(size));
        for row in rows {
            let from = row.saturating_mul(size);
            let row = self.positions.bytes.get(from..from.saturating_add(size));
            bytes.extend_from_slice(row.unwrap_or_default());
        }
        self.positions.bytes = bytes;
        for (_, builder) in self.vertex.iter_mut().chain(&mut self.fragment) {
            builder.gather(rows);
        }
        if let Some(ids) = &mut self.object_ids {
            *ids = rows
                .iter()
                .filter_map(|row| ids.get(*row).copied())
                .collect();
        }
        if let Some(origins) = &mut self.origins {
            *origins = rows
                .iter()
                .filter_map(|row| origins.get(*row).cloned())
                .collect();
        }
        self.rows = rows.len();
    }

    /// Puts the columns into an answer.
    pub(crate) fn finish(self, answer: &mut Answer) {
        answer.positions = self.positions;
        answer.vertex = self.vertex.into_iter().map(|(_, b)| b.finish()).collect();
        answer.fragment = self.fragment.into_iter().map(|(_, b)| b.finish()).collect();
        answer.object_ids = self.object_ids;
        answer.origins = self.origins.unwrap_or_default();
    }
}
