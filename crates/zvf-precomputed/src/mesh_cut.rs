//! Meshes cut at the borders of the nodes of an octree.
//!
//! The vertices of a level are rounded to a lattice that all its nodes share, and triangles are cut
//! in this lattice. An edge is cut at the same points in all its triangles, because the planes are
//! taken in one order, and the point on an edge does not depend on its direction. So the fragments
//! of a level fit together without gaps.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::{
    PrecomputedError,
    multilod_manifest::{ManifestLevel, MeshNode, MultilodManifest, parent_of, z_order},
    multilod_mesh::VertexBits,
    skeleton::{check_rows, count},
};

/// Halvings of the extent of a mesh at most.
const MAX_DEPTH: u32 = 10;
/// Parts to which a triangle may be cut, on average.
const MAX_PARTS: f64 = 4.0;
/// Number of triangles cut per batch.
const BATCH_TRIANGLES: usize = 1 << 14;

/// A point of the lattice of a level. Coordinates have fewer than 28 bits.
type Point = [i64; 3];
type Triangle = [Point; 3];
/// A triangle in steps from the lower corner of its node.
type LocalTriangle = [[u16; 3]; 3];

/// A mesh of triangles.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TriangleMesh {
    /// Positions of the vertices.
    pub positions: Vec<[f32; 3]>,
    /// Corners of the triangles.
    pub triangles: Vec<[u32; 3]>,
}

/// Triangles that are read several times in the same order, from memory or from a file.
pub trait TriangleSource {
    /// The error of reading triangles.
    type Error: From<PrecomputedError>;

    /// Returns the number of triangles.
    fn count(&self) -> usize;

    /// Calls `pass` with the corners of each triangle.
    ///
    /// # Errors
    ///
    /// Those of the source.
    fn each(&self, pass: impl FnMut([[f32; 3]; 3])) -> Result<(), Self::Error>;
}

/// A mesh of triangles in a node: coordinates are steps from its lower corner.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuantizedMesh {
    /// Positions of the vertices.
    pub positions: Vec<[u32; 3]>,
    /// Corners of the triangles.
    pub triangles: Vec<[u32; 3]>,
}

/// The triangles of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CutFragment {
    /// Number of the level.
    pub level: usize,
    /// Place in the grid of the level.
    pub node: [u32; 3],
    /// Corners as steps from the lower corner of the node: a third of the memory of a mesh with rows.
    triangles: Vec<LocalTriangle>,
}

impl CutFragment {
    /// Creates a fragment without triangles.
    pub fn new(level: usize, node: [u32; 3]) -> Self {
        Self {
            level,
            node,
            triangles: Vec::new(),
        }
    }

    /// Returns the number of triangles.
    pub fn triangles(&self) -> usize {
        self.triangles.len()
    }

    /// Returns the code of the node in the Z order of its level. Fragments are stored in this
    /// order.
    pub fn order(&self) -> u64 {
        // A level has at most 2^30 nodes.
        u64::try_from(z_order(self.node)).unwrap_or(u64::MAX)
    }

    /// Appends the triangles as 18 bytes each, to store them outside of memory.
    pub fn write_triangles(&self, to: &mut Vec<u8>) {
        let steps = self.triangles.as_flattened().as_flattened().iter();
        to.extend(steps.flat_map(|step| step.to_le_bytes()));
    }

    /// Adds the triangles that [`write_triangles`](Self::write_triangles) wrote.
    pub fn read_triangles(&mut self, bytes: &[u8]) {
        let steps = bytes.as_chunks::<2>().0.as_chunks::<3>().0.as_chunks::<3>();
        let triangles = steps
            .0
            .iter()
            .map(|corners| corners.map(|at| at.map(u16::from_le_bytes)));
        self.triangles.extend(triangles);
    }

    /// Returns the mesh. Equal positions are one vertex; vertices are in the order of the triangles.
    pub fn mesh(&self) -> QuantizedMesh {
        let mut mesh = QuantizedMesh::default();
        let mut rows: HashMap<[u16; 3], u32> = HashMap::new();
        for triangle in &self.triangles {
            let corners = triangle.map(|corner| {
                *rows.entry(corner).or_insert_with(|| {
                    // Fewer than 2^48 / 3 positions differ, and they fit memory.
                    let row = u32::try_from(mesh.positions.len()).unwrap_or(u32::MAX);
                    mesh.positions.push(corner.map(u32::from));
                    row
                })
            });
            mesh.triangles.push(corners);
        }
        mesh
    }
}

