//! Encoding of a partition.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use zvf_format::numeric::Kind;
use zvf_format::{
    dictionary::{Code, CodeDtype},
    links::LinkWidth,
};

use crate::{
    GeometryKind,
    error::BuildError,
    fragment_column::owner_column,
    geometry::{Geometry, VertexOwners},
    large::outline::{Field, Outline, PlanContents},
    large::piece::Piece,
    link_placement::LinkPlacement,
    objects::ObjectRows,
    output::Output,
    plan::{self, WritePlan},
    sizing::FragmentKind,
    spatial_layout,
    stored_column::StoredColumn,
    vertex_layout::{Grouping, NO_OBJECT, Trees, VertexLayout, by_owner},
};
use zvf_model::{
    array::CellAttributeRole,
    column::{Column, NumericColumn},
    object_ids::Owner,
    scope::Scope,
};

/// Partition that is ready to be encoded.
#[derive(Debug)]
pub struct Partition {
    plan: WritePlan,
    result: PartitionResult,
    /// Chunks of each task.
    tasks: Vec<Vec<u32>>,
}

/// Result of a partition that finishing the store needs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PartitionResult {
    pub(crate) chunks: Vec<ChunkSummary>,
    /// Number of links by the chunks of their ends, in stored order. The key of links inside a
    /// chunk is this chunk alone.
    pub(crate) links: BTreeMap<Vec<Vec<i64>>, u32>,
}

/// Encoded chunk.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ChunkSummary {
    pub(crate) coords: Vec<i64>,
    pub(crate) rows: u64,
    /// Rows and object id of each fragment; empty for paths, whose fragments are in the log.
    pub(crate) fragments: Vec<(u32, i64)>,
}

impl PartitionResult {
    /// Collects the contents of chunks for which `own` returns true; `ids` maps object rows to ids,
    /// and is `None` for paths.
    fn of(
        layout: &VertexLayout,
        placed_links: &LinkPlacement,
        ids: Option<&[i64]>,
        own: impl Fn(u32) -> bool,
    ) -> Self {
        let mut result = Self::default();
        for (chunk, coords) in layout.chunks.iter().enumerate() {
            if !own(chunk as u32) {
                continue;
            }
            let fragments = |ids: &[i64]| {
                let fragments =
                    layout
                        .fragments(chunk)
                        .iter()
                        .map(|fragment| match fragment.object {
                            NO_OBJECT => (fragment.rows, Owner::NONE),
                            object => (fragment.rows, ids[object as usize]),
                        });
                fragments.collect()
            };
            result.chunks.push(ChunkSummary {
                coords: coords.clone(),
                rows: layout.vertices(chunk).len() as u64,
                fragments: ids.map_or_else(Vec::new, fragments),
            });
        }
        let inside = placed_links
            .inside
            .iter()
            .map(|(chunk, cell)| (core::slice::from_ref(chunk), cell));
        let between = placed_links
            .between
            .iter()
            .map(|(chunks, cell)| (chunks.as_slice(), cell));
        for (numbers, cell) in inside.chain(between) {
            let coords = numbers
                .iter()
                .map(|number| layout.chunks[*number as usize].clone());
            result.links.insert(coords.collect(), cell.len() as u32);
        }
        result
    }
}

impl Partition {
    /// Returns the number of tasks.
    pub fn tasks(&self) -> usize {
        self.tasks.len()
    }

    /// Encodes the cells of a task.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when a cell exceeds the limit of the format.
    pub fn run(&self, task: usize) -> Result<Vec<Output>, BuildError> {
        let chunks = self.tasks.get(task).map_or(&[][..], Vec::as_slice);
        plan::cells(&self.plan, chunks)
    }

    /// Returns the result.
    pub fn into_result(self) -> PartitionResult {
        self.result
    }
}