/// The levels of detail of a mesh and the nodes of its octree, chosen from its triangles. Triangles
/// are cut in batches, so the mesh may be larger than memory.
#[derive(Clone, Debug)]
pub struct MeshCutter {
    grid: OctreeGrid,
    bits: VertexBits,
    levels: Vec<CutLevel>,
}

/// A level of detail.
#[derive(Clone, Copy, Debug)]
struct CutLevel {
    /// The index of its source.
    source: usize,
    scale: f32,
}

/// A mesh with levels of detail, cut at the borders of nodes, and above level 0 at their middle
/// planes.
#[derive(Clone, Debug)]
pub struct CutMesh {
    cutter: MeshCutter,
    /// By level, then in Z order.
    fragments: Vec<CutFragment>,
}

/// A manifest and the fragments that it lists.
#[derive(Clone, Debug, PartialEq)]
pub struct MultilodMesh {
    /// The nodes and the sizes of their fragments.
    pub manifest: MultilodManifest,
    /// The fragments, one after the other.
    pub data: Vec<u8>,
}

impl MeshCutter {
    /// Chooses the levels and nodes of a mesh, given at several levels of detail, the finest first.
    /// Nodes are cubes. Those of level 0 have about `node_triangles` triangles at most, unless the
    /// triangles are so long that smaller nodes would cut them into many parts.
    ///
    /// The scale of a level is the mean length of its edges. A level that has no fewer triangles
    /// than the one before, or no longer edges, is left out. Returns `None` if no level is left.
    ///
    /// # Errors
    ///
    /// Those of the sources, and [`PrecomputedError`] if coordinates are not finite or their range
    /// exceeds that of 32-bit floats.
    pub fn new<S: TriangleSource>(
        sources: &[S],
        bits: VertexBits,
        node_triangles: usize,
    ) -> Result<Option<Self>, S::Error> {
        let mut kept: Vec<&S> = Vec::new();
        let mut levels: Vec<CutLevel> = Vec::new();
        for (source, triangles) in sources.iter().enumerate() {
            let scale = mean_edge(triangles)?;
            let is_coarser = kept
                .last()
                .is_none_or(|finer| triangles.count() < finer.count());
            let is_longer = levels.last().is_none_or(|finer| scale > finer.scale);
            if is_coarser && is_longer && scale > 0.0 {
                kept.push(triangles);
                levels.push(CutLevel { source, scale });
            }
        }
        let grid = OctreeGrid::around(&kept, node_triangles)?;
        Ok(grid.map(|grid| Self { grid, bits, levels }))
    }

    /// Returns the index of the source of each level of detail.
    pub fn sources(&self) -> impl Iterator<Item = usize> {
        self.levels.iter().map(|level| level.source)
    }

    /// Cuts triangles of a level of detail, given by their corners, and returns their parts in each
    /// node, in Z order. Triangles with two equal corners are dropped.
    ///
    /// A vertex moves along each axis by at most half a step: the extent of a node of its level
    /// divided by twice the largest coordinate of the bits.
    pub fn cut(&self, level: usize, triangles: &[[[f32; 3]; 3]]) -> Vec<CutFragment> {
        let grid = self.grid.level(level, self.bits);
        let mut nodes = BTreeMap::new();
        for triangles in triangles.chunks(BATCH_TRIANGLES) {
            let triangles = triangles
                .iter()
                .map(|corners| corners.map(|corner| grid.lattice(corner)));
            grid.cut(triangles.collect(), &mut nodes);
        }
        in_order(level, nodes)
    }

    /// Returns the manifest of fragments of these sizes, given for each level. A level without
    /// fragments is omitted, and so are the levels after it.
    pub fn manifest(&self, fragments: Vec<Vec<MeshNode>>) -> MultilodManifest {
        let mut levels: Vec<ManifestLevel> = self
            .levels
            .iter()
            .zip(fragments)
            .take_while(|(_, nodes)| !nodes.is_empty())
            .map(|(level, nodes)| ManifestLevel {
                scale: level.scale,
                nodes,
                ..ManifestLevel::default()
            })
            .collect();
        let mut below: Vec<[u32; 3]> = Vec::new();
        for level in &mut levels {
            let known: BTreeSet<[u32; 3]> = level.nodes.iter().map(|node| node.position).collect();
            let parents: BTreeSet<[u32; 3]> = below.iter().map(|node| parent_of(*node)).collect();
            let missing = parents.difference(&known).map(|position| MeshNode {
                position: *position,
                size: 0,
            });
            level.nodes.extend(missing);
            level.nodes.sort_by_key(|node| z_order(node.position));
            below = level.nodes.iter().map(|node| node.position).collect();
        }
        MultilodManifest {
            chunk_shape: [self.grid.extent; 3],
            grid_origin: self.grid.origin,
            levels,
        }
    }
}