impl Outline {
    /// Returns the nodes of the arrays that partitions write, as far as encoding needs them: lists
    /// of cells are known only at the end. Link arrays are encoded as the vertices are.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when a name is not valid in a key.
    pub fn arrays(&self) -> Result<Vec<Output>, BuildError> {
        let columns = self.fields.iter().map(|field| self.empty_column(field));
        plan::rest(&self.plan(PlanContents {
            fragment: self.fragment_columns(&VertexLayout::default(), &[])?,
            vertices: 0,
            vertex: columns.collect::<Result<_, _>>()?,
            geometry: Geometry::builder(NumericColumn::new(
                self.positions.0,
                self.positions.1 as u32,
            )),
            layout: VertexLayout {
                starts: vec![0],
                fragment_starts: vec![0],
                ..VertexLayout::default()
            },
            objects: None,
            logged: None,
            links: match (self.design.kind.is_linked(), self.design.has_steps_inside()) {
                (true, _) => Some(LinkPlacement::none(self.link_ends()?)),
                (false, true) => Some(LinkPlacement::none(LinkWidth::EDGE)),
                (false, false) => None,
            },
            link: self.link_columns(&[])?,
        }))
    }

    /// Places steps of paths whose cell is in a chunk for which `own` returns true. Those inside chunks
    /// follow from the layout.
    fn steps(
        &self,
        steps: &[[u32; 4]],
        layout: &VertexLayout,
        number: impl Fn(u32) -> Option<u32>,
        own: impl Fn(u32) -> bool,
    ) -> Result<LinkPlacement, BuildError> {
        let policy = self.policy();
        let mut placed_links = LinkPlacement::none(LinkWidth::EDGE);
        for [from, before, to, row] in steps {
            let (Some(from), Some(to)) = (number(*from), number(*to)) else {
                return Err(super::piece::damaged());
            };
            let record = [(from, u64::from(*before)), (to, u64::from(*row))];
            placed_links.place(0, &record, policy, &own)?;
        }
        if self.design.has_steps_inside() {
            placed_links.add_steps_inside(layout);
        }
        Ok(placed_links)
    }

    /// Returns the trees of skeletons, whose rows are in depth-first order. `rows` has the object
    /// of each vertex.
    fn trees(
        &self,
        roots: &[u8],
        rows: &[u32],
        objects: usize,
    ) -> Result<Option<Trees>, BuildError> {
        if self.design.kind != GeometryKind::Skeletons {
            return Ok(None);
        }
        if roots.len() != rows.len() {
            return Err(super::piece::damaged());
        }
        Ok(Some(Trees {
            sequence: by_owner(objects, rows).unwrap_or_else(|| (0..rows.len() as u32).collect()),
            has_parent: roots.iter().map(|root| *root == 0).collect(),
        }))
    }