impl CutMesh {
    /// Cuts a mesh, given at several levels of detail, the finest first, as [`MeshCutter::new`] and
    /// [`MeshCutter::cut`] do. Returns `None` if no triangle is left.
    ///
    /// # Errors
    ///
    /// [`PrecomputedError`] if a triangle names a missing vertex, or if coordinates are not finite
    /// or their range exceeds that of 32-bit floats.
    pub fn new(
        levels: &[TriangleMesh],
        bits: VertexBits,
        node_triangles: usize,
    ) -> Result<Option<Self>, PrecomputedError> {
        for mesh in levels {
            mesh.check()?;
        }
        let Some(cutter) = MeshCutter::new(levels, bits, node_triangles)? else {
            return Ok(None);
        };
        let mut fragments = Vec::new();
        for (level, source) in cutter.sources().enumerate() {
            let grid = cutter.grid.level(level, bits);
            let cut = levels.get(source).map(|mesh| grid.cut_mesh(mesh));
            let cut = in_order(level, cut.unwrap_or_default());
            if cut.is_empty() {
                break;
            }
            fragments.extend(cut);
        }
        let cut = Self { cutter, fragments };
        Ok((!cut.fragments.is_empty()).then_some(cut))
    }

    /// Returns the fragments in the order of the data.
    pub fn fragments(&self) -> &[CutFragment] {
        &self.fragments
    }

    /// Joins the encoded fragments, one for each of [`fragments`](Self::fragments).
    ///
    /// # Errors
    ///
    /// [`PrecomputedError`] if a fragment has more than 4 GiB.
    pub fn join(&self, encoded: &[Vec<u8>]) -> Result<MultilodMesh, PrecomputedError> {
        let mut nodes: Vec<Vec<MeshNode>> = vec![Vec::new(); self.cutter.levels.len()];
        for (fragment, bytes) in self.fragments.iter().zip(encoded) {
            let size = count(bytes.len(), "bytes of a fragment")?;
            if let Some(level) = nodes.get_mut(fragment.level) {
                let position = fragment.node;
                level.push(MeshNode { position, size });
            }
        }
        Ok(MultilodMesh {
            manifest: self.cutter.manifest(nodes),
            data: encoded.concat(),
        })
    }
}

/// Returns the fragments of a level in Z order.
fn in_order(level: usize, nodes: BTreeMap<[u32; 3], Vec<LocalTriangle>>) -> Vec<CutFragment> {
    let mut fragments: Vec<CutFragment> = nodes
        .into_iter()
        .map(|(node, triangles)| CutFragment {
            level,
            node,
            triangles,
        })
        .collect();
    fragments.sort_by_cached_key(CutFragment::order);
    fragments
}

/// Returns the mean length of edges; 0 without triangles.
fn mean_edge<S: TriangleSource>(triangles: &S) -> Result<f32, S::Error> {
    let (mut sum, mut edges, mut is_finite) = (0.0, 0.0, true);
    triangles.each(|[a, b, c]| {
        is_finite &= [a, b, c].as_flattened().iter().all(|at| at.is_finite());
        sum += distance(a, b) + distance(b, c) + distance(c, a);
        edges += 3.0;
    })?;
    if is_finite {
        Ok(narrow(if edges > 0.0 { sum / edges } else { 0.0 }))
    } else {
        Err(PrecomputedError::Manifest("position of a vertex").into())
    }
}

impl TriangleMesh {
    /// Checks the rows of triangles and the coordinates.
    fn check(&self) -> Result<(), PrecomputedError> {
        let vertices = count(self.positions.len(), "vertices")?;
        check_rows(self.triangles.as_flattened().iter().copied(), vertices)?;
        let coordinates = self.positions.as_flattened();
        if coordinates.iter().all(|along| along.is_finite()) {
            Ok(())
        } else {
            Err(PrecomputedError::Manifest("position of a vertex"))
        }
    }
}