    /// Returns the grouping of vertices that are not of paths into fragments. `rows` has the object of
    /// each.
    fn grouping<'a>(
        &self,
        rows: &'a [u32],
        objects: usize,
        trees: Option<&'a Trees>,
    ) -> Result<Grouping<'a>, BuildError> {
        let fragments = FragmentKind::of_geometry(self.has_objects);
        Ok(match (fragments, trees) {
            (FragmentKind::Bins, _) => Grouping::Bins {
                count: self.space.bin_count()?,
                empty: self.design.profile.is_current(),
            },
            (FragmentKind::Objects, None) => Grouping::Owners { objects, rows },
            (FragmentKind::Objects, Some(trees)) => Grouping::Trees {
                objects,
                rows,
                trees,
            },
        })
    }

    /// Decodes the rows and the [divided links](super::DividedLinks) of a partition. `chunks` has
    /// all chunks by number.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when the bytes are damaged, or a cell exceeds the limit of the format.
    pub fn part(
        &self,
        mut bytes: &[u8],
        links: &[u8],
        chunks: &[Vec<i64>],
    ) -> Result<Partition, BuildError> {
        let is_linked = self.design.kind.is_linked();
        let mut piece = Piece::default();
        while !bytes.is_empty() {
            piece.read(&mut bytes, self.fields.len())?;
        }
        let mut geometry = Geometry::builder(NumericColumn {
            bytes: std::mem::take(&mut piece.positions),
            ..NumericColumn::new(self.positions.0, self.positions.1 as u32)
        });
        let columns: Vec<StoredColumn> = self
            .fields
            .iter()
            .zip(&piece.fields)
            .map(|(field, bytes)| field.column(bytes, self.design.profile.is_current()))
            .collect::<Result<_, _>>()?;
        let mut offsets = vec![0u64];
        for rows in &piece.run_rows {
            offsets.push(offsets[offsets.len() - 1] + u64::from(*rows));
        }
        if self.design.kind.is_paths() {
            geometry.owners = VertexOwners::Paths {
                offsets,
                objects: None,
            };
        }
        let fragments = FragmentKind::of_geometry(self.has_objects);
        let mut assigned =
            spatial_layout::assign(&geometry.positions, &self.space, fragments, None)?;
        let own: BTreeSet<Vec<i64>> = assigned.chunks.iter().cloned().collect();
        // Chunks at the far end of links need numbers too.
        let mut all = own.clone();
        let named = piece.steps.iter().flat_map(|[a, _, b, _]| [*a, *b]);
        let linked: BTreeSet<u32> = self.chunks_of(links).collect();
        let named = named.chain(linked);
        all.extend(named.filter_map(|number| chunks.get(number as usize).cloned()));
        let all: Vec<Vec<i64>> = all.into_iter().collect();
        let number: HashMap<&[i64], u32> = all.iter().map(Vec::as_slice).zip(0..).collect();
        let moved: Vec<u32> = assigned
            .chunks
            .iter()
            .map(|chunk| number[chunk.as_slice()])
            .collect();
        for chunk in &mut assigned.chunk_of {
            *chunk = moved[*chunk as usize];
        }
        assigned.chunks.clone_from(&all);
        let mut ids = piece.objects.clone();
        ids.sort_unstable();
        ids.dedup();
        let row_of: HashMap<i64, u32> = ids.iter().copied().zip(0..).collect();
        let rows: Vec<u32> = piece.objects.iter().map(|id| row_of[id]).collect();
        let trees = self.trees(&piece.roots, &rows, ids.len())?;
        let layout = if let Some(offsets) = geometry.owners.offsets() {
            VertexLayout::of_paths(assigned, offsets, ids.len(), &rows)
        } else {
            let grouping = self.grouping(&rows, ids.len(), trees.as_ref())?;
            VertexLayout::new(assigned, &grouping)
        };
        let by_number = |at: u32| {
            let coords = chunks.get(at as usize);
            coords.and_then(|coords| number.get(coords.as_slice()).copied())
        };
        let is_own = |chunk: u32| own.contains(&all[chunk as usize]);
        let placed_links = if is_linked {
            self.placed(links, by_number, is_own)?
        } else {
            self.steps(&piece.steps, &layout, by_number, is_own)?
        };
        let owners = (!self.design.kind.is_paths()).then_some(ids.as_slice());
        let result = PartitionResult::of(&layout, &placed_links, owners, is_own);
        let fragment = self.fragment_columns(&layout, &ids)?;
        let mut plan = self.plan(PlanContents {
            fragment,
            vertices: geometry.vertices() as u64,
            vertex: columns,
            geometry,
            layout,
            objects: self.has_objects.then(ObjectRows::default),
            logged: None,
            links: (self.design.has_links_inside() || !placed_links.between.is_empty())
                .then_some(placed_links),
            link: self.link_columns(links)?,
        });
        plan::check_cells(&plan)?;
        plan.tasks = plan.split_into_tasks();
        let tasks = plan
            .tasks
            .iter()
            .map(|chunks| {
                let own = chunks
                    .iter()
                    .filter(|chunk| own.contains(&all[**chunk as usize]));
                own.copied().collect::<Vec<u32>>()
            })
            .filter(|chunks| !chunks.is_empty())
            .collect();
        Ok(Partition {
            plan,
            result,
            tasks,
        })
    }
}