impl TriangleSource for TriangleMesh {
    type Error = PrecomputedError;

    fn count(&self) -> usize {
        self.triangles.len()
    }

    fn each(&self, pass: impl FnMut([[f32; 3]; 3])) -> Result<(), PrecomputedError> {
        let corner = |row: u32| self.positions.get(usize::try_from(row).ok()?).copied();
        let triangles = self.triangles.iter();
        triangles
            .filter_map(|[a, b, c]| Some([corner(*a)?, corner(*b)?, corner(*c)?]))
            .for_each(pass);
        Ok(())
    }
}

/// The nodes of all levels of a mesh.
#[derive(Clone, Debug)]
struct OctreeGrid {
    origin: [f32; 3],
    /// Extent of a finest node along each axis.
    extent: f32,
    /// Finest nodes along each axis.
    nodes: [i64; 3],
}

impl OctreeGrid {
    /// Chooses the grid; `None` if all vertices are at one place.
    fn around<S: TriangleSource>(
        levels: &[&S],
        node_triangles: usize,
    ) -> Result<Option<Self>, S::Error> {
        let mut lower = [f32::INFINITY; 3];
        let mut upper = [f32::NEG_INFINITY; 3];
        for triangles in levels {
            triangles.each(|corners| {
                for corner in corners {
                    for ((lower, upper), along) in lower.iter_mut().zip(&mut upper).zip(corner) {
                        *lower = lower.min(along);
                        *upper = upper.max(along);
                    }
                }
            })?;
        }
        let widths = lower
            .iter()
            .zip(&upper)
            .map(|(lower, upper)| f64::from(*upper) - f64::from(*lower));
        let widest = widths.clone().fold(0.0, f64::max);
        let Some(finest) = levels.first().filter(|_| widest > 0.0) else {
            return Ok(None);
        };
        let triangles: usize = levels.iter().map(|triangles| triangles.count()).sum();
        let max_parts = as_float(triangles) * MAX_PARTS;
        let mut extent = widest;
        for depth in 0..MAX_DEPTH {
            // Eight nodes of each depth lie in one of the depth before.
            let nodes = 8_usize.saturating_pow(depth);
            let may_fit = finest.count() <= node_triangles.saturating_mul(nodes);
            if may_fit && densest(*finest, lower, extent)? <= node_triangles {
                break;
            }
            let half = extent / 2.0;
            let mut all = 0.0;
            for (triangles, level) in levels.iter().zip(0_u32..) {
                let distance = half * f64::from(level.saturating_sub(1)).exp2();
                all += parts(*triangles, distance)?;
            }
            if all > max_parts {
                break;
            }
            extent = half;
        }
        let exact = extent;
        let mut extent = narrow(exact);
        if f64::from(extent) < exact {
            extent = extent.next_up();
        }
        if !extent.is_finite() {
            return Err(PrecomputedError::Manifest("extent").into());
        }
        let mut nodes = widths.map(|width| as_integer((width / f64::from(extent)).ceil()).max(1));
        Ok(Some(Self {
            origin: lower,
            extent,
            nodes: [
                nodes.next().unwrap_or(1),
                nodes.next().unwrap_or(1),
                nodes.next().unwrap_or(1),
            ],
        }))
    }

    fn level(&self, level: usize, bits: VertexBits) -> LevelGrid {
        let shift = u32::try_from(level).unwrap_or(u32::MAX).min(62);
        LevelGrid {
            origin: self.origin,
            extent: f64::from(self.extent) * f64::from(shift).exp2(),
            nodes: self.nodes.map(|nodes| ((nodes - 1) >> shift) + 1),
            last: i64::from(bits.last()),
            middle: (level > 0).then_some(i64::from(bits.middle())),
        }
    }
}

/// Returns the most triangles whose centre lies in one node.
fn densest<S: TriangleSource>(
    triangles: &S,
    origin: [f32; 3],
    extent: f64,
) -> Result<usize, S::Error> {
    let mut counts: HashMap<u64, usize> = HashMap::new();
    triangles.each(|[a, b, c]| {
        let axes = a.iter().zip(&b).zip(&c).zip(&origin);
        let node = axes.fold(0_u64, |node, (((a, b), c), origin)| {
            let centre = (f64::from(*a) + f64::from(*b) + f64::from(*c)) / 3.0;
            let along = as_integer(((centre - f64::from(*origin)) / extent).floor());
            // A mesh has at most 1024 nodes along an axis.
            node << 16 | u64::try_from(along.clamp(0, 0xffff)).unwrap_or(0)
        });
        let count = counts.entry(node).or_default();
        *count = count.saturating_add(1);
    })?;
    Ok(counts.into_values().max().unwrap_or(0))
}