impl Outline {
    /// Returns a column without rows, for its node.
    pub(super) fn empty_column(&self, field: &Field) -> Result<StoredColumn, BuildError> {
        let column = field.column(&[], self.design.profile.is_current())?;
        Ok(column.with_channel_names(&self.design.attribute_specs, Scope::Vertex))
    }
}

impl Outline {
    /// Returns the attributes of fragments, of objects with these ids.
    pub(super) fn fragment_columns(
        &self,
        layout: &VertexLayout,
        ids: &[i64],
    ) -> Result<Vec<StoredColumn>, BuildError> {
        let is_current = self.design.profile.is_current();
        let owners = self.design.fragment_owners;
        let column = owners.then(|| owner_column(layout, ids, is_current));
        column.into_iter().collect()
    }

    /// Returns the attributes of divided links.
    pub(super) fn link_columns(&self, links: &[u8]) -> Result<Vec<StoredColumn>, BuildError> {
        let size = self.link_row_size();
        let mut start = size - self.link_values();
        let mut columns = Vec::with_capacity(self.link_fields.len());
        for field in &self.link_fields {
            let (kind, width) = field.numbers.unwrap_or((Kind::UInt8, 1));
            let mut numbers = NumericColumn::new(kind, width as u32);
            let end = start + numbers.row_size();
            for record in links.chunks_exact(size) {
                numbers.bytes.extend_from_slice(&record[start..end]);
            }
            start = end;
            let is_current = self.design.profile.is_current();
            let column = Column::new(&field.name, numbers);
            let column = StoredColumn::of(column, CellAttributeRole::Link, is_current)?;
            columns.push(column.with_channel_names(&self.design.attribute_specs, Scope::Link));
        }
        Ok(columns)
    }
}

impl Field {
    /// Decodes a column; words get codes of the dictionary of all partitions.
    pub(super) fn column(&self, bytes: &[u8], current: bool) -> Result<StoredColumn, BuildError> {
        if let Some((kind, columns)) = self.numbers {
            let numbers = NumericColumn {
                bytes: bytes.to_vec(),
                ..NumericColumn::new(kind, columns as u32)
            };
            return StoredColumn::of(
                Column::new(&self.name, numbers),
                CellAttributeRole::Vertex,
                current,
            );
        }
        // The metadata of a text column with all words.
        let texts = self
            .words
            .iter()
            .map(Some)
            .chain(self.missing.then_some(None));
        let mut column = StoredColumn::of(
            Column::text(&self.name, texts),
            CellAttributeRole::Vertex,
            current,
        )?;
        let mut sorted: Vec<(&String, usize)> = self.words.iter().zip(0..).collect();
        sorted.sort_unstable();
        let mut codes = vec![0u32; sorted.len()];
        for (code, (_, came)) in (0u32..).zip(&sorted) {
            codes[*came] = code;
        }
        let count = sorted.len() as u32;
        let dtype = if self.missing {
            CodeDtype::with_missing(count).map_err(|_| BuildError::TooManyVertices(sorted.len()))?
        } else {
            CodeDtype::new(count)
        };
        let code = |bytes: &[u8]| {
            let mut number = [0; 4];
            number.copy_from_slice(bytes);
            let came = u32::from_le_bytes(number) as usize;
            codes
                .get(came)
                .map_or(Code::Missing, |code| Code::Category(*code))
        };
        let codes: Vec<Code> = bytes.chunks_exact(4).map(code).collect();
        let bytes = dtype
            .encode(&codes)
            .map_err(|_| BuildError::TooManyVertices(codes.len()))?;
        column.numbers.bytes = bytes;
        Ok(column)
    }
}