/// Estimates the parts of triangles that planes at this distance cut.
fn parts<S: TriangleSource>(triangles: &S, distance: f64) -> Result<f64, S::Error> {
    let mut all = 0.0;
    triangles.each(|[a, b, c]| {
        let spans = a.iter().zip(&b).zip(&c).map(|((a, b), c)| {
            let widest = f64::from(a.max(*b).max(*c)) - f64::from(a.min(*b).min(*c));
            widest / distance
        });
        let (sum, product) = spans.fold((0.0, 1.0), |(sum, product), span| {
            (sum + span, product * (1.0 + span))
        });
        // A triangle is flat: it passes through fewer nodes than its box touches.
        all += (1.0 + sum * sum).min(product);
    })?;
    Ok(all)
}

/// The lattice of a level.
struct LevelGrid {
    origin: [f32; 3],
    /// Extent of a node.
    extent: f64,
    /// Nodes along each axis.
    nodes: [i64; 3],
    /// Steps of a node.
    last: i64,
    /// Step of the middle plane, at which triangles are cut.
    middle: Option<i64>,
}

impl LevelGrid {
    /// Returns the triangles of each node.
    fn cut_mesh(&self, mesh: &TriangleMesh) -> BTreeMap<[u32; 3], Vec<LocalTriangle>> {
        // Coordinates have fewer than 28 bits, and a large mesh is cut in limited memory.
        let points: Vec<[i32; 3]> = mesh
            .positions
            .iter()
            .map(|position| {
                let point = self.lattice(*position);
                point.map(|along| i32::try_from(along).unwrap_or(i32::MAX))
            })
            .collect();
        let point = |row: u32| Some(points.get(usize::try_from(row).ok()?)?.map(i64::from));
        let mut nodes = BTreeMap::new();
        for triangles in mesh.triangles.chunks(BATCH_TRIANGLES) {
            let triangles = triangles
                .iter()
                .filter_map(|[a, b, c]| Some([point(*a)?, point(*b)?, point(*c)?]));
            self.cut(triangles.collect(), &mut nodes);
        }
        nodes
    }

    /// Adds the parts of triangles to the nodes.
    fn cut(
        &self,
        mut triangles: Vec<Triangle>,
        nodes: &mut BTreeMap<[u32; 3], Vec<LocalTriangle>>,
    ) {
        triangles.retain(has_area);
        // Each turn makes another axis the first one.
        for _ in 0..3 {
            triangles = self.cut_first_axis(triangles);
            for triangle in &mut triangles {
                *triangle = triangle.map(|[x, y, z]| [y, z, x]);
            }
        }
        for triangle in triangles {
            let Some(node) = self.node_of(&triangle) else {
                continue;
            };
            let [a, b, c] = triangle.map(|point| local(point, node, self.last));
            if let (Some(a), Some(b), Some(c)) = (a, b, c) {
                nodes.entry(node).or_default().push([a, b, c]);
            }
        }
    }

    /// Rounds a position to the lattice.
    fn lattice(&self, position: [f32; 3]) -> Point {
        let mut axes =
            position
                .iter()
                .zip(&self.origin)
                .zip(&self.nodes)
                .map(|((along, origin), nodes)| {
                    let along = f64::from(*along) - f64::from(*origin);
                    let steps = as_integer((along / self.extent * as_float_of(self.last)).round());
                    steps.clamp(0, nodes * self.last)
                });
        let mut next = || axes.next().unwrap_or(0);
        [next(), next(), next()]
    }

    /// Returns the first plane beyond a coordinate.
    fn plane_after(&self, along: i64) -> i64 {
        let border = along.div_euclid(self.last) * self.last;
        match self.middle.map(|middle| border + middle) {
            Some(middle) if along < middle => middle,
            _ => border + self.last,
        }
    }

    fn cut_first_axis(&self, triangles: Vec<Triangle>) -> Vec<Triangle> {
        let mut done = Vec::with_capacity(triangles.len());
        let mut pending: Vec<Triangle> = Vec::new();
        for triangle in triangles {
            pending.push(triangle);
            while let Some(triangle) = pending.pop() {
                let [[a, ..], [b, ..], [c, ..]] = triangle;
                let plane = self.plane_after(a.min(b).min(c));
                if plane < a.max(b).max(c) {
                    let (below, above) = split(&triangle, plane);
                    // No plane lies between the lower end of the triangle and this one.
                    done.extend(below);
                    pending.extend(above);
                } else {
                    done.push(triangle);
                }
            }
        }
        done
    }

    /// Returns the node of a triangle that no border divides. A triangle in a border belongs to the
    /// upper node.
    fn node_of(&self, [a, b, c]: &Triangle) -> Option<[u32; 3]> {
        let mut axes = a
            .iter()
            .zip(b)
            .zip(c)
            .zip(&self.nodes)
            .map(|(((a, b), c), nodes)| {
                let lowest = *a.min(b).min(c);
                u32::try_from(lowest.div_euclid(self.last).min(nodes - 1)).ok()
            });
        Some([axes.next()??, axes.next()??, axes.next()??])
    }
}

/// Returns the steps of a point of the lattice from the lower corner of a node; `None` outside of it.
fn local(point: Point, node: [u32; 3], last: i64) -> Option<[u16; 3]> {
    let mut axes = point.iter().zip(node).map(|(along, node)| {
        let step = along - i64::from(node) * last;
        u16::try_from(step).ok().filter(|_| step <= last)
    });
    Some([axes.next()??, axes.next()??, axes.next()??])
}

/// Divides a triangle at a plane of the first axis into triangles below and above it.
fn split(triangle: &Triangle, plane: i64) -> (Vec<Triangle>, Vec<Triangle>) {
    let [a, b, c] = *triangle;
    let (mut below, mut above) = (Vec::with_capacity(4), Vec::with_capacity(4));
    for (from, to) in [(a, b), (b, c), (c, a)] {
        let ([start, ..], [end, ..]) = (from, to);
        if start <= plane {
            below.push(from);
        }
        if start >= plane {
            above.push(from);
        }
        if start.min(end) < plane && plane < start.max(end) {
            let point = crossing(from, to, plane);
            below.push(point);
            above.push(point);
        }
    }
    (fan(&below), fan(&above))
}

/// Returns the point of the lattice that is nearest to the place where an edge meets a plane of the
/// first axis. The direction of the edge makes no difference.
fn crossing(from: Point, to: Point, plane: i64) -> Point {
    let (from, to) = if from <= to { (from, to) } else { (to, from) };
    let ([start, y, z], [end, to_y, to_z]) = (from, to);
    let (part, whole) = (plane - start, end - start);
    // Half of the divisor makes the division round. Ordered points have `start < end` here.
    let between = |from: i64, to: i64| {
        let doubled = 2 * (to - from) * part + whole;
        from + doubled.checked_div_euclid(2 * whole).unwrap_or(0)
    };
    [plane, between(y, to_y), between(z, to_z)]
}

/// Divides a ring of three or four points into triangles.
fn fan(ring: &[Point]) -> Vec<Triangle> {
    let Some((first, others)) = ring.split_first() else {
        return Vec::new();
    };
    let pairs = others.windows(2);
    let triangles = pairs.filter_map(|pair| match pair {
        [a, b] => Some([*first, *a, *b]).filter(has_area),
        _ => None,
    });
    triangles.collect()
}

/// Returns whether the corners are three points.
fn has_area([a, b, c]: &Triangle) -> bool {
    a != b && b != c && c != a
}

fn distance(a: [f32; 3], b: [f32; 3]) -> f64 {
    let squares = a
        .iter()
        .zip(&b)
        .map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2));
    squares.sum::<f64>().sqrt()
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "rounds, and becomes infinite beyond the range"
)]
fn narrow(value: f64) -> f32 {
    value as f32
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the value is a whole number of steps of a grid; others saturate"
)]
fn as_integer(value: f64) -> i64 {
    value as i64
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a count of triangles, for an estimate"
)]
fn as_float(count: usize) -> f64 {
    count as f64
}

#[expect(clippy::cast_precision_loss, reason = "at most 65535 steps")]
fn as_float_of(steps: i64) -> f64 {
    steps as f64
}
